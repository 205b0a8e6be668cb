"""Merging of links and rods with equal rotation.

This is exact: links with equal rotation about points a constant vector apart have the same motion
up to that vector, so their inertias about these points add up. The potential energy changes by a
constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problem, Problems
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.links.graph import far_end, far_side, joints_of, rods_of, side
from tauloop.mechanism.model import (
    BASE,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Rod,
    SlenderPart,
    Vector,
)
from tauloop.mechanism.reduction.graph import STRAIGHT, numbers, with_added, without
from tauloop.mechanism.reduction.inertia import (
    mean,
    minus,
    plus,
    rotated_vector,
    rounded_entries,
    total,
    transferred_inertia,
)
from tauloop.mechanism.reduction.platform import constant_turns
from tauloop.mechanism.reduction.steps import BodyMotions, Step, limits_of, require

#: Lengths count as equal if their relative difference is at most this.
LENGTH_TOLERANCE = 1e-12
#: Two joints are offset only along their axis if their distance perpendicular to it (m) is at most
#: this.
OFFSET_TOLERANCE = 1e-9


def group_parallel_links(
    mechanism: Mechanism, kept: str, removed: str, motion: BodyMotions
) -> tuple[Mechanism, Step]:
    """Replace two links of equal rotation, which connect the same bodies, by one of them.

    The links are a constant vector apart. Examples are two cranks of a parallelogram, or two equal
    links in front of and behind a plane. The removed link's inertia about its joints is added to
    the kept link, and its rods are moved to the kept link. A body that no longer has a joint that
    prevents its rotation gets a translational joint to the base.

    Args:
        mechanism: the machine.
        kept, removed: names of the links.
        motion: motion of the bodies.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the links rotate differently or connect different bodies, or loads act on the
            removed link.
    """
    partners = parallel_joints(mechanism, kept, removed, motion)
    removed_joints = joints_of(mechanism, removed)
    verb = "corresponds" if len(partners) == 1 else "correspond"
    problems = Problems()
    if (
        len(partners) != len(removed_joints)
        or len(removed_joints) < 2
        or removed == mechanism.platform.body
    ):
        problems.add(
            f"bodies.{removed}",
            f"{len(partners)} of its {counted(len(removed_joints), 'joint')} {verb} to "
            f"a parallel joint of {kept}",
            "name a link that moves parallel to the other, connects the same bodies at a constant "
            "distance, and has no loads on its joints",
        )
    require(mechanism, problems)
    removed_joint, kept_joint = partners[0]
    removed_point, kept_point = (
        side(removed_joint, removed).position,
        side(kept_joint, kept).position,
    )
    R = rounded_entries(motion.orientation[kept].T @ motion.orientation[removed])
    body = far_side(removed_joint, removed).body
    shift = rotated_vector(
        rounded_entries(motion.orientation[body]),
        minus(far_side(kept_joint, kept).position, far_side(removed_joint, removed).position),
    )
    rods = rods_of(mechanism, removed)
    for rod in rods:
        far_body = far_end(rod, removed).body
        offset = motion.orientation[far_body].T @ numbers(mechanism, shift)
        if not motion.is_steady(far_body, offset, mechanism.characteristic_length):
            problems.add(
                f"rods.{rod.name}",
                f"connects the link to {far_body}, which rotates",
                "keep this link and remove the other one",
            )
    require(mechanism, problems)

    def moved(rod: Rod) -> Rod:
        if rod not in rods:
            return rod
        return replace(
            rod,
            start=moved_end(rod.start),
            end=moved_end(rod.end),
            first_axis=_axis_on(rod, removed, R),
        )

    def moved_end(end: Placement) -> Placement:
        if end.body == removed:
            return Placement(
                body=kept,
                position=plus(kept_point, rotated_vector(R, minus(end.position, removed_point))),
            )
        return replace(
            end,
            position=plus(
                end.position, rotated_vector(rounded_entries(motion.orientation[end.body]).T, shift)
            ),
        )

    mechanism = replace(mechanism, rods=tuple(moved(rod) for rod in mechanism.rods))
    inertia = mechanism.body(removed).inertia
    mechanism = with_added(
        mechanism,
        kept,
        None if inertia is None else transferred_inertia(inertia, removed_point, kept_point, R),
    )
    mechanism = without(mechanism, (removed,), (joint.name for joint in removed_joints))
    for neighbor in {far_side(joint, removed).body: None for joint in removed_joints}:
        straight = (joint.bodies for joint in mechanism.joints if joint.kind in STRAIGHT)
        if neighbor in motion.translating and neighbor not in steps_from(BASE, straight):
            mechanism = replace(mechanism, joints=(*mechanism.joints, _guide(neighbor, motion)))
    step = Step(
        name="group parallel links",
        removed=(removed,),
        kept=(kept,),
        preserved=("mass", "mass center up to a constant", "inertia about the joints"),
        lost=limits_of(removed_joints),
    )
    return mechanism, step


def parallel_joints(
    mechanism: Mechanism, kept: str, removed: str, motion: BodyMotions
) -> list[tuple[Joint, Joint]]:
    """Return (joint of the removed link, equivalent joint of the kept link) pairs.

    Two joints are equivalent if they are of the same kind, connect the links to the same body, and
    their offset on that body does not change its direction.
    """
    if (
        kept == removed
        or motion.group(kept) is not motion.group(removed)
        or kept in motion.translating
    ):
        return []
    pairs = []
    length = mechanism.characteristic_length
    for removed_joint in joints_of(mechanism, removed):
        far_frame = far_side(removed_joint, removed)
        for kept_joint in joints_of(mechanism, kept):
            other_frame = far_side(kept_joint, kept)
            if (
                other_frame.body == far_frame.body
                and kept_joint.kind == removed_joint.kind
                and motion.is_steady(
                    far_frame.body,
                    numbers(mechanism, minus(other_frame.position, far_frame.position)),
                    length,
                )
                and not mechanism.is_loaded(removed_joint)
            ):
                pairs.append((removed_joint, kept_joint))
                break
    return pairs


def is_behind(mechanism: Mechanism, kept: str, removed: str, motion: BodyMotions) -> bool:
    """Return whether two links are offset only along the one axis direction of their joints."""
    axis = motion.orientation[kept] @ motion.steady[kept]
    for removed_joint, kept_joint in parallel_joints(mechanism, kept, removed, motion):
        far_frame, other_frame = far_side(removed_joint, removed), far_side(kept_joint, kept)
        offset = motion.orientation[far_frame.body] @ numbers(
            mechanism, minus(other_frame.position, far_frame.position)
        )
        if axis.shape[1] != 1 or np.linalg.norm(np.cross(offset, axis[:, 0])) > OFFSET_TOLERANCE:
            return False
    return True


def _axis_on(rod: Rod, removed: str, R: np.ndarray) -> Vector | None:
    if rod.first_axis is None or rod.start.body != removed:
        return rod.first_axis
    return rotated_vector(R, rod.first_axis)


def _guide(body: str, motion: BodyMotions) -> Joint:
    return Joint(
        name=f"{body}.guide",
        kind="translational",
        parent=Placement(body=BASE),
        child=Placement(body=body, turns=constant_turns(motion.orientation[body].T)),
        reference=tuple(float(x) for x in motion.position[body]),
    )


def merge_rods(mechanism: Mechanism, names: Sequence[str]) -> tuple[Mechanism, Step]:
    """Replace parallel rods by one rod midway between them with the sum of their inertias.

    The merged rod has the name of the first rod. This is exact if the rods remain parallel and
    their ends on each body have the same velocity.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the rods differ in length, in the bodies they connect, or in the form of their
            inertia.
    """
    rods = [mechanism.rod(name) for name in names]
    first = rods[0]
    length = mechanism.value(first.length) if first.length is not None else np.nan
    problems = []
    for rod in rods:
        rod_length = mechanism.value(rod.length) if rod.length is not None else np.nan
        differences = [
            ("is telescopic", rod.length is None),
            (
                f"is {1e3 * (rod_length - length):+.6g} mm longer than {first.name}",
                abs(rod_length - length) > LENGTH_TOLERANCE * length,
            ),
            (
                f"connects other bodies than {first.name}",
                (rod.start.body, rod.end.body) != (first.start.body, first.end.body),
            ),
            (
                f"has another form of inertia than {first.name}",
                type(rod.lower) is not type(first.lower),
            ),
            (
                f"has another first axis or spin than {first.name}",
                (rod.first_axis, rod.spin) != (first.first_axis, first.spin),
            ),
        ]
        problems += [
            Problem(
                where=f"rods.{rod.name}",
                what=what,
                remedy="name rods that are equal and parallel",
            )
            for what, differs in differences
            if differs
        ]
    require(mechanism, problems)
    merged_rod = replace(
        first,
        start=replace(first.start, position=mean([rod.start.position for rod in rods])),
        end=replace(first.end, position=mean([rod.end.position for rod in rods])),
        lower=_sum_of_inertias([rod.lower for rod in rods if rod.lower is not None]),
    )
    removed_names = set(names) - {first.name}
    rods_of_machine = tuple(
        merged_rod if rod.name == first.name else rod
        for rod in mechanism.rods
        if rod.name not in removed_names
    )
    step = Step(
        name="merge parallel rods",
        removed=tuple(rod.name for rod in rods[1:]),
        kept=(first.name,),
        preserved=("mass", "mass center", "inertia about the joints"),
    )
    return replace(mechanism, rods=rods_of_machine), step


def _sum_of_inertias(parts: Sequence[SlenderPart | Inertia]) -> SlenderPart | Inertia | None:
    slender = [part for part in parts if isinstance(part, SlenderPart)]
    full = [part for part in parts if isinstance(part, Inertia)]
    if slender:
        return total(*slender)
    return total(*full) if full else None
