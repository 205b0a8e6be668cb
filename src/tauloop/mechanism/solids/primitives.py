"""Joints as chains of hinges, slides and balls, which engines and other formats support."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tauloop.common.errors import EngineError
from tauloop.common.records import dataclass
from tauloop.mechanism.model import JOINT_KINDS, Freedom, Joint
from tauloop.mechanism.poses import (
    UNIT_VECTORS,
    Array,
    FramePose,
    angle_about,
    quaternion_rotation,
    rotation_about,
    rotation_quaternion,
    turned,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Primitive:
    """One hinge (an angle), slide (a distance) or ball (a quaternion w x y z).

    Attributes:
        kind: "hinge", "slide" or "ball".
        name: name of its coordinate; for a ball the name of the joint (with ``.turn`` if the joint
            also slides).
        axis: unit vector (3,) of a hinge or slide in its frame. It is reversed if the chain runs
            from the joint's child to its parent, so that the coordinate keeps the file's sign.
        coordinates, velocities: names of its coordinates and velocities.
        reference: start values of the coordinates: m, rad, or a quaternion w x y z.
        freedom: elements that act on it; for a ball, on its first velocity.
        is_reversed: whether the coordinate describes the motion of the joint's parent body relative
            to its child body.
    """

    kind: Literal["hinge", "slide", "ball"]
    name: str
    axis: Array
    coordinates: tuple[str, ...]
    velocities: tuple[str, ...]
    reference: tuple[float, ...]
    freedom: Freedom
    is_reversed: bool = False

    def pose(self, q: Array | None = None) -> FramePose:
        """Return the poses (N) at coordinates (N, 1) or (N, 4), or the pose at the start values."""
        if q is None:
            pose = self.pose(np.array([self.reference]))
            return FramePose(pose.rotation[0], pose.position[0])
        zero = np.zeros((len(q), 3))
        if self.kind == "ball":
            rotation = quaternion_rotation(q)
            return FramePose(np.swapaxes(rotation, -1, -2) if self.is_reversed else rotation, zero)
        if self.kind == "hinge":
            return FramePose(rotation_about(self.axis, q[:, 0]), zero)
        return FramePose(np.broadcast_to(np.eye(3), (len(q), 3, 3)), q * self.axis)


def primitives(joint: Joint, *, is_reversed: bool = False) -> tuple[Primitive, ...]:
    """Return the chain from a joint's parent frame to its child frame, or the inverse chain.

    The inverse chain has the reversed primitives in reverse order.
    """
    q, v = joint.coordinate_names, joint.velocity_names
    kind = JOINT_KINDS[joint.kind]
    start, freedoms = (
        joint.reference or kind.neutral,
        joint.freedoms or (Freedom(),) * len(kind.velocities),
    )
    chain = [
        single(primitive_kind, q[i], axis, start[i], freedoms[i])
        for i, (primitive_kind, axis) in enumerate(_scalar_chain(joint))
    ]
    if joint.kind in ("spherical", "free"):
        chain.append(
            Primitive(
                kind="ball",
                name=f"{joint.name}.turn" if joint.kind == "free" else joint.name,
                axis=np.array(UNIT_VECTORS["z"]),
                coordinates=q[-4:],
                velocities=v[-3:],
                reference=start[-4:],
                freedom=freedoms[-3],
            )
        )
    if not is_reversed:
        return tuple(chain)
    return tuple(
        replace(primitive, axis=-primitive.axis, is_reversed=True) for primitive in reversed(chain)
    )


def single(
    kind: Literal["hinge", "slide"], name: str, axis: str, start: float, freedom: Freedom
) -> Primitive:
    """Return a hinge or slide along x, y or z; its coordinate and velocity have its name."""
    return Primitive(
        kind=kind,
        name=name,
        axis=np.array(UNIT_VECTORS[axis]),
        coordinates=(name,),
        velocities=(name,),
        reference=(start,),
        freedom=freedom,
    )


def _scalar_chain(joint: Joint) -> Sequence[tuple[Literal["hinge", "slide"], str]]:
    """Return the hinges and slides in the order of the joint's coordinates.

    Raises:
        EngineError: a plugin defines the joint's kind.
    """
    if JOINT_KINDS[joint.kind].placement is not None:
        what = f"a {joint.kind} joint (from a plugin) is not a chain of hinges, slides and balls"
        remedy = "model the joint with hinges, slides and balls, or keep the YAML file"
        raise EngineError.of(joint.name, what, remedy)
    return [
        (kind, axis if isinstance(axis, str) else joint.axes[axis])
        for kind, axis in _CHAINS.get(joint.kind, ())
    ]


_SLIDES: tuple[tuple[Literal["slide"], str], ...] = (("slide", "x"), ("slide", "y"), ("slide", "z"))
#: Hinges and slides of each kind of joint: along an axis letter, or along its first or second axis.
_CHAINS: dict[str, Sequence[tuple[Literal["hinge", "slide"], str | int]]] = {
    "revolute": [("hinge", 0)],
    "prismatic": [("slide", 0)],
    "cylindrical": [("hinge", 0), ("slide", 0)],
    "universal": [("hinge", 0), ("hinge", 1)],
    "planar": [*_SLIDES[:2], ("hinge", "z")],
    "schoenflies": [*_SLIDES, ("hinge", "z")],
    "translational": _SLIDES,
    "free": _SLIDES,
}


def joint_pose(joint: Joint, coordinates: Mapping[str, Array] | None = None) -> FramePose:
    """Return the pose of a joint's child frame in its parent frame.

    Coordinates (N,) are given by name; if None, the joint is at its start values.
    """
    pose = FramePose()
    for primitive in primitives(joint):
        q = coordinates and [coordinates[name] for name in primitive.coordinates]
        pose = pose @ primitive.pose(np.stack(q, -1) if q else None)
    return pose


def propagate_poses(
    poses: dict[str, FramePose], joints: Iterable[Joint], across: Callable[[Joint], FramePose]
) -> dict[str, FramePose]:
    """Add the poses of all bodies that joints connect to bodies with a known pose.

    Args:
        poses: poses of bodies by name, all in one frame; extended in place.
        joints: joints to traverse, in either direction.
        across: pose of a joint's child body in its parent body.

    Returns:
        The same mapping `poses`.
    """
    remaining = list(joints)
    while True:
        joint = next(
            (j for j in remaining if (j.parent.body in poses) != (j.child.body in poses)), None
        )
        if joint is None:
            return poses
        parent, child = joint.bodies
        if parent in poses:
            poses[child] = poses[parent] @ across(joint)
        else:
            poses[parent] = poses[child] @ across(joint).inverse()


def joint_coordinates(joint: Joint, pose: FramePose) -> Array:
    """Return the coordinates (N, n) of a joint from the pose (N) of its child frame.

    The pose is relative to the parent frame; this is the inverse of `joint_pose`.

    Angles lie within pi of the joint's start value, if it has one.
    """
    R, p = pose.rotation, pose.position
    if joint.kind == "universal":
        first, second = (np.array(UNIT_VECTORS[axis]) for axis in joint.axes)
        inverse = np.swapaxes(R, -1, -2)
        angles = [
            angle_about(first, second, turned(R, second)),
            -angle_about(second, first, turned(inverse, first)),
        ]
        return np.stack([_near(joint, i, angle) for i, angle in enumerate(angles)], axis=-1)
    columns = []
    for i, (kind, letter) in enumerate(_scalar_chain(joint)):
        axis = np.array(UNIT_VECTORS[letter])
        perpendicular = np.roll(axis, 1)
        columns.append(
            _near(joint, i, angle_about(axis, perpendicular, turned(R, perpendicular)))
            if kind == "hinge"
            else p @ axis
        )
    if joint.kind in ("spherical", "free"):
        columns += list(np.moveaxis(rotation_quaternion(R), -1, 0))
    return np.stack(columns, axis=-1) if columns else np.zeros((len(p), 0))


def _near(joint: Joint, index: int, angle: Array) -> Array:
    """Return the angle plus the number of revolutions that brings it nearest to the start value."""
    reference = joint.reference[index] if joint.reference else 0.0
    return angle + 2 * np.pi * np.round((reference - angle) / (2 * np.pi))
