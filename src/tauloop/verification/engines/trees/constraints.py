"""Loop closure in an engine: residuals, Jacobian and bias of constraints, from the motion of links.

Engines supply poses, Jacobians and velocity-product accelerations of links. This module computes
the constraint rows from these, so that the constraint solvers of the engines, and their
regularization, are not used.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.mechanism.poses import Array, skew
from tauloop.verification.engines.trees.rigid_tree import GROUND, Anchor, Loads, RigidTree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkMotion:
    """Motion of k links in the base frame at N samples.

    Attributes:
        rotation: (N, k, 3, 3) axes of the links as columns.
        position: (N, k, 3) positions of the links' origins, m.
        jacobian: (N, k, 6, n_v) matrix from velocities to the velocity of the origin and the
            angular velocity.
        bias: (N, k, 6) accelerations of the origin and angular accelerations at zero accelerations
            of the coordinates.
    """

    rotation: Array
    position: Array
    jacobian: Array
    bias: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConstraintRows:
    """Rows of the constraints phi(q) = 0 and of their time derivatives K v = 0 and K a + bias = 0.

    Coordinates are q, velocities v, accelerations a, and N is the number of samples.

    Attributes:
        residual: phi (N, n_c), m for points, dimensionless for directions.
        jacobian: K (N, n_c, n_v).
        bias: (dK/dt) v (N, n_c).
    """

    residual: Array
    jacobian: Array
    bias: Array


def constraint_rows(tree: RigidTree, motion: LinkMotion, v: Array) -> ConstraintRows:
    """Return the constraint rows of a tree.

    The direction e is fixed in the first frame, f in the second frame; d is the vector from the
    first to the second origin. The origins have the velocities v_1 and v_2, the frames the angular
    velocities w_1 and w_2. A point row requires e·d = 0; its time derivative is
    e·(v_2 - v_1) + (e×d)·w_1. A direction row requires e·f = 0; its time derivative is
    (f×e)·(w_2 - w_1).

    Args:
        tree: the links and constraints.
        motion: motion of the links `tree.anchored`, in that order.
        v: velocities (N, n_v).
    """
    anchors: list[Anchor] = []
    point_rows: list[tuple[int, Array]] = []
    direction_rows: list[tuple[int, Array]] = []
    for constraint in tree.constraints:
        index = len(anchors)
        anchors += [constraint.first, constraint.second]
        point_rows += [(index, e) for e in constraint.position_directions]
        direction_rows += [(index, pair) for pair in constraint.orthogonal_pairs]
    frames = anchored_frames(tree, motion, anchors, v)
    twist = np.einsum("nkij,nj->nki", frames.jacobian, v)
    return concatenated_rows(
        _point_rows(frames, twist, point_rows), _direction_rows(frames, twist, direction_rows)
    )


def concatenated_rows(*parts: ConstraintRows) -> ConstraintRows:
    """Return the concatenated rows of several constraints."""
    return ConstraintRows(
        residual=np.concatenate([part.residual for part in parts], axis=1),
        jacobian=np.concatenate([part.jacobian for part in parts], axis=1),
        bias=np.concatenate([part.bias for part in parts], axis=1),
    )


def gear_rows(loads: Loads, q: Array, v: Array) -> ConstraintRows:
    """Return the rows of couplings at coordinates (N, n_q) and velocities (N, n_v)."""
    n_samples = len(q)
    residual = q[:, list(loads.q_index)] @ loads.gears.T - loads.gear_offsets
    jacobian = np.tile(loads.gears, (n_samples, 1, 1))
    bias = np.zeros_like(residual)
    for row, index, curve in loads.curves:
        value, slope, curvature = curve(q[:, loads.q_index[index]])
        residual[:, row] -= value
        jacobian[:, row, index] -= slope
        bias[:, row] -= curvature * v[:, index] ** 2
    return ConstraintRows(residual=residual, jacobian=jacobian, bias=bias)


def _point_rows(frames: LinkMotion, twist: Array, rows: list[tuple[int, Array]]) -> ConstraintRows:
    """Return point rows; each has the index of its first frame and a direction e (3,)."""
    first = np.array([index for index, _ in rows], dtype=int)
    second = first + 1
    local = np.array([e for _, e in rows]).reshape(-1, 3)
    e = np.einsum("nkij,kj->nki", frames.rotation[:, first], local)
    d = frames.position[:, second] - frames.position[:, first]
    arm = np.cross(e, d)
    J = frames.jacobian
    bias = frames.bias
    w = twist[:, first, 3:]
    e_rate = np.cross(w, e)
    d_rate = twist[:, second, :3] - twist[:, first, :3]
    d_bias = bias[:, second, :3] - bias[:, first, :3]
    J_d = J[:, second, :3] - J[:, first, :3]
    e_terms = 2 * _dot(e_rate, d_rate)
    return ConstraintRows(
        residual=_dot(e, d),
        jacobian=_times(e, J_d) + _times(arm, J[:, first, 3:]),
        bias=_dot(e, d_bias)
        + _dot(arm, bias[:, first, 3:])
        + e_terms
        + _dot(np.cross(w, e_rate), d),
    )


def _direction_rows(
    frames: LinkMotion, twist: Array, rows: list[tuple[int, Array]]
) -> ConstraintRows:
    """Return direction rows; each has the index of its first frame and a pair (2, 3) of e and f."""
    first = np.array([index for index, _ in rows], dtype=int)
    second = first + 1
    local = np.array([pair for _, pair in rows]).reshape(-1, 2, 3)
    e = np.einsum("nkij,kj->nki", frames.rotation[:, first], local[:, 0])
    f = np.einsum("nkij,kj->nki", frames.rotation[:, second], local[:, 1])
    normal = np.cross(f, e)
    J = frames.jacobian
    bias = frames.bias
    w_first = twist[:, first, 3:]
    w_second = twist[:, second, 3:]
    normal_rate = np.cross(np.cross(w_second, f), e) + np.cross(f, np.cross(w_first, e))
    return ConstraintRows(
        residual=_dot(e, f),
        jacobian=_times(normal, J[:, second, 3:] - J[:, first, 3:]),
        bias=_dot(normal, bias[:, second, 3:] - bias[:, first, 3:])
        + _dot(normal_rate, w_second - w_first),
    )


def anchored_frames(
    tree: RigidTree, motion: LinkMotion, anchors: list[Anchor], v: Array
) -> LinkMotion:
    """Return the motion of frames on links; the ground is at rest.

    Args:
        tree: the links.
        motion: motion of the links `tree.anchored`, in that order.
        anchors: the frames.
        v: velocities (N, n_v).
    """
    n_samples = len(motion.position)
    n_v = motion.jacobian.shape[-1]
    index_of = {link: i for i, link in enumerate((*tree.anchored, GROUND))}
    links = np.array([index_of[anchor.link] for anchor in anchors], dtype=int)

    def with_ground(moving: Array, resting: Array) -> Array:
        """Return a quantity of the links of all anchors, including the ground."""
        ground = np.broadcast_to(resting, (n_samples, 1, *resting.shape))
        return np.concatenate([moving, ground], axis=1)[:, links]

    R = with_ground(motion.rotation, np.eye(3))
    J = with_ground(motion.jacobian, np.zeros((6, n_v)))
    bias = with_ground(motion.bias, np.zeros(6))
    rotations = np.array([anchor.pose.rotation for anchor in anchors]).reshape(-1, 3, 3)
    offsets = np.array([anchor.pose.position for anchor in anchors]).reshape(-1, 3)
    r = np.einsum("nkij,kj->nki", R, offsets)
    w = np.einsum("nkij,nj->nki", J[:, :, 3:], v)
    J[:, :, :3] -= skew(r) @ J[:, :, 3:]
    bias[:, :, :3] += np.cross(bias[:, :, 3:], r) + np.cross(w, np.cross(w, r))
    return LinkMotion(
        rotation=R @ rotations,
        position=with_ground(motion.position, np.zeros(3)) + r,
        jacobian=J,
        bias=bias,
    )


def _dot(x: Array, y: Array) -> Array:
    """Return the scalar products (...) of vectors (..., 3)."""
    return np.sum(x * y, axis=-1)


def _times(x: Array, J: Array) -> Array:
    """Return the products xᵀ J (N, k, n_v) of vectors (N, k, 3) and matrices (N, k, 3, n_v)."""
    return np.einsum("nki,nkij->nkj", x, J)
