"""Rotations and poses as arrays; leading axes are samples.

They only need NumPy. SciPy is an optional dependency, and importing its Rotation takes longer than
forward kinematics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from tauloop.common.records import dataclass
from tauloop.mechanism.model import AxisName, Mechanism, Placement

Array = NDArray[np.float64]

#: Sine below which a direction counts as parallel to the z axis.
_MIN_SINE = 1e-12

#: Unit vectors by axis letter.
UNIT_VECTORS: dict[str, tuple[float, float, float]] = {
    "x": (1.0, 0.0, 0.0),
    "y": (0.0, 1.0, 0.0),
    "z": (0.0, 0.0, 1.0),
}


@dataclass(frozen=True, slots=True, eq=False)
class FramePose:
    """The pose of a frame B in a frame A.

    Attributes:
        rotation: orientation (..., 3, 3), from B to A coordinates.
        position: origin of B (..., 3) in A, m.
    """

    rotation: Array = field(default_factory=lambda: np.eye(3))
    position: Array = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, other: FramePose) -> FramePose:
        """Return the pose of C in A; `self` is the pose of B in A and `other` that of C in B."""
        return FramePose(
            self.rotation @ other.rotation, self.position + turned(self.rotation, other.position)
        )

    def inverse(self) -> FramePose:
        """Return the pose of A in B."""
        inverse = np.swapaxes(self.rotation, -1, -2)
        return FramePose(inverse, -turned(inverse, self.position))

    def at(self, sample: int) -> FramePose:
        """Return the pose at one sample of a batch."""
        return FramePose(self.rotation[sample], self.position[sample])

    @property
    def is_turned(self) -> bool:
        """Whether the axes of the two frames differ."""
        return not np.array_equal(self.rotation, np.eye(3))

    @property
    def is_identity(self) -> bool:
        """Whether the two frames are the same."""
        return not self.is_turned and not self.position.any()


IDENTITY = FramePose()


def homogeneous(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Return homogeneous matrices (..., 4, 4) of rotations (..., 3, 3) and origins (..., 3)."""
    matrices = np.zeros((*position.shape[:-1], 4, 4))
    matrices[..., :3, :3] = rotation
    matrices[..., :3, 3] = position
    matrices[..., 3, 3] = 1.0
    return matrices


def placement_pose(mechanism: Mechanism, placement: Placement) -> FramePose:
    """Return the pose of a placement in its body at the nominal parameters."""
    turns = [(turn.axis, mechanism.value(turn.angle)) for turn in placement.turns]
    return FramePose(
        rotation_matrix(turns), np.array([mechanism.value(x) for x in placement.position])
    )


def turned(rotation: Array, vector: Array) -> Array:
    """Return R x for rotations (..., 3, 3) and vectors (..., 3)."""
    return np.einsum("...ij,...j->...i", rotation, vector)


def rotation_about(axis: Array, angle: Array) -> Array:
    """Return rotations (..., 3, 3) by angles (...) in rad about one unit vector (3,).

    R = I + sin(angle) K + (1 - cos(angle)) K K, with K the cross product matrix (Rodrigues).
    """
    K = skew(axis)
    return (
        np.eye(3)
        + np.sin(angle)[..., None, None] * K
        + (1.0 - np.cos(angle))[..., None, None] * (K @ K)
    )


def shortest_turn(direction: Array) -> Array:
    """Return the shortest rotation (3, 3) whose z axis is along a direction (3,)."""
    z = direction / np.linalg.norm(direction)
    axis = np.cross([0.0, 0.0, 1.0], z)
    sine = float(np.linalg.norm(axis))
    angle = math.atan2(sine, float(z[2]))
    axis = axis / sine if sine > _MIN_SINE else np.array([1.0, 0.0, 0.0])
    return rotation_about(axis, np.array(angle))


def skew(vector: Array) -> Array:
    """Return the cross product matrices (..., 3, 3): S(x) y = x × y."""
    matrix = np.zeros((*vector.shape, 3))
    matrix[..., 2, 1], matrix[..., 0, 2], matrix[..., 1, 0] = np.moveaxis(vector, -1, 0)
    return matrix - np.swapaxes(matrix, -1, -2)


def angle_about(axis: Array, start: Array, end: Array) -> Array:
    """Return the angle (...) in rad about `axis` that brings `start` to the direction of `end`.

    Args:
        start: vector (3,).
        axis: unit vector (3,).
        end: vectors (..., 3).
    """
    return np.arctan2(np.cross(start, end) @ axis, end @ start)


def quaternion_rotation(quaternion: Array) -> Array:
    """Return the rotation (..., 3, 3) of quaternions (..., 4), w x y z."""
    unit = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    w, x, y, z = np.moveaxis(unit, -1, 0)
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    R = np.empty((*w.shape, 3, 3))
    R[..., 0, 0] = xx - yy - zz + ww
    R[..., 0, 1] = 2.0 * (x * y - z * w)
    R[..., 0, 2] = 2.0 * (x * z + y * w)
    R[..., 1, 0] = 2.0 * (x * y + z * w)
    R[..., 1, 1] = -xx + yy - zz + ww
    R[..., 1, 2] = 2.0 * (y * z - x * w)
    R[..., 2, 0] = 2.0 * (x * z - y * w)
    R[..., 2, 1] = 2.0 * (y * z + x * w)
    R[..., 2, 2] = -xx - yy + zz + ww
    return R


def rotation_quaternion(rotation: Array) -> Array:
    """Return the unit quaternions (..., 4), w x y z, of rotations (..., 3, 3).

    The first component that is not zero is positive.
    """
    quaternion = np.roll(_quaternions_xyzw(rotation.reshape(-1, 3, 3)), 1, axis=1)
    first = np.argmax(quaternion != 0.0, axis=1)
    quaternion[quaternion[range(len(quaternion)), first] < 0.0] *= -1.0
    return np.asarray(quaternion.reshape(*rotation.shape[:-2], 4))


def rotation_vector(rotation: Array) -> Array:
    """Return the rotation vectors (..., 3) of rotations (..., 3, 3), rad, of length pi at most."""
    quaternion = _quaternions_xyzw(rotation.reshape(-1, 3, 3))
    quaternion[quaternion[:, 3] < 0.0] *= -1.0
    sine = np.linalg.norm(quaternion[:, :3], axis=1)
    angle = 2.0 * np.arctan2(sine, quaternion[:, 3])
    ratio = np.divide(angle, sine, out=np.full(len(sine), 2.0), where=sine > 0.0)
    return np.asarray((ratio[:, None] * quaternion[:, :3]).reshape(*rotation.shape[:-2], 3))


def _quaternions_xyzw(R: Array) -> Array:
    """Return unit quaternions (N, 4), x y z w of either sign, of rotations (N, 3, 3).

    Four times the products q q^T of a unit quaternion (x, y, z, w) are sums of entries of its
    rotation. The row with the largest diagonal entry gives q without loss of digits.
    Source: Shepperd 1978.
    """
    trace = np.trace(R, axis1=1, axis2=2)
    products = np.empty((len(R), 4, 4))
    products[:, :3, :3] = R + R.swapaxes(1, 2)
    products[:, range(3), range(3)] += (1.0 - trace)[:, None]
    differences = R - R.swapaxes(1, 2)
    products[:, 3, :3] = products[:, :3, 3] = differences[:, (2, 0, 1), (1, 2, 0)]
    products[:, 3, 3] = 1.0 + trace
    largest = np.argmax(products[:, range(4), range(4)], axis=1)
    quaternion = products[range(len(R)), largest]
    return np.asarray(quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True))


def turned_quaternion(quaternion: Array, turn: Array) -> Array:
    """Return quaternions (..., 4), w x y z, after further rotations.

    The further rotations are given as rotation vectors (..., 3), rad, in the base frame.
    """
    half = 0.5 * np.linalg.norm(turn, axis=-1, keepdims=True)
    d0, d = np.cos(half), 0.5 * np.sinc(half / np.pi) * turn
    w, x = quaternion[..., :1], quaternion[..., 1:]
    components = (d0 * w - np.sum(d * x, axis=-1, keepdims=True), d0 * x + w * d + np.cross(d, x))
    product = np.concatenate(components, axis=-1)
    return product / np.linalg.norm(product, axis=-1, keepdims=True)


def rotation_matrix(turns: Sequence[tuple[AxisName, float]]) -> np.ndarray:
    """Return the matrix (3, 3) of successive rotations (rad), from last to first frame."""
    R = np.eye(3)
    for axis, angle in turns:
        i = "xyz".index(axis)
        j, k = (i + 1) % 3, (i + 2) % 3
        elementary = np.eye(3)
        elementary[j, j] = elementary[k, k] = math.cos(angle)
        elementary[k, j], elementary[j, k] = math.sin(angle), -math.sin(angle)
        R = R @ elementary
    return R
