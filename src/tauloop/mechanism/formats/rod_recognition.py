"""Rods among the bodies of an imported machine: a link with a ball joint at both ends becomes a `Rod`.

Other tools write a rod as a rigid body on a chain of joints, closed by a constraint: up to six coordinates and six loop
equations, where a two-point link needs one equation and no coordinate. What is recognised:

- the link: one body, or several that are welded together, with nothing else on them;
- a ball joint: a spherical joint, or three revolute joints through one point with massless bodies between them;
- a universal joint: of that kind, or two such revolute joints at right angles.

Between two ball joints a link spins freely about its own axis. An axisymmetric one that does not spin moves just as a
slender rod: its axial inertia plays no part, and locking the spin loses nothing else. Between a universal and a ball
joint a link becomes a full rod, whose spin the universal joint forces. Links that are neither stay what they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.mechanism.expression import Call, Constant, Leaf, add, leaves, multiply
from tauloop.mechanism.formats.linkage import Linkage, axis_of, pose_of
from tauloop.mechanism.formats.options import ImportOptions, RodRecognition
from tauloop.mechanism.inertias import about_origin
from tauloop.mechanism.model import (
    BASE,
    Body,
    Freedom,
    Inertia,
    Joint,
    Mechanism,
    Parameter,
    ParameterTable,
    Placement,
    Rod,
    SlenderPart,
    Vector,
)

#: Lengths are alike within this share of the rod's length: exporters print some ten digits.
_SAME_POINT = 1e-7
#: Moments of inertia are alike, and products vanish, within this share of the largest.
_SAME_MOMENT = 1e-6
#: An axial inertia below this share of the one across is none: writers put a least value where a zero is refused.
_NO_AXIAL = 1e-8
#: Directions are parallel or at right angles within this, rad.
_SAME_DIRECTION = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class _End:
    """One end of a link: what it hangs on there.

    Attributes:
        kind: "ball" or "universal".
        point: joint centre on the link (3,), m, in the frame of the link's first body.
        outside: the joint's frame on the neighbour; its axis there (3,) for a universal joint, in coordinates of the
            neighbour, and the axis on the link (3,).
        joints, bodies: what disappears with it.
    """

    kind: Literal["ball", "universal"]
    point: np.ndarray
    outside: Placement
    first_axis: np.ndarray
    second_axis: np.ndarray
    joints: tuple[str, ...]
    bodies: tuple[str, ...]


def recognise_rods(mechanism: Mechanism, options: RodRecognition) -> tuple[Mechanism, tuple[str, ...]]:
    """The same machine with its rods as rods, and what was done.

    A body that only rods are left to carry gets a free joint to the base.

    Args:
        mechanism: the machine.
        options: whether spins may be locked.

    Returns:
        The machine and notes on every link looked at that has two ball or universal joints.
    """
    linkage = Linkage(mechanism)
    notes: list[str] = []
    rods: list[Rod] = []
    parameters: list[Parameter] = []
    gone_bodies: set[str] = set()
    gone_joints: set[str] = set()
    for link in linkage.links():
        ends = _ends(linkage, link)
        if ends is None or gone_joints & {name for end in ends for name in end.joints}:
            continue
        name = _name(linkage, link)
        made = _rod(linkage, link, name, ends, options, notes)
        if made is None:
            continue
        rod, leaf_parameters = made
        rods.append(rod)
        parameters += leaf_parameters
        gone_bodies |= {*link, *(body for end in ends for body in end.bodies)}
        gone_joints |= {joint for end in ends for joint in end.joints}
    if not rods:
        return mechanism, tuple(notes)
    joints = tuple(
        joint
        for joint in mechanism.joints
        if joint.name not in gone_joints and not {joint.parent.body, joint.child.body} & gone_bodies
    )
    limited = [
        joint.name
        for joint in mechanism.joints
        if joint not in joints and any(np.isfinite([f.lower, f.upper]).any() for f in joint.freedoms)
    ]
    if limited:
        notes.append(f"limits inside the joints of rods are left out: {', '.join(limited)}")
    bodies = tuple(body for body in mechanism.bodies if body.name not in gone_bodies)
    joints += _carriers(linkage, bodies, joints, mechanism.platform.body, notes)
    changed = replace(mechanism, bodies=bodies, joints=joints, rods=(*mechanism.rods, *rods))
    table = ParameterTable((*mechanism.parameters, *parameters))
    used = _used(changed)
    return replace(changed, parameters=ParameterTable(tuple(p for p in table if p.name in used))), tuple(notes)


def finished(
    mechanism: Mechanism, notes: Sequence[str], options: ImportOptions, *, is_platform_open: bool
) -> Mechanism:
    """An imported machine with its rods recognised, where that is asked for, and all notes in its description.

    Args:
        mechanism: as the file has it.
        notes: what was found on the way.
        options: of the import.
        is_platform_open: whether nobody named the platform, so that it may be another body where it turns out a rod.
    """
    found = list(notes)
    if options.rods is not None:
        platform = mechanism.platform
        if is_platform_open:
            mechanism = replace(mechanism, platform=replace(platform, body=BASE, tool=Placement(body=BASE)))
        mechanism, more = recognise_rods(mechanism, options.rods)
        found += more
        if is_platform_open:
            left = [body.name for body in mechanism.bodies]
            heavy = [body.name for body in mechanism.bodies if body.inertia is not None]
            if platform.body not in left:
                last = (heavy or left)[-1]
                platform = replace(platform, body=last, tool=Placement(body=last))
            mechanism = replace(mechanism, platform=platform)
    if is_platform_open:
        found.append(f"the platform is {mechanism.platform.body}: the file does not say it")
    head = f"Imported from {Path(mechanism.file).name}."
    return replace(mechanism, description="\n".join([head, *(f"- {note}" for note in found)]))


def _name(linkage: Linkage, link: Sequence[str]) -> str:
    """A rod is called after the heaviest body of its link."""
    return max(link, key=lambda body: linkage.mass(body))


def _ends(linkage: Linkage, link: Sequence[str]) -> tuple[_End, _End] | None:
    """The two ends of a link; None if it is no rod."""
    if linkage.is_needed(link):
        return None
    joints = linkage.joints_out_of(link)
    if len(joints) != 2:
        return None
    ends = [_end(linkage, link, joint) for joint in joints]
    if ends[0] is None or ends[1] is None:
        return None
    return ends[0], ends[1]


def _end(linkage: Linkage, link: Sequence[str], joint: Joint) -> _End | None:
    """Follow joints through massless bodies to the neighbour, as long as they pass through one point."""
    chain, between = [joint], []
    body = linkage.inner(joint, link)
    point = (linkage.pose_in(link, body) @ pose_of(linkage.mechanism, linkage.side(joint, body))).position
    inner_axis = linkage.pose_in(link, body).rotation @ axis_of(linkage.mechanism, joint, linkage.side(joint, body))
    right_angles = joint.kind == "universal"
    while True:
        last = chain[-1]
        if linkage.is_loaded(last) or last.kind not in ("revolute", "universal", "spherical"):
            return None
        outer = linkage.other(last, body)
        following = linkage.passes(outer, last)
        if following is None:
            break
        here, there = linkage.side(last, outer), linkage.side(following, outer)
        gap = pose_of(linkage.mechanism, here).position - pose_of(linkage.mechanism, there).position
        one, two = (axis_of(linkage.mechanism, j, s) for j, s in ((last, here), (following, there)))
        if np.linalg.norm(gap) > _SAME_POINT * linkage.length or np.linalg.norm(np.cross(one, two)) < _SAME_DIRECTION:
            return None
        right_angles = abs(float(one @ two)) < _SAME_DIRECTION
        chain.append(following)
        between.append(outer)
        body = outer
    freedoms = sum(len(j.velocity_names) for j in chain)
    outside = linkage.side(chain[-1], outer)
    if outer in link or freedoms not in (2, 3) or (freedoms == 2 and not right_angles):
        return None
    return _End(
        kind="ball" if freedoms == 3 else "universal",
        point=point,
        outside=replace(outside, turns=()),
        first_axis=axis_of(linkage.mechanism, chain[-1], outside),
        second_axis=inner_axis,
        joints=tuple(j.name for j in chain),
        bodies=tuple(between),
    )


def _rod(
    linkage: Linkage,
    link: Sequence[str],
    name: str,
    ends: tuple[_End, _End],
    options: RodRecognition,
    notes: list[str],
) -> tuple[Rod, list[Parameter]] | None:
    """The rod with its leaf parameters; None where the link must stay a body, which is noted."""
    if ends[1].kind == "universal":
        ends = (ends[1], ends[0])
    A, B = ends
    d = B.point - A.point
    length = float(np.linalg.norm(d))
    if length < _SAME_POINT * linkage.length or B.kind == "universal":
        return None
    z = d / length
    mass, center, about = linkage.inertia(link)
    line = _about_line(mass, center - A.point, about, z, length)
    made = _Parameters(name=name, source=_source(linkage.mechanism, link))
    lower: SlenderPart | Inertia | None = None
    spin: Literal["universal", "none"] = "none"
    first_axis: Vector | None = None
    if A.kind == "universal" and not (line.is_symmetric and line.axial <= _NO_AXIAL * line.across):
        if abs(float(A.second_axis @ z)) > _SAME_DIRECTION:
            notes.append(f"{name} stays a body: the second axis of its universal joint is not across it")
            return None
        y = A.second_axis * _orientation(linkage, link, A, z)
        R = np.column_stack([np.cross(y, z), y, z]).T
        lower, spin, h = made.full(mass, R @ (center - A.point), R @ about @ R.T), "universal", A.first_axis
        first_axis = (Constant(float(h[0])), Constant(float(h[1])), Constant(float(h[2])))
        notes.append(f"{name} is a full rod between a universal and a ball joint")
    else:
        if not line.is_symmetric:
            notes.append(f"{name} stays a body: between its two ball joints it is not axisymmetric")
            return None
        if line.axial > _NO_AXIAL * line.across and not options.lock_spins:
            notes.append(f"{name} stays a body: it may spin about its line, with {line.axial:.3g} kg m^2")
            return None
        if mass > 0.0:
            lower = made.slender(mass, line.center, line.across)
        unused = f", so that its axial inertia of {line.axial:.3g} kg m^2 plays no part" if line.axial else ""
        locked = "; its spin is locked" if A.kind == "ball" else ""
        notes.append(f"{name} is a {'slender' if mass else 'massless'} rod{locked}{unused}")
    rod = Rod(
        name=name,
        start=A.outside,
        end=B.outside,
        length=made.leaf("length", length, "m", "geometry"),
        lower=lower,
        spin=spin,
        first_axis=first_axis,
    )
    return rod, made.parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class _AboutLine:
    """A link seen along the line between its joints.

    Attributes:
        center: distance of the mass centre from A, m.
        across, axial: moments of inertia about the mass centre, kg m^2.
        is_symmetric: whether the mass centre lies on the line and the inertia does not change by turning about it.
    """

    center: float
    across: float
    axial: float
    is_symmetric: bool


def _about_line(mass: float, r: np.ndarray, about: np.ndarray, z: np.ndarray, length: float) -> _AboutLine:
    """Inertia `about` the mass centre r (from A) along the unit vector z."""
    P = np.eye(3) - np.outer(z, z)
    flat, axial = P @ about @ P, float(z @ about @ z)
    across = 0.5 * float(np.trace(flat))
    allowed = _SAME_MOMENT * max(across, axial, mass * length**2)
    is_round = np.abs(flat - across * P).max() <= allowed and np.abs(P @ about @ z).max() <= allowed
    is_centred = mass * float(np.linalg.norm(P @ r)) <= _SAME_POINT * mass * length
    return _AboutLine(center=float(r @ z), across=across, axial=axial, is_symmetric=bool(is_round and is_centred))


def _orientation(linkage: Linkage, link: Sequence[str], end: _End, z: np.ndarray) -> float:
    """Sign of the second axis along h x z at the reference pose, h and z as in `Rod.first_axis`."""
    turned = linkage.world[link[0]].rotation
    h = linkage.world[end.outside.body].rotation @ end.first_axis
    return 1.0 if float(np.cross(h, turned @ z) @ turned @ end.second_axis) >= 0.0 else -1.0


@dataclass(slots=True)
class _Parameters:
    """Leaf parameters of a rod, worked out from the bodies of its link."""

    name: str
    source: str
    parameters: list[Parameter] = field(default_factory=list)

    def leaf(self, name: str, value: float, unit: str, group: str) -> Leaf:
        full = f"{self.name}.rod.{name}"
        self.parameters.append(
            Parameter(name=full, value=value, unit=unit, group=group, status="inferred", source=self.source)
        )
        return Leaf(full)

    def slender(self, mass: float, center: float, across: float) -> SlenderPart:
        """Inertia about A of a link with its mass centre on its line and a moment across it about that centre."""
        m, s = self.leaf("mass", mass, "kg", "inertia"), self.leaf("center", center, "m", "inertia")
        I = self.leaf("inertia", across, "kg m^2", "inertia")
        h = multiply(m, s)
        return SlenderPart(mass=m, first_moment=h, second_moment=add(I, multiply(h, s)))

    def full(self, mass: float, center: np.ndarray, about: np.ndarray) -> Inertia:
        """Inertia about A in the rod frame."""
        m = self.leaf("mass", mass, "kg", "inertia")
        x, y, z = (self.leaf(f"center[{k}]", float(center[k]), "m", "inertia") for k in range(3))
        moments = [
            self.leaf(f"inertia.{'xyz'[i]}{'xyz'[j]}", float(about[i, j]), "kg m^2", "inertia")
            for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
        ]
        xx, xy, yy, xz, yz, zz = moments
        return about_origin(m, (x, y, z), (xx, xy, yy, xz, yz, zz))


def _source(mechanism: Mechanism, link: Sequence[str]) -> str:
    return f"{Path(mechanism.file).name}: {', '.join(link)}"


def _carriers(
    linkage: Linkage, bodies: tuple[Body, ...], joints: tuple[Joint, ...], platform: str, notes: list[str]
) -> tuple[Joint, ...]:
    """Free joints for what no joint holds any more, one for each loose part: rods do not carry coordinates."""
    added: list[Joint] = []
    names = [platform, *(body.name for body in bodies if body.name != platform)]
    while True:
        reached = linkage.reached((*joints, *added))
        loose = [name for name in names if name not in reached and any(body.name == name for body in bodies)]
        if not loose:
            return tuple(added)
        body = loose[0]
        pose = linkage.world[body]
        x, y, z, w = (float(value) for value in Rotation.from_matrix(pose.rotation).as_quat(canonical=True))
        px, py, pz = (float(value) for value in pose.position)
        notes.append(f"{body} hangs on rods alone and gets six coordinates of its own")
        added.append(
            Joint(
                name="platform" if body == platform else f"{body}_free",
                kind="free",
                parent=Placement(body=BASE),
                child=Placement(body=body),
                reference=(px, py, pz, w, x, y, z),
                freedoms=(Freedom(),) * 6,
            )
        )


def _used(mechanism: Mechanism) -> set[str]:
    """Leaf parameters that occur in a mechanism."""
    found: set[str] = set()

    def visit(value: object) -> None:
        if isinstance(value, Leaf | Call):
            found.update(leaves(value))
        elif isinstance(value, tuple):
            for item in value:
                visit(item)
        elif is_dataclass(value) and not isinstance(value, ParameterTable | Constant):
            for part in fields(value):
                visit(getattr(value, part.name))

    visit(mechanism)
    return found
