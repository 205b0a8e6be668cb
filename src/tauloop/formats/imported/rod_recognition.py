"""Recognition of rods: a link with a ball joint at both ends becomes a `Rod`.

Other tools represent a rod by a rigid body on a chain of joints, closed by a constraint. This needs
up to six coordinates and six loop equations; a two-point link needs one equation and no coordinate.
The following elements are recognized:

- the link: one body, or several bodies welded together, with no other joints;
- a ball joint: a spherical joint, or three revolute joints through one point with massless bodies
  between them;
- a universal joint: a joint of that kind, or two such revolute joints with perpendicular axes.

Between two ball joints a link spins freely about its own axis. An axisymmetric link that does not
spin moves like a slender rod. Its axial inertia has no effect, so locking the spin does not change
the motion otherwise. Between a universal and a ball joint a link becomes a rod with full inertia
tensor, whose spin the universal joint determines. Other links remain bodies. Two links on a slide
become a telescopic rod (`telescopes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.formats.imported.linkage import Linkage
from tauloop.formats.imported.rod_ends import POINT_TOLERANCE, End, ends_of
from tauloop.formats.imported.rod_inertia import RodPart, rod_inertias
from tauloop.formats.imported.rod_solids import RodLink, rod_solids
from tauloop.formats.imported.starts import clamp_initial_positions, free_joint
from tauloop.formats.imported.telescopes import Leg, driving, legs, telescopes, telescopic_rod
from tauloop.formats.imported.welds import with_merged_welds
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.mechanism.expression import Parameter, ParameterTable
from tauloop.mechanism.links.ball_links import lies_between_balls
from tauloop.mechanism.model import BASE, Body, Joint, Mechanism, Placement, Rod


def recognize_rods(
    mechanism: Mechanism, options: RodRecognition
) -> tuple[Mechanism, tuple[str, ...]]:
    """Return the machine with recognized links converted to rods, and notes on the changes.

    A body that is then connected only to rods gets a free joint to the base.

    Args:
        mechanism: the machine.
        options: whether spins may be locked.

    Returns:
        The machine, and notes on every link with two ball or universal joints.
    """
    linkage = Linkage(mechanism)
    notes: list[str] = []
    rods: list[Rod] = []
    parameters: list[Parameter] = []
    removed_bodies: set[str] = set()
    removed_joints: set[str] = set()
    telescopic: dict[str, Leg] = {}
    links: dict[str, RodLink] = {}

    def add_rod(
        rod: Rod,
        leaf_parameters: list[Parameter],
        parts: Mapping[str, RodLink],
        ends: tuple[End, End],
    ) -> None:
        rods.append(rod)
        parameters.extend(leaf_parameters)
        links.update(parts)
        removed_bodies.update(
            *(part.link for part in parts.values()), *(end.bodies for end in ends)
        )
        removed_joints.update(*(end.joints for end in ends))

    for leg in legs(linkage, notes):
        if removed_joints & {*leg.A.joints, *leg.B.joints}:
            continue
        telescope = telescopic_rod(linkage, leg, options, notes)
        if telescope is None:
            continue
        rod, (z, z_up) = telescope[0], leg.line
        parts = {
            f"{rod.name}.lower": RodLink(rod=rod, link=leg.lower, end=leg.A.point, line=z),
            f"{rod.name}.upper": RodLink(rod=rod, link=leg.upper, end=leg.B.point, line=z_up),
        }
        add_rod(*telescope, parts, (leg.A, leg.B))
        telescopic[leg.slide.name] = leg
    for link in linkage.links():
        ends = ends_of(linkage, link)
        if ends is None or removed_joints & {*ends[0].joints, *ends[1].joints}:
            continue
        rod_and_parameters = _rod(linkage, link, ends, options, notes)
        if rod_and_parameters is not None:
            rod, (A, B) = (
                rod_and_parameters[0],
                ends if ends[0].outside == rod_and_parameters[0].start else ends[::-1],
            )
            add_rod(
                *rod_and_parameters,
                {rod.name: RodLink(rod=rod, link=link, end=A.point, line=B.point - A.point)},
                ends,
            )
    if not rods:
        return mechanism, tuple(notes)
    joints = tuple(
        joint
        for joint in mechanism.joints
        if joint.name not in removed_joints
        and not {joint.parent.body, joint.child.body} & removed_bodies
    )
    rod_names = {rod.name for rod in rods}
    removed = [joint for joint in mechanism.joints if joint not in joints]
    limited = [
        joint.name for joint in removed if joint.name not in rod_names and _is_limited(joint)
    ]
    if limited:
        notes.append(f"limits of the joints of rods are omitted: {', '.join(limited)}")
    bodies = tuple(body for body in mechanism.bodies if body.name not in removed_bodies)
    joints += _free_joints_of_groups(linkage, bodies, joints, mechanism.platform.body, notes)
    actuators = tuple(driving(actuator, telescopic) for actuator in mechanism.actuators)
    changed = replace(
        mechanism, bodies=bodies, joints=joints, rods=(*mechanism.rods, *rods), actuators=actuators
    )
    remaining_solids = [solid for solid in mechanism.solids if solid.body not in removed_bodies]
    in_joints = removed_bodies.difference(*(part.link for part in links.values()))
    if omitted := sorted({solid.body for solid in mechanism.solids} & in_joints):
        notes.append(f"shapes inside the joints of rods are omitted: {', '.join(omitted)}")
    changed = replace(changed, solids=(*remaining_solids, *rod_solids(linkage, changed, links)))
    table = ParameterTable((*mechanism.parameters, *parameters))
    return replace(changed, parameters=table).without_unused_parameters(), tuple(notes)


def _is_limited(joint: Joint) -> bool:
    """Return whether any coordinate of a joint has a finite limit."""
    return any(np.isfinite([freedom.lower, freedom.upper]).any() for freedom in joint.freedoms)


def finished(
    mechanism: Mechanism, notes: Sequence[str], options: ImportOptions, *, is_platform_open: bool
) -> Mechanism:
    """Return an imported machine after the last steps of an import.

    Start values are moved into their limits, rods are recognized if the options request it, and
    welded bodies are merged. The notes are added to the machine's description.

    Args:
        mechanism: the machine as in its file.
        notes: notes of the import.
        options: import options.
        is_platform_open: whether the caller named no platform. Then another body becomes the
            platform if the current one is a rod.
    """
    mechanism, changed_starts = clamp_initial_positions(mechanism, is_chosen=bool(options.keyframe))
    lines = [*notes, *(f"omitted: {force}" for force in mechanism.omitted_forces), *changed_starts]
    if options.rods is not None:
        platform = mechanism.platform
        if is_platform_open:
            mechanism = replace(
                mechanism, platform=replace(platform, body=BASE, tool=Placement(body=BASE))
            )
        mechanism, new_notes = recognize_rods(mechanism, options.rods)
        lines += new_notes
        if is_platform_open:
            body_names = [body.name for body in mechanism.bodies]
            with_inertia = [body.name for body in mechanism.bodies if body.inertia is not None]
            if platform.body not in body_names:
                last = (with_inertia or body_names)[-1]
                platform = replace(platform, body=last, tool=Placement(body=last))
            mechanism = replace(mechanism, platform=platform)
    mechanism, new_notes = with_merged_welds(mechanism)
    lines += new_notes
    if is_platform_open:
        mechanism = _with_platform_outside_legs(mechanism)
        lines.append(f"the platform is {mechanism.platform.body}; the file does not state it")
    head = f"Imported from {Path(mechanism.file).name}."
    return replace(mechanism, description="\n".join([head, *(f"- {note}" for note in lines)]))


def _with_platform_outside_legs(mechanism: Mechanism) -> Mechanism:
    """Return the machine with another platform if the current one is part of a leg.

    A leg is a link with a ball or universal joint at each end, or two such links on a slide. The
    new platform is the link with the most joints; of several such links, the last in the file.
    """
    platform = mechanism.platform
    without_platform = replace(
        mechanism, platform=replace(platform, body=BASE, tool=Placement(body=BASE))
    )
    linkage = Linkage(without_platform)
    links = [link for link in linkage.links() if any(map(linkage.mass, link))]
    leg_links = {link for _, pair, _ in telescopes(linkage) for link in pair}
    leg_links.update(
        link
        for link in links
        if lies_between_balls(without_platform, link) or ends_of(linkage, link) is not None
    )
    if not any(platform.body in link for link in leg_links):
        return mechanism
    other_links = [link for link in links if link not in leg_links]
    if not other_links:
        return mechanism
    candidate = max(reversed(other_links), key=lambda link: len(linkage.joints_out_of(link)))
    body = max(candidate, key=linkage.mass)
    return replace(mechanism, platform=replace(platform, body=body, tool=Placement(body=body)))


def _rod(
    linkage: Linkage,
    link: Sequence[str],
    ends: tuple[End, End],
    options: RodRecognition,
    notes: list[str],
) -> tuple[Rod, list[Parameter]] | None:
    """Return a link as a rod, named after its heaviest body, and the rod's parameters.

    The result is None if the link cannot be represented by a rod.
    """
    name = max(link, key=linkage.mass)
    if ends[1].kind == "universal":
        ends = (ends[1], ends[0])
    A, B = ends
    d = B.point - A.point
    length = float(np.linalg.norm(d))
    if length < POINT_TOLERANCE * linkage.length or B.kind == "universal":
        return None
    part = RodPart(name="rod", link=tuple(link), end=A.point, line=d / length, rotation=np.eye(3))
    inertias = rod_inertias(linkage, name, [part], A, length, options, notes, unconverted="body")
    if inertias is None:
        return None
    (lower,), (leaves,) = inertias.parts, inertias.leaves
    rod = Rod(
        name=name,
        start=A.outside,
        end=B.outside,
        length=leaves.leaf(f"{name}.rod.length", length, "m", "geometry"),
        lower=lower,
        spin=inertias.spin,
        first_axis=inertias.first_axis,
    )
    return rod, leaves.parameters


def _free_joints_of_groups(
    linkage: Linkage,
    bodies: tuple[Body, ...],
    joints: tuple[Joint, ...],
    platform: str,
    notes: list[str],
) -> tuple[Joint, ...]:
    """Return a free joint to the base for each group of bodies that only rods connect to the base.

    The groups need these joints because rods have no coordinates.
    """
    added: list[Joint] = []
    body_names = [body.name for body in bodies]
    names = [platform, *(name for name in body_names if name != platform)]
    while True:
        reached = linkage.joint_distances((*joints, *added))
        unconnected = [name for name in names if name not in reached and name in body_names]
        if not unconnected:
            return tuple(added)
        body = unconnected[0]
        notes.append(f"{body} is connected only to rods and gets six coordinates")
        added.append(
            free_joint(
                "platform" if body == platform else f"{body}_free", body, linkage.world[body]
            )
        )
