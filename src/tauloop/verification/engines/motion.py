"""Motions as input of engines: coordinates, velocities and accelerations by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.equations.ports import numbers
from tauloop.mechanism.model import Joint
from tauloop.mechanism.poses import Array
from tauloop.mechanism.suggestions import unknown_names
from tauloop.verification.engines.trees.rigid_tree import RigidTree

#: Largest deviation of a quaternion's norm from 1 that normalization corrects.
QUATERNION_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedMotion(ReprMixin):
    """N states of a machine by the names of its joint coordinates and telescopic rods.

    A joint may be missing, such as a cut joint, but must not be incomplete. Angular velocities of
    free and spherical joints are those of the child relative to the parent, in the joint's frame on
    the parent. Time derivatives of x, y and z are in the same frame.

    Attributes:
        q: coordinates (N,) by name, m, rad or quaternions w x y z.
        v: velocities (N,) by name, m/s or rad/s.
        a: accelerations (N,) by name: time derivatives of v.
    """

    q: Mapping[str, Array]
    v: Mapping[str, Array]
    a: Mapping[str, Array]


def checked_motion(tree: RigidTree, motion: NamedMotion) -> NamedMotion:
    """Return the motion as arrays, with unit quaternions.

    Raises:
        InputError: names are unknown, joints are incomplete, shapes differ, values are not finite,
            or quaternions are not unit quaternions. All problems are listed.
    """
    problems = Problems()
    joints = [placed.joint for placed in tree.joints.values()]
    lengths = {rod.name for rod in tree.rods if rod.is_telescopic}
    q_names = {name for joint in joints for name in joint.coordinate_names} | lengths
    v_names = {name for joint in joints for name in joint.velocity_names} | lengths
    parts = (("q", motion.q, q_names), ("v", motion.v, v_names), ("a", motion.a, v_names))
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for part, entries, _ in parts:
        arrays[part] = {name: numbers(x, f"{part}.{name}") for name, x in entries.items()}
    for part, entries, known in parts:
        what = "no such coordinate" if part == "q" else "no such velocity"
        problems += unknown_names(entries, sorted(known), what, part + "[{!r}]")
    problems += [problem for joint in joints for problem in _incomplete(motion, joint)]
    for name in lengths:
        occurrences = {name in entries for _, entries, _ in parts}
        if len(occurrences) > 1:
            what = "must be in all of q, v and a, or in none"
            problems.add(name, what, "give the length, its velocity and its acceleration")
    shapes = sorted({x.shape for entries in arrays.values() for x in entries.values()})
    if len(shapes) != 1 or len(shapes[0]) != 1 or shapes[0][0] == 0:
        what = f"has arrays of shapes {shapes}"
        problems.add("motion", what, "give arrays (N,) with one value per sample")
    for part, entries in arrays.items():
        for name, x in entries.items():
            if not np.all(np.isfinite(x)):
                what = f"{counted(np.sum(~np.isfinite(x)), 'value', 'are')} not finite"
                problems.add(f"{part}[{name!r}]", what, "correct or remove these samples")
    InputError.raise_if_any(problems)
    for joint in joints:
        _normalize(joint, arrays["q"])
    return NamedMotion(q=arrays["q"], v=arrays["v"], a=arrays["a"])


def _incomplete(motion: NamedMotion, joint: Joint) -> list[Problem]:
    """Return a problem if a motion contains only some of the values of a joint."""
    required = [
        (motion.q, joint.coordinate_names),
        (motion.v, joint.velocity_names),
        (motion.a, joint.velocity_names),
    ]
    present = [name in entries for entries, names in required for name in names]
    if all(present) or not any(present):
        return []
    missing = [
        f"{part}[{name!r}]"
        for part, (entries, names) in zip("qva", required, strict=True)
        for name in names
        if name not in entries
    ]
    return [
        Problem(
            where=f"joint {joint.name}",
            what=f"is incomplete: {', '.join(missing)} missing",
            remedy="give all its coordinates, velocities and accelerations, or none",
        )
    ]


def _normalize(joint: Joint, q: dict[str, Array]) -> None:
    """Normalize the quaternion of a spherical or free joint in q.

    Raises:
        InputError: the norm differs from one by more than QUATERNION_TOLERANCE.
    """
    names = [
        name
        for name in joint.coordinate_names[-4:]
        if name.split(".")[-1] in ("qw", "qx", "qy", "qz")
    ]
    if joint.kind not in ("spherical", "free") or names[0] not in q:
        return
    norm = np.sqrt(sum(q[name] ** 2 for name in names))
    worst = float(np.max(np.abs(norm - 1.0)))
    if worst > QUATERNION_TOLERANCE:
        what = f"the norm of quaternions differs from 1 by up to {worst:.3g}"
        raise InputError.of(f"joint {joint.name}", what, "give unit quaternions w, x, y, z")
    for name in names:
        q[name] = q[name] / norm
