"""Bodies, joints and independent parameters from the plain numbers of a URDF tree."""

from __future__ import annotations

import math
from dataclasses import field, replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.imported.starts import ball_joint
from tauloop.formats.urdf.parts import LinkFrame, Triple, UrdfCoupling, UrdfJoint, UrdfLoop
from tauloop.mechanism.description.placements import (
    placed,
    turns_to_axes,
    turns_to_axis,
    with_turns,
)
from tauloop.mechanism.expression import ZERO, Constant, Expression, multiply, negate, triple
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    AxisName,
    Coupling,
    Freedom,
    Friction,
    Joint,
    Placement,
    Spring,
    Turn,
    Vector,
)

#: Rotation from z to the axis with a letter; a planar joint moves perpendicular to its z axis.
_Z_TO_AXIS: dict[AxisName, tuple[Turn, ...]] = {
    "x": (Turn("y", Constant(math.pi / 2)),),
    "y": (Turn("x", Constant(-math.pi / 2)),),
    "z": (),
}
#: R = Rz(yaw) Ry(pitch) Rx(roll) as successive rotations.
_ROLL_PITCH_YAW: tuple[tuple[int, AxisName], ...] = ((2, "z"), (1, "y"), (0, "x"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Floating:
    """A floating joint whose coordinates are relative to a frame other than URDF's.

    Attributes:
        frame: reference frame on the parent link.
        reference: coordinates (7,) at URDF's pose, m and quaternion w x y z.
        freedoms: the `Freedom` of each of its six velocities.
    """

    frame: Placement
    reference: tuple[float, ...]
    freedoms: tuple[Freedom, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ball:
    """A ball joint whose quaternion is not relative to the file's pose (`starts.ball_joint`).

    Attributes:
        start: rotation of the joint at the file's pose.
        is_reversed: whether parent and child are swapped relative to the file.
        freedoms: the `Freedom` of each of its three angular velocities.
    """

    start: tuple[Turn, ...]
    is_reversed: bool
    freedoms: tuple[Freedom, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JointExtra:
    """Properties of a joint that URDF cannot represent.

    Attributes:
        offset: URDF's coordinate minus the measured coordinate, rad or m.
        offset_value: nominal value of the offset.
        freedom: losses, springs and limits of the joint's degree of freedom. Its friction replaces
            URDF's ``<dynamics>``, and its speed replaces URDF's.
        has_limits: whether the range of `freedom` replaces that of URDF.
        floating: extra properties of a floating joint.
        ball: extra properties of a ball joint.
    """

    offset: Expression = ZERO
    offset_value: float = 0.0
    freedom: Freedom = field(default_factory=Freedom)
    has_limits: bool = False
    floating: Floating | None = None
    ball: Ball | None = None


def make_joint(joint: UrdfJoint, root: str, extra: JointExtra, leaves: Leaves) -> Joint:
    """Return a joint whose coordinate is the measured one (see `JointExtra.offset`)."""
    floating = extra.floating
    if floating is not None:
        frame = replace(floating.frame, body=BASE if joint.parent == root else joint.parent)
        return Joint(
            name=joint.name,
            kind="free",
            parent=frame,
            child=Placement(body=joint.child),
            reference=floating.reference,
            freedoms=floating.freedoms,
        )
    origin = LinkFrame(link=joint.parent, xyz=joint.xyz, rpy=joint.rpy)
    parent = _placement(origin, root, f"{joint.name}.origin", leaves)
    child = Placement(body=joint.child)
    if any((*joint.child_xyz, *joint.child_rpy)):
        on_child = LinkFrame(link=joint.child, xyz=joint.child_xyz, rpy=joint.child_rpy)
        child = _placement(on_child, root, f"{joint.name}.child", leaves)
    if extra.ball is not None:
        return ball_joint(
            name=joint.name,
            near=parent,
            far=child,
            start=extra.ball.start,
            is_reversed=extra.ball.is_reversed,
            freedoms=extra.ball.freedoms,
        )
    reference = JOINT_KINDS[joint.kind].neutral
    if joint.axis_joints:
        reference = tuple(part.start for part in joint.axis_joints)
    elif len(reference) == 1:
        reference = (joint.start - extra.offset_value,)
    axes = joint.axes
    if joint.kind in ("revolute", "prismatic", "planar"):
        axes, turns = _aligned_axes(joint.kind, joint.axis)
        if extra.offset != ZERO and joint.kind == "prismatic":
            child = placed(child, _vector_along(joint.axis, negate(extra.offset)), ())
        parent, child = with_turns(parent, turns), with_turns(child, turns)
    if extra.offset != ZERO and joint.kind == "revolute":
        parent = with_turns(parent, (Turn(axes[0], extra.offset),))
    return Joint(
        name=joint.name,
        kind=joint.kind,
        parent=parent,
        child=child,
        axes=axes,
        reference=reference,
        freedoms=_freedoms(joint, extra, leaves),
    )


def make_loop(loop: UrdfLoop, root: str, leaves: Leaves) -> Joint:
    """Return a joint that closes a loop between frames on two links."""
    parent = _placement(loop.predecessor, root, f"{loop.name}.predecessor", leaves)
    child = _placement(loop.successor, root, f"{loop.name}.successor", leaves)
    axes: tuple[AxisName, ...] = ()
    if JOINT_KINDS[loop.kind].axes == 1 or loop.kind == "planar":
        axes, turns = _aligned_axes(loop.kind, loop.axis)
        parent, child = with_turns(parent, turns), with_turns(child, turns)
    if loop.kind == "universal":  # axes are x of the parent's frame and y of the child's
        axes = ("x", "y")
        parent = with_turns(parent, turns_to_axes(loop.axis, _across(loop.axis)))
        child = with_turns(child, turns_to_axes(_across(loop.other_axis), loop.other_axis))
    return closing_joint(loop.name, loop.kind, parent, child, axes)


def _aligned_axes(kind: str, axis: Triple) -> tuple[tuple[AxisName, ...], tuple[Turn, ...]]:
    """Return the axis letters of a joint with an axis, and the rotations that align its frames."""
    letter, turns = turns_to_axis(axis)
    return ((), turns + _Z_TO_AXIS[letter]) if kind == "planar" else ((letter,), turns)


def closing_joint(
    name: str, kind: str, parent: Placement, child: Placement, axes: tuple[AxisName, ...] = ()
) -> Joint:
    """Return a joint that closes a loop, without losses and springs."""
    freedoms = (Freedom(),) * len(JOINT_KINDS[kind].velocities)
    neutral = JOINT_KINDS[kind].neutral
    return Joint(
        name=name,
        kind=kind,
        parent=parent,
        child=child,
        axes=axes,
        reference=neutral,
        freedoms=freedoms,
        is_cut=True,
    )


def _across(axis: Triple) -> Triple:
    """Return a unit vector perpendicular to an axis."""
    other = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    return triple(float(component) for component in other / np.linalg.norm(other))


def make_coupling(coupling: UrdfCoupling, is_angular: bool, leaves: Leaves) -> Coupling:
    """Return a coupling (a gear); ratios of 1 and -1 become constants, others parameters."""
    terms = tuple(
        (
            name,
            Constant(ratio)
            if abs(ratio) == 1.0
            else leaves.leaf(f"{coupling.name}.of.{name}", ratio, "", "drive"),
        )
        for name, ratio in coupling.terms
    )
    offset = leaves.structural(
        f"{coupling.name}.offset", coupling.offset, "rad" if is_angular else "m", "geometry"
    )
    return Coupling(name=coupling.name, terms=terms, offset=offset, is_angular=is_angular)


def _placement(frame: LinkFrame, root: str, name: str, leaves: Leaves) -> Placement:
    """Return a frame on a link with its nonzero origin values as parameters."""
    position = triple(leaves.origin(f"{name}.xyz[{k}]", frame.xyz[k], "m") for k in range(3))
    angles = [
        (letter, leaves.origin(f"{name}.rpy[{k}]", frame.rpy[k], "rad"))
        for k, letter in _ROLL_PITCH_YAW
    ]
    turns = tuple(Turn(letter, angle) for letter, angle in angles if angle != ZERO)
    return Placement(
        body=BASE if frame.link == root else frame.link, position=position, turns=turns
    )


def _vector_along(axis: Triple, distance: Expression) -> Vector:
    """Return a distance along a unit vector, as a vector."""
    return triple(multiply(Constant(component), distance) for component in axis)


def _freedoms(joint: UrdfJoint, extra: JointExtra, leaves: Leaves) -> tuple[Freedom, ...]:
    """Return the losses, springs and limits of each degree of freedom of a joint."""
    if joint.axis_joints:
        return tuple(_freedoms(part, JointExtra(), leaves)[0] for part in joint.axis_joints)
    count = len(JOINT_KINDS[joint.kind].velocities)
    if count != 1:
        return (Freedom(),) * count
    is_angular = joint.kind == "revolute"
    friction = extra.freedom.friction or Friction()
    losses = {"viscous": joint.damping, "coulomb": joint.friction}
    missing = {key: value for key, value in losses.items() if getattr(friction, key) is None}
    friction = replace(friction, **leaves.friction(joint.name, is_angular, **missing))
    spring = extra.freedom.spring
    if spring is None and joint.stiffness:
        spring = Spring(
            stiffness=leaves.leaf(
                f"{joint.name}.spring.stiffness",
                joint.stiffness,
                "N m/rad" if is_angular else "N/m",
                "spring",
            ),
            rest=leaves.structural(
                f"{joint.name}.spring.rest",
                joint.rest - extra.offset_value,
                "rad" if is_angular else "m",
                "spring",
            ),
        )
    freedom = replace(
        extra.freedom,
        friction=friction if friction != Friction() else None,
        spring=spring,
        speed=extra.freedom.speed if math.isfinite(extra.freedom.speed) else joint.velocity,
    )
    if not extra.has_limits:
        lower = joint.lower - extra.offset_value
        upper = joint.upper - extra.offset_value
        freedom = replace(freedom, lower=lower, upper=upper)
    return (freedom,)
