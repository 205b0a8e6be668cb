"""Bodies that never rotate: their joints are moved to one point, or they become point masses.

This is exact: all points of a body that never rotates have the same velocity. Its mass may therefore
be moved to any point, and the elements on it may be displaced by a constant vector. The potential
energy changes by a constant.
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
from tauloop.mechanism.reduction.inertia import clean, mean, minus, point_mass, turned_vector
from tauloop.mechanism.reduction.planar import axis_on, frame
from tauloop.mechanism.reduction.steps import BodyMotions, Step, limits_of, require

#: Distance, relative to the characteristic length, below which points coincide.
TOGETHER = 1e-12
#: Axes count as parallel if the sine of the angle between them is below this.
PARALLEL = 1e-9


@dataclass(frozen=True, slots=True)
class _Attachment:
    """A joint or rod end on a body: its point there, and the body (or the rod) beyond it."""

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

    Everything beyond a joint is displaced by a constant vector, up to the next bodies that never
    rotate.

    Args:
        mechanism: the machine.
        body: name of the body.
        motion: how the bodies move.
        at: the point on the body; the mean of the joint positions if None.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: the body rotates, or connected bodies would need different displacements.
    """
    hanging = _attachments(mechanism, body)
    _require_still(mechanism, body, motion)
    if not hanging:
        return mechanism, Step(name="gather joints")
    meet = at if at is not None else mean([a.point for a in hanging])
    if all(a.point == meet for a in hanging):
        return mechanism, Step(name="gather joints")
    groups: dict[frozenset[str], list[_Attachment]] = {}
    loose: list[_Attachment] = []
    for attachment in hanging:
        beyond = cluster(mechanism, attachment.body, motion.translating)
        if beyond:
            groups.setdefault(beyond, []).append(attachment)
        else:
            loose.append(attachment)
    problems = Problems()
    R = clean(motion.orientation[body])
    for beyond, members in groups.items():
        points = np.array([numbers(mechanism, member.point) for member in members])
        if np.abs(points - points[0]).max() > TOGETHER * mechanism.characteristic_length:
            problems.add(
                f"bodies.{body}",
                f"{', '.join(sorted(beyond))} are connected, but are attached to it in "
                f"{len(members)} points up to {1e3 * np.abs(points - points[0]).max():.4g} mm apart",
                "group parallel links first",
            )
        if mechanism.platform.body in beyond:
            problems.add(mechanism.platform.body, "would be displaced", "skip this step")
    for a in loose:
        if a.joint is not None:
            what = f"connects the body to {a.body}, which does not rotate either"
            problems.add(f"joints.{a.joint.name}", what, f"lump {a.body} first")
    require(mechanism, problems)
    for beyond, members in groups.items():
        mechanism = displaced(
            mechanism, beyond, turned_vector(R, minus(meet, members[0].point)), motion
        )
    for attachment in loose:
        if attachment.rod is not None:
            by = turned_vector(R, minus(meet, attachment.point))
            mechanism = displaced(mechanism, frozenset(), by, motion, rods=(attachment.rod.name,))
    mechanism = _put(mechanism, body, meet)
    step = Step(
        name="gather joints",
        removed=(),
        kept=(body,),
        preserved=("mass", "mass center up to a constant", "inertia"),
    )
    return mechanism, step


def _put(mechanism: Mechanism, body: str, point: Vector) -> Mechanism:
    """Set the position of all joints on a body to the same expression."""

    def at_point(placement: Placement) -> Placement:
        return replace(placement, position=point) if placement.body == body else placement

    turning = {a.joint.name for a in _attachments(mechanism, body) if a.joint is not None}
    return replace(
        mechanism,
        joints=tuple(
            replace(joint, parent=at_point(joint.parent), child=at_point(joint.child))
            if joint.name in turning
            else joint
            for joint in mechanism.joints
        ),
        rods=tuple(
            replace(rod, start=at_point(rod.start), end=at_point(rod.end)) for rod in mechanism.rods
        ),
    )


def _require_still(mechanism: Mechanism, body: str, motion: BodyMotions) -> None:
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
        The changed machine, and the step with what it preserves.
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
        body: the coupling element.
        motion: how the bodies move.
        host: joint that receives the mass; if None, the joint on the link nearest to the base.

    Returns:
        The changed machine, and the step with what it preserves.

    Raises:
        InputError: the body rotates, is the platform, or its joints cannot be merged.
    """
    _require_still(mechanism, body, motion)
    joints = [a.joint for a in _attachments(mechanism, body) if a.joint is not None]
    all_joints = joints_of(mechanism, body)
    problems = Problems()
    if body == mechanism.platform.body:
        problems.add(body, "is the platform", "gather its joints instead")
    for j in all_joints:
        if mechanism.is_loaded(j):
            problems.add(
                f"joints.{j.name}", "carries a load, such as friction or a motor", "keep this body"
            )
    guides = [j for j in all_joints if j not in joints]
    for j in guides:
        if not (j.kind == "translational" and far_side(j, body).body == BASE):
            problems.add(
                f"joints.{j.name}", f"is a {j.kind} joint that moves the body", "keep this body"
            )
    if not joints:
        problems.add(body, "has no joint that could receive its mass", "keep this body")
    require(mechanism, problems)
    chosen = _host(mechanism, body, joints, host)
    e = axis_on(mechanism, chosen, side(chosen, body))
    for joint in joints:
        off = float(np.linalg.norm(np.cross(e, axis_on(mechanism, joint, side(joint, body)))))
        if joint.kind != "revolute" or joint.axes != chosen.axes or off > PARALLEL:
            problems.add(
                f"joints.{joint.name}",
                f"its axis differs from that of {chosen.name}",
                "name revolute joints with the same axis",
            )
    require(mechanism, problems)
    point = side(chosen, body).position
    mechanism, _ = gather_joints(mechanism, body, motion, at=point)
    carrier = far_side(chosen, body)
    inertia = mechanism.body(body).inertia
    if inertia is not None:
        mechanism = with_added(mechanism, carrier.body, point_mass(inertia.mass, carrier.position))
    rest = []
    for joint in mechanism.joints:
        if joint.name == chosen.name or joint.name in {guide.name for guide in guides}:
            continue
        rest.append(
            _rehung(mechanism, joint, chosen, body)
            if joint.name in {j.name for j in joints}
            else joint
        )

    def rehung_end(end: Placement) -> Placement:
        return Placement(body=carrier.body, position=carrier.position) if end.body == body else end

    rods = tuple(
        replace(rod, start=rehung_end(rod.start), end=rehung_end(rod.end)) for rod in mechanism.rods
    )
    mechanism = without(replace(mechanism, joints=tuple(rest), rods=rods), (body,))
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


def _host(mechanism: Mechanism, body: str, joints: Sequence[Joint], name: str | None) -> Joint:
    if name is not None:
        named = [joint for joint in joints if joint.name == name]
        if not named:
            what = f"{name} is not a joint of {body}"
            require(
                mechanism,
                [Problem(where="host", what=what, remedy=", ".join(j.name for j in joints))],
            )
        return named[0]
    moving = ("translational", "planar", "schoenflies", "free")
    ways = (
        joint.bodies
        for joint in mechanism.joints
        if joint.kind not in moving and body not in joint.bodies
    )
    distance = steps_from(BASE, ways)
    return min(
        joints, key=lambda joint: distance.get(far_side(joint, body).body, len(mechanism.bodies))
    )


def _rehung(mechanism: Mechanism, joint: Joint, host: Joint, body: str) -> Joint:
    """Return a joint of the body as a joint between the host's link and the joint's own link.

    Its angle is measured between these two links.
    """
    near, far = far_side(host, body), far_side(joint, body)
    R = _rotation(host, near, frame(mechanism, side(host, body))) @ np.linalg.inv(
        _rotation(joint, far, frame(mechanism, side(joint, body)))
    )
    i = "xyz".index(joint.axes[0])
    j, k = (i + 1) % 3, (i + 2) % 3
    angle = float(np.arctan2(R[k, j], R[j, j]))
    return replace(
        joint,
        parent=near,
        child=far,
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
