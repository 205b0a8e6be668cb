"""The twists that the joints of a machine allow, freely or against a stiffness."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import ElasticJoint
from tauloop.mechanism.elastic.beams import Compliance
from tauloop.mechanism.model import Joint, Mechanism
from tauloop.mechanism.poses import FramePose

#: Eigenvalues of a joint's compliance or stiffness count as zero below this value, relative to the
#: largest.
ZERO_COMPLIANCE = 1e-12
#: Free directions of the built-in kinds without axes: indices of (u, θ) in the parent's frame.
FREE_DIRECTIONS = {
    "fixed": (),
    "spherical": (3, 4, 5),
    "planar": (0, 1, 5),
    "schoenflies": (0, 1, 2, 5),
    "translational": (0, 1, 2),
    "free": (0, 1, 2, 3, 4, 5),
}
#: Motions of the built-in kinds with one axis: True for a rotation about the axis, False for a
#: translation along it.
ROTATES_ABOUT_AXIS = {"revolute": (True,), "prismatic": (False,), "cylindrical": (True, False)}


@dataclass(frozen=True, slots=True)
class FreeDirection:
    """A motion that a joint leaves free: along or about an axis of one of its frames.

    Attributes:
        is_rotation: True for a rotation about the axis, False for a translation along it.
        axis: 0, 1 or 2 for x, y or z.
        uses_child_frame: True for an axis of the child's frame, False for one of the parent's
            frame.
    """

    is_rotation: bool
    axis: int
    uses_child_frame: bool = False


def free_directions(joint: Joint) -> tuple[FreeDirection, ...]:
    """Return the motions that a joint leaves free, in the order of its velocities.

    Raises:
        InputError: a plugin defines the joint's kind.
    """
    if joint.kind in FREE_DIRECTIONS:
        indices = FREE_DIRECTIONS[joint.kind]
        return tuple(FreeDirection(is_rotation=index >= 3, axis=index % 3) for index in indices)
    axes = ["xyz".index(axis) for axis in joint.axes]
    if joint.kind == "universal":
        return (
            FreeDirection(is_rotation=True, axis=axes[0]),
            FreeDirection(is_rotation=True, axis=axes[1], uses_child_frame=True),
        )
    if joint.kind not in ROTATES_ABOUT_AXIS:
        what = f"elastic analysis does not support the joint kind {joint.kind!r}"
        raise InputError.of(f"joints.{joint.name}", what, "use a built-in kind of joint")
    return tuple(
        FreeDirection(is_rotation=is_rotation, axis=axes[0])
        for is_rotation in ROTATES_ABOUT_AXIS[joint.kind]
    )


def free_twists(joint: Joint, parent: FramePose, child: FramePose) -> Array:
    """Return the twists (N, 6, f) that a joint leaves free, at the origin of the child's frame.

    The twists are in the axes of the base and in the order of the joint's velocities.

    Args:
        joint: a joint of a built-in kind.
        parent, child: the joint's frames at N poses.

    Raises:
        InputError: a plugin defines the joint's kind.
    """
    directions = free_directions(joint)
    twists = np.zeros((len(child.position), 6, len(directions)))
    for column, direction in enumerate(directions):
        frame = child if direction.uses_child_frame else parent
        rows = slice(3, 6) if direction.is_rotation else slice(0, 3)
        twists[:, rows, column] = frame.rotation[..., direction.axis]
    return twists


def elastic_directions(
    mechanism: Mechanism, compliance: Compliance, rotation: Array, free: Array, length: float
) -> tuple[Array, Array]:
    """Return the twists (N, 6, e) of a joint's elastic bearings, and the stiffness (N, e, e).

    Args:
        mechanism: the machine.
        compliance: compliance or stiffness of the bearings, in the axes of the parent's frame.
        rotation: (N, 3, 3) axes of the parent's frame.
        free: (N, 6, f) twists that the joint leaves free; bearings do not resist them.
        length: length that makes rotations comparable with translations, m.
    """
    matrix = np.array([list(map(mechanism.value, row)) for row in compliance.matrix])
    twist_rotation = np.zeros((len(rotation), 6, 6))
    twist_rotation[:, :3, :3] = rotation
    twist_rotation[:, 3:, 3:] = rotation
    weight = np.repeat([1.0, length], 3)
    # The coordinates (u, length θ) are all lengths.
    scaled_free = np.swapaxes(twist_rotation, -1, -2) @ free * weight[:, None]
    if compliance.is_stiffness:
        scaled = matrix / weight[:, None] / weight
    else:
        scaled = matrix * weight[:, None] * weight
    count = free.shape[-1]
    U, _, _ = np.linalg.svd(scaled_free, full_matrices=True)
    blocked = U[..., count:] if count else np.broadcast_to(np.eye(6), (len(rotation), 6, 6))
    projected = np.swapaxes(blocked, -1, -2) @ scaled @ blocked
    values, vectors = np.linalg.eigh(0.5 * (projected + np.swapaxes(projected, -1, -2)))
    largest = np.abs(values).max(initial=0.0)
    # A direction without compliance is rigid. A direction without stiffness stays in the result, so
    # that the structure is reported as unconstrained.
    is_elastic = np.all(values > ZERO_COMPLIANCE * largest, axis=0) | compliance.is_stiffness
    directions = (blocked @ vectors)[..., is_elastic]
    eigenvalues = values[:, is_elastic]
    stiffness = eigenvalues if compliance.is_stiffness else 1.0 / eigenvalues
    twists = twist_rotation @ (directions / weight[:, None])
    return twists, stiffness[:, :, None] * np.eye(stiffness.shape[-1])


def elastic_joint(
    joint: Joint,
    ends: tuple[str, str],
    point: Array,
    free: tuple[Array, tuple[str, ...]],
    bearings: tuple[Array, Array] | None,
    springs: Mapping[str, float],
    inertias: Mapping[str, float],
    drives: Mapping[str, str],
) -> ElasticJoint:
    """Return a joint of the structure with its free, driven and elastic motions.

    Args:
        joint: the joint of the machine.
        ends: bodies or nodes of the structure that the joint connects: parent and child.
        point: (N, 3) origin of the child's frame, m.
        free: twists (N, 6, f) of the motions that are not locked, and the names of the motions.
        bearings: twists (N, 6, e) and stiffness (N, e, e) of the bearings; None if they are rigid.
        springs, inertias: stiffness and inertia of single motions, by name of the motion.
        drives: the actuator of each motion whose only stiffness is that of a drive, by name of the
            motion.
    """
    twists, names = free
    count = len(names)
    samples = len(point)
    motion = twists if bearings is None else np.concatenate([twists, bearings[0]], axis=-1)
    size = motion.shape[-1]
    K = np.zeros((samples, size, size))
    M = np.zeros((size, size))
    for index, name in enumerate(names):
        K[:, index, index] = springs.get(name, 0.0)
        M[index, index] = inertias.get(name, 0.0)
    if bearings is not None:
        K[:, count:, count:] = bearings[1]
    # A joint with one motion gives it its own name, and its label is empty.
    prefix = f"{joint.name}."
    labels = tuple("" if name == joint.name else name.removeprefix(prefix) for name in names)
    bearing_labels = tuple(f"bearing{i + 1}" for i in range(size - count))
    motion_parts = tuple(drives.get(name, joint.name) for name in names)
    bearing_parts = tuple(joint.name for _ in bearing_labels)
    return ElasticJoint(
        name=joint.name,
        parent=ends[0],
        child=ends[1],
        point=point,
        motion=motion,
        stiffness=K if K.any() else None,
        inertia=M if M.any() else None,
        motion_names=labels + bearing_labels,
        stiffness_parts=motion_parts + bearing_parts,
    )
