"""Rods among the bodies of an imported machine: a link with a ball joint at both ends becomes a `Rod`.

Other tools write a rod as a rigid body on a chain of joints, closed by a constraint: up to six coordinates and six loop
equations, where a two-point link needs one equation and no coordinate. What is recognised:

- the link: one body, or several that are welded together, with nothing else on them;
- a ball joint: a spherical joint, or three revolute joints through one point with massless bodies between them;
- a universal joint: of that kind, or two such revolute joints at right angles.

Between two ball joints a link spins freely about its own axis. An axisymmetric one that does not spin moves just as a
slender rod: its axial inertia plays no part, and locking the spin loses nothing else. Between a universal and a ball
joint a link becomes a full rod, whose spin the universal joint forces. Links that are neither stay what they are. Two
links on a slide are a telescopic rod (`telescopes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from tauloop.formats.linkage import Linkage
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.formats.rod_ends import SAME_DIRECTION, SAME_POINT, End, ends_of, orientation
from tauloop.formats.rod_inertia import RodParameters, about_line, source_of
from tauloop.formats.starts import starting_inside
from tauloop.formats.telescopes import driving, legs, telescopic_rod
from tauloop.formats.welds import with_merged_welds
from tauloop.mechanism.expression import Call, Constant, Leaf, leaves
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
from tauloop.mechanism.poses import rotation_quaternion


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
    shrinking: set[str] = set()

    def take(rod: Rod, leaf_parameters: list[Parameter], link: Sequence[str], ends: tuple[End, End]) -> None:
        rods.append(rod)
        parameters.extend(leaf_parameters)
        gone_bodies.update(link, *(end.bodies for end in ends))
        gone_joints.update(*(end.joints for end in ends))

    for leg in legs(linkage, notes):
        if gone_joints & {*leg.A.joints, *leg.B.joints}:
            continue
        telescope = telescopic_rod(linkage, leg, options, notes)
        if telescope is None:
            continue
        take(*telescope, (*leg.lower, *leg.upper), (leg.A, leg.B))
        if leg.sense < 0.0:
            shrinking.add(leg.slide.name)
    for link in linkage.links():
        ends = ends_of(linkage, link)
        if ends is None or gone_joints & {name for end in ends for name in end.joints}:
            continue
        name = _name(linkage, link)
        made = _rod(linkage, link, name, ends, options, notes)
        if made is not None:
            take(*made, link, ends)
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
        if joint not in joints
        and not any(rod.name == joint.name for rod in rods)
        and any(np.isfinite([f.lower, f.upper]).any() for f in joint.freedoms)
    ]
    if limited:
        notes.append(f"limits inside the joints of rods are left out: {', '.join(limited)}")
    bodies = tuple(body for body in mechanism.bodies if body.name not in gone_bodies)
    joints += _carriers(linkage, bodies, joints, mechanism.platform.body, notes)
    actuators = tuple(driving(actuator, shrinking) for actuator in mechanism.actuators)
    changed = replace(mechanism, bodies=bodies, joints=joints, rods=(*mechanism.rods, *rods), actuators=actuators)
    table = ParameterTable((*mechanism.parameters, *parameters))
    used = _used(changed)
    return replace(changed, parameters=ParameterTable(tuple(p for p in table if p.name in used))), tuple(notes)


def finished(
    mechanism: Mechanism, notes: Sequence[str], options: ImportOptions, *, is_platform_open: bool
) -> Mechanism:
    """An imported machine: rods recognised where asked for, welds merged, a start within ranges, notes in its text.

    Args:
        mechanism: as the file has it.
        notes: what was found on the way.
        options: of the import.
        is_platform_open: whether nobody named the platform, so that it may be another body where it turns out a rod.
    """
    mechanism, moved = starting_inside(mechanism, is_chosen=bool(options.keyframe))
    found = [*notes, *moved]
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
    mechanism, more = with_merged_welds(mechanism)
    found += more
    if is_platform_open:
        found.append(f"the platform is {mechanism.platform.body}: the file does not say it")
    head = f"Imported from {Path(mechanism.file).name}."
    return replace(mechanism, description="\n".join([head, *(f"- {note}" for note in found)]))


def _name(linkage: Linkage, link: Sequence[str]) -> str:
    """A rod is called after the heaviest body of its link."""
    return max(link, key=lambda body: linkage.mass(body))


def _rod(
    linkage: Linkage,
    link: Sequence[str],
    name: str,
    ends: tuple[End, End],
    options: RodRecognition,
    notes: list[str],
) -> tuple[Rod, list[Parameter]] | None:
    """The rod with its leaf parameters; None where the link must stay a body, which is noted."""
    if ends[1].kind == "universal":
        ends = (ends[1], ends[0])
    A, B = ends
    d = B.point - A.point
    length = float(np.linalg.norm(d))
    if length < SAME_POINT * linkage.length or B.kind == "universal":
        return None
    z = d / length
    mass, center, about = linkage.inertia(link)
    line = about_line(mass, center - A.point, about, z, length)
    made = RodParameters(name=name, source=source_of(linkage.mechanism, link))
    lower: SlenderPart | Inertia | None = None
    spin: Literal["universal", "none"] = "none"
    first_axis: Vector | None = None
    if A.kind == "universal" and not line.is_thin:
        if abs(float(A.second_axis @ z)) > SAME_DIRECTION:
            notes.append(f"{name} stays a body: the second axis of its universal joint is not across it")
            return None
        y = A.second_axis * orientation(linkage, link, A, z)
        R = np.column_stack([np.cross(y, z), y, z]).T
        lower, spin, h = made.full(mass, R @ (center - A.point), R @ about @ R.T), "universal", A.first_axis
        first_axis = (Constant(float(h[0])), Constant(float(h[1])), Constant(float(h[2])))
        notes.append(f"{name} is a full rod between a universal and a ball joint")
    else:
        if not line.is_symmetric:
            notes.append(f"{name} stays a body: between its two ball joints it is not axisymmetric")
            return None
        if not line.is_thin and not options.lock_spins:
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
        w, x, y, z = rotation_quaternion(pose.rotation).tolist()
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
