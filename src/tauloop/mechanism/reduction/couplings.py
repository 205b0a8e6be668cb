"""Bodies that never rotate: their joints are moved to one point, or they become point masses.

This is exact: all points of a body that never rotates have the same velocity. Its mass may therefore
be moved to any point, and its joints and rod ends may be displaced by a constant vector. The
potential energy changes by a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problem, Problems
from tauloop.common.records import dataclass
from tauloop.mechanism.expression import steps_from
from tauloop.mechanism.links.graph import far_end, far_side, joints_of, rods_of, side
from tauloop.mechanism.model import BASE, Inertia, Joint, Mechanism, Placement, Rod, Vector
from tauloop.mechanism.poses import rotation_matrix
from tauloop.mechanism.reduction.graph import cluster, displaced, numbers, with_added, without
from tauloop.mechanism.reduction.inertia import (
    mean,
    minus,
    point_mass,
    rotated_vector,
    rounded_entries,
)
from tauloop.mechanism.reduction.planar import axis_on, frame
from tauloop.mechanism.reduction.steps import BodyMotions, Step, limits_of, require

#: Distance, relative to the characteristic length, below which points coincide.
SAME_POINT_TOLERANCE = 1e-12
#: Axes count as parallel if the sine of the angle between them is below this.
PARALLEL = 1e-9


@dataclass(frozen=True, slots=True)
class _Attachment:
    """A joint or rod end on a body.

    Attributes:
        point: position on the body, m.
        body: body at the other side of the joint or at the other end of the rod.
        joint, rod: the joint or the rod.
    """

    point: Vector
    body: str
    joint: Joint | None = None
    rod: Rod | None = None


def _attachments(mechanism: Mechanism, body: str) -> list[_Attachment]:
    """Return the joints that permit rotation and the rods on a body."""
    joints = [
        _Attachment(side(joint, body).position, far_side(joint, body).body, joint=joint)
        for joint in joints_of(mechanism, body)
        if joint.kind
        not in ("fixed", "prismatic", "translational", "planar", "schoenflies", "free")
    ]
    rods = [
        _Attachment(end.position, far_end(rod, body).body, rod=rod)
        for rod in rods_of(mechanism, body)
        for end in (rod.start, rod.end)
        if end.body == body
    ]
    return joints + rods


def gather_joints(
    mechanism: Mechanism, body: str, motion: BodyMotions, at: Vector | None = None
) -> tuple[Mechanism, Step]:
    """Shift all elements on a body that never rotates until its joints coincide in one point.

    The bodies connected to a joint are displaced by a constant vector, up to the next bodies that
    never rotate.

    Args:
        mechanism: the machine.
        body: name of the body.
        motion: motion of the bodies.
        at: the point on the body; the mean of the joint positions if None.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the body rotates, or connected bodies would need different displacements.
    """
    attachments = _attachments(mechanism, body)
    _require_translating(mechanism, body, motion)
    if not attachments:
        return mechanism, Step(name="gather joints")
    meeting_point = at if at is not None else mean([attachment.point for attachment in attachments])
    if all(attachment.point == meeting_point for attachment in attachments):
        return mechanism, Step(name="gather joints")
    groups: dict[frozenset[str], list[_Attachment]] = {}
    single_attachments: list[_Attachment] = []
    for attachment in attachments:
        displaced_bodies = cluster(mechanism, attachment.body, motion.translating)
        if displaced_bodies:
            groups.setdefault(displaced_bodies, []).append(attachment)
        else:
            single_attachments.append(attachment)
    problems = Problems()
    R = rounded_entries(motion.orientation[body])
    for displaced_bodies, members in groups.items():
        points = np.array([numbers(mechanism, member.point) for member in members])
        if (
            np.abs(points - points[0]).max()
            > SAME_POINT_TOLERANCE * mechanism.characteristic_length
        ):
            problems.add(
                f"bodies.{body}",
                f"{', '.join(sorted(displaced_bodies))} are connected, but are attached to it in "
                f"{len(members)} points up to {1e3 * np.abs(points - points[0]).max():.4g} mm apart",
                "group parallel links first",
            )
        if mechanism.platform.body in displaced_bodies:
            problems.add(mechanism.platform.body, "would be displaced", "skip this step")
    for attachment in single_attachments:
        if attachment.joint is not None:
            what = f"connects the body to {attachment.body}, which does not rotate either"
            problems.add(f"joints.{attachment.joint.name}", what, f"lump {attachment.body} first")
    require(mechanism, problems)
    for displaced_bodies, members in groups.items():
        mechanism = displaced(
            mechanism,
            displaced_bodies,
            rotated_vector(R, minus(meeting_point, members[0].point)),
            motion,
        )
    for attachment in single_attachments:
        if attachment.rod is not None:
            shift = rotated_vector(R, minus(meeting_point, attachment.point))
            mechanism = displaced(
                mechanism, frozenset(), shift, motion, rods=(attachment.rod.name,)
            )
    mechanism = _with_joints_at(mechanism, body, meeting_point)
    step = Step(
        name="gather joints",
        removed=(),
        kept=(body,),
        preserved=("mass", "mass center up to a constant", "inertia"),
    )
    return mechanism, step


def _with_joints_at(mechanism: Mechanism, body: str, point: Vector) -> Mechanism:
    """Set the position of all joints on a body to the same expression."""

    def at_point(placement: Placement) -> Placement:
        return replace(placement, position=point) if placement.body == body else placement

    rotating_joints = {
        attachment.joint.name
        for attachment in _attachments(mechanism, body)
        if attachment.joint is not None
    }
    return replace(
        mechanism,
        joints=tuple(
            replace(joint, parent=at_point(joint.parent), child=at_point(joint.child))
            if joint.name in rotating_joints
            else joint
            for joint in mechanism.joints
        ),
        rods=tuple(
            replace(rod, start=at_point(rod.start), end=at_point(rod.end)) for rod in mechanism.rods
        ),
    )


def _require_translating(mechanism: Mechanism, body: str, motion: BodyMotions) -> None:
    """Raise an error if a body rotates or is the base."""
    problems = Problems()
    if body == BASE or body not in motion.translating:
        problems.add(
            f"bodies.{body}",
            "rotates, or is the base",
            "name a body that only translates, so that all its points have the same velocity",
        )
    require(mechanism, problems)


def point_masses(mechanism: Mechanism, motion: BodyMotions) -> tuple[Mechanism, Step]:
    """Replace every body that never rotates by a point mass at its origin.

    Returns:
        The changed machine, and the step with the quantities that it preserves.
    """
    reduced = tuple(
        replace(body, inertia=Inertia(mass=body.inertia.mass))
        if body.inertia is not None and body.name in motion.translating
        else body
        for body in mechanism.bodies
    )
    changed = tuple(
        new.name for new, old in zip(reduced, mechanism.bodies, strict=True) if new != old
    )
    step = Step(
        name="point masses",
        kept=changed,
        preserved=(
            "mass",
            "mass center up to a constant",
            "inertia (only the mass of a body that never rotates has an effect)",
        ),
    )
    return replace(mechanism, bodies=reduced), step


def lump_translating_body(
    mechanism: Mechanism, body: str, motion: BodyMotions, host: str | None = None
) -> tuple[Mechanism, Step]:
    """Replace a coupling body that never rotates by a point mass at one of its joints.

    All elements on it are moved to that joint, and its mass is added to the link there. Its other
    joints then connect the links directly.

    Args:
        mechanism: the machine.
        body: the coupling body.
        motion: motion of the bodies.
        host: joint that receives the mass; if None, the joint on the link nearest to the base.

    Returns:
        The changed machine, and the step with the quantities that it preserves.

    Raises:
        InputError: the body rotates, is the platform, or its joints cannot be merged.
    """
    _require_translating(mechanism, body, motion)
    joints = [
        attachment.joint
        for attachment in _attachments(mechanism, body)
        if attachment.joint is not None
    ]
    all_joints = joints_of(mechanism, body)
    problems = Problems()
    if body == mechanism.platform.body:
        problems.add(body, "is the platform", "gather its joints instead")
    for joint in all_joints:
        if mechanism.is_loaded(joint):
            problems.add(
                f"joints.{joint.name}",
                "carries a load, such as friction or a motor",
                "keep this body",
            )
    guides = [joint for joint in all_joints if joint not in joints]
    for joint in guides:
        if not (joint.kind == "translational" and far_side(joint, body).body == BASE):
            problems.add(
                f"joints.{joint.name}",
                f"is a {joint.kind} joint that moves the body",
                "keep this body",
            )
    if not joints:
        problems.add(body, "has no joint that could receive its mass", "keep this body")
    require(mechanism, problems)
    receiving_joint = _receiving_joint(mechanism, body, joints, host)
    axis = axis_on(mechanism, receiving_joint, side(receiving_joint, body))
    for joint in joints:
        sine = float(np.linalg.norm(np.cross(axis, axis_on(mechanism, joint, side(joint, body)))))
        if joint.kind != "revolute" or joint.axes != receiving_joint.axes or sine > PARALLEL:
            problems.add(
                f"joints.{joint.name}",
                f"its axis differs from that of {receiving_joint.name}",
                "name revolute joints with the same axis",
            )
    require(mechanism, problems)
    point = side(receiving_joint, body).position
    mechanism, _ = gather_joints(mechanism, body, motion, at=point)
    carrier = far_side(receiving_joint, body)
    inertia = mechanism.body(body).inertia
    if inertia is not None:
        mechanism = with_added(mechanism, carrier.body, point_mass(inertia.mass, carrier.position))
    remaining_joints = []
    for joint in mechanism.joints:
        if joint.name == receiving_joint.name or joint.name in {guide.name for guide in guides}:
            continue
        remaining_joints.append(
            _direct_joint(mechanism, joint, receiving_joint, body)
            if joint.name in {joint.name for joint in joints}
            else joint
        )

    def moved_end(end: Placement) -> Placement:
        return Placement(body=carrier.body, position=carrier.position) if end.body == body else end

    rods = tuple(
        replace(rod, start=moved_end(rod.start), end=moved_end(rod.end)) for rod in mechanism.rods
    )
    mechanism = without(replace(mechanism, joints=tuple(remaining_joints), rods=rods), (body,))
    step = Step(
        name="lump translating body",
        removed=(body,),
        kept=(carrier.body,),
        preserved=(
            "mass",
            "mass center up to a constant",
            "inertia (only the mass of a body that never rotates has an effect)",
        ),
        lost=limits_of(joints),
    )
    return mechanism, step


def _receiving_joint(
    mechanism: Mechanism, body: str, joints: Sequence[Joint], name: str | None
) -> Joint:
    if name is not None:
        matches = [joint for joint in joints if joint.name == name]
        if not matches:
            what = f"{name} is not a joint of {body}"
            require(
                mechanism,
                [Problem(where="host", what=what, remedy=", ".join(j.name for j in joints))],
            )
        return matches[0]
    moving = ("translational", "planar", "schoenflies", "free")
    connections = (
        joint.bodies
        for joint in mechanism.joints
        if joint.kind not in moving and body not in joint.bodies
    )
    distance = steps_from(BASE, connections)
    return min(
        joints, key=lambda joint: distance.get(far_side(joint, body).body, len(mechanism.bodies))
    )


def _direct_joint(mechanism: Mechanism, joint: Joint, host: Joint, body: str) -> Joint:
    """Return a joint of the body as a joint between the host joint's link and its own link.

    The angle of the joint is measured between these two links.
    """
    host_link, joint_link = far_side(host, body), far_side(joint, body)
    R = _rotation(host, host_link, frame(mechanism, side(host, body))) @ np.linalg.inv(
        _rotation(joint, joint_link, frame(mechanism, side(joint, body)))
    )
    i = "xyz".index(joint.axes[0])
    j, k = (i + 1) % 3, (i + 2) % 3
    angle = float(np.arctan2(R[k, j], R[j, j]))
    return replace(
        joint,
        parent=host_link,
        child=joint_link,
        reference=(angle,),
        freedoms=(),
    )


def _rotation(joint: Joint, frame_on_link: Placement, frame_on_body: np.ndarray) -> np.ndarray:
    """Return the orientation (3, 3) of the body relative to a joint's frame on the link.

    The joint is at its start value.
    """
    angle = joint.reference[0] if joint.reference else 0.0
    return (
        rotation_matrix([(joint.axes[0], angle if joint.parent == frame_on_link else -angle)])
        @ frame_on_body.T
    )
