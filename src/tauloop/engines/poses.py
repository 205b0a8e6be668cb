"""Rotations and poses in numbers, on batches: leading axes are samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tauloop.mechanism.model import Mechanism, Placement

Array = NDArray[np.float64]

#: Unit vectors by axis letter.
UNIT_VECTORS: dict[str, tuple[float, float, float]] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True, slots=True, eq=False)
class Pose:
    """Where a frame B is in a frame A.

    Attributes:
        rotation: orientation (..., 3, 3), from B to A coordinates.
        position: origin of B (..., 3) in A, m.
    """

    rotation: Array
    position: Array

    def __matmul__(self, other: Pose) -> Pose:
        """The pose of C in A, from that of B in A (self) and that of C in B."""
        return Pose(self.rotation @ other.rotation, self.position + turned(self.rotation, other.position))

    def inverse(self) -> Pose:
        """The pose of A in B."""
        back = np.swapaxes(self.rotation, -1, -2)
        return Pose(back, -turned(back, self.position))


IDENTITY = Pose(np.eye(3), np.zeros(3))


def placement_pose(mechanism: Mechanism, placement: Placement) -> Pose:
    """Pose of a placed frame in its body, at the nominal parameters."""
    rotation = np.eye(3)
    for turn in placement.turns:
        rotation = rotation @ rotation_about(np.array(UNIT_VECTORS[turn.axis]), np.array(mechanism.value(turn.angle)))
    return Pose(rotation, np.array([mechanism.value(x) for x in placement.position]))


def turned(rotation: Array, vector: Array) -> Array:
    """R x for rotations (..., 3, 3) and vectors (..., 3)."""
    return np.einsum("...ij,...j->...i", rotation, vector)


def rotation_about(axis: Array, angle: Array) -> Array:
    """Rotation (..., 3, 3) by angles (...) in rad about one unit vector (3,): I + sin K + (1 - cos) K K (Rodrigues)."""
    K = skew(axis)
    return np.eye(3) + np.sin(angle)[..., None, None] * K + (1.0 - np.cos(angle))[..., None, None] * (K @ K)


def skew(vector: Array) -> Array:
    """Cross product matrices (..., 3, 3): S(x) y = x × y."""
    matrix = np.zeros((*vector.shape, 3))
    matrix[..., 2, 1], matrix[..., 0, 2], matrix[..., 1, 0] = np.moveaxis(vector, -1, 0)
    return matrix - np.swapaxes(matrix, -1, -2)


def angle_about(axis: Array, start: Array, end: Array) -> Array:
    """Angle (...) in rad by which `start` (3,) turns about the unit `axis` (3,) to point along `end` (..., 3)."""
    return np.arctan2(np.cross(start, end) @ axis, end @ start)


def quaternion_rotation(quaternion: Array) -> Array:
    """Rotation (..., 3, 3) of unit quaternions (..., 4), w x y z."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def rotation_quaternion(rotation: Array) -> Array:
    """Unit quaternions (..., 4), w x y z, of rotations (..., 3, 3).

    4 q qᵀ is linear in the rotation (Shepperd): the column with the largest diagonal entry gives q.
    """
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = np.moveaxis(rotation, (-2, -1), (0, 1))
    rows = [
        [1 + xx + yy + zz, zy - yz, xz - zx, yx - xy],
        [zy - yz, 1 + xx - yy - zz, xy + yx, xz + zx],
        [xz - zx, xy + yx, 1 - xx + yy - zz, yz + zy],
        [yx - xy, xz + zx, yz + zy, 1 - xx - yy + zz],
    ]
    products = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    best = np.argmax(np.diagonal(products, axis1=-2, axis2=-1), axis=-1)
    column = np.take_along_axis(products, best[..., None, None], axis=-1)[..., 0]
    return column / np.linalg.norm(column, axis=-1, keepdims=True)


def turned_quaternion(quaternion: Array, turn: Array) -> Array:
    """Quaternions (N, 4) after a further turn by the rotation vectors (N, 3), given in the reference frame."""
    half = 0.5 * np.linalg.norm(turn, axis=-1, keepdims=True)
    d0, d = np.cos(half), 0.5 * np.sinc(half / np.pi) * turn
    w, x = quaternion[:, :1], quaternion[:, 1:]
    product = np.hstack([d0 * w - np.sum(d * x, axis=-1, keepdims=True), d0 * x + w * d + np.cross(d, x)])
    return product / np.linalg.norm(product, axis=-1, keepdims=True)
