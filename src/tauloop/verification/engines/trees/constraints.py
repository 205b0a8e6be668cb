"""Closure of the loops in an engine: residuals, Jacobian and bias of all constraint rows, from the motion of links.

Engines give poses, Jacobians and velocity-product accelerations of links; the rows are worked out
here from these alone, so that no engine's own constraint solver (and its regularization) takes
part.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.mechanism.poses import Array, skew
from tauloop.verification.engines.trees.rigid_tree import GROUND, Anchor, Loads, RigidTree


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkMotion:
    """Motion of some links in the base frame; N samples, k links.

    Attributes:
        rotation: (N, k, 3, 3).
        position: position of the links' origins (N, k, 3), m.
        jacobian: velocity of the origin, then angular velocity, per unit velocity (N, k, 6, n_v).
        bias: their rates without accelerations (N, k, 6).
    """

    rotation: Array
    position: Array
    jacobian: Array
    bias: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConstraintRows:
    """All constraint rows: phi = 0, K v = 0, K a + bias = 0.

    Attributes:
        residual: phi (N, n_c), m for points and pure numbers for directions.
        jacobian: K (N, n_c, n_v).
        bias: (dK/dt) v (N, n_c).
    """

    residual: Array
    jacobian: Array
    bias: Array


def closure(tree: RigidTree, motion: LinkMotion, v: Array) -> ConstraintRows:
    """Return the constraint rows of a tree.

    With the direction e fixed in the first frame, f fixed in the second, d from the first origin to
    the second, velocities v_1 and v_2 of the origins, and angular velocities w_1 and w_2: a point
    row is e·d, its rate e·(v_2 - v_1) + (e×d)·w_1; a direction row is e·f, its rate
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
        point_rows += [(index, e) for e in constraint.points]
        direction_rows += [(index, pair) for pair in constraint.directions]
    frames = anchored_frames(tree, motion, anchors, v)
    twist = np.einsum("nkij,nj->nki", frames.jacobian, v)
    return joined(_points(frames, twist, point_rows), _directions(frames, twist, direction_rows))


def joined(*parts: ConstraintRows) -> ConstraintRows:
    """Return the rows of several kinds, one after the other."""
    return ConstraintRows(
        residual=np.concatenate([part.residual for part in parts], axis=1),
        jacobian=np.concatenate([part.jacobian for part in parts], axis=1),
        bias=np.concatenate([part.bias for part in parts], axis=1),
    )


def gear_rows(loads: Loads, q: Array, v: Array) -> ConstraintRows:
    """Return the couplings between coordinates at (N, n_q) and (N, n_v)."""
    samples = len(q)
    residual = q[:, list(loads.q_index)] @ loads.gears.T - loads.gear_offsets
    jacobian = np.tile(loads.gears, (samples, 1, 1))
    bias = np.zeros_like(residual)
    for row, index, curve in loads.curves:
        value, slope, bend = curve(q[:, loads.q_index[index]])
        residual[:, row] -= value
        jacobian[:, row, index] -= slope
        bias[:, row] -= bend * v[:, index] ** 2
    return ConstraintRows(residual=residual, jacobian=jacobian, bias=bias)


def _points(frames: LinkMotion, twist: Array, rows: list[tuple[int, Array]]) -> ConstraintRows:
    first = np.array([index for index, _ in rows], dtype=int)
    second = first + 1
    local = np.array([e for _, e in rows]).reshape(-1, 3)
    e = np.einsum("nkij,kj->nki", frames.rotation[:, first], local)
    d = frames.position[:, second] - frames.position[:, first]
    arm = np.cross(e, d)
    J, bias = frames.jacobian, frames.bias
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


def _directions(frames: LinkMotion, twist: Array, rows: list[tuple[int, Array]]) -> ConstraintRows:
    first = np.array([index for index, _ in rows], dtype=int)
    second = first + 1
    local = np.array([pair for _, pair in rows]).reshape(-1, 2, 3)
    e = np.einsum("nkij,kj->nki", frames.rotation[:, first], local[:, 0])
    f = np.einsum("nkij,kj->nki", frames.rotation[:, second], local[:, 1])
    normal = np.cross(f, e)
    J, bias = frames.jacobian, frames.bias
    w_one, w_two = twist[:, first, 3:], twist[:, second, 3:]
    normal_rate = np.cross(np.cross(w_two, f), e) + np.cross(f, np.cross(w_one, e))
    return ConstraintRows(
        residual=_dot(e, f),
        jacobian=_times(normal, J[:, second, 3:] - J[:, first, 3:]),
        bias=_dot(normal, bias[:, second, 3:] - bias[:, first, 3:])
        + _dot(normal_rate, w_two - w_one),
    )


def anchored_frames(
    tree: RigidTree, motion: LinkMotion, anchors: list[Anchor], v: Array
) -> LinkMotion:
    """Return the motion of frames on the links `tree.anchored`, in that order; the ground rests."""
    samples, n_v = len(motion.position), motion.jacobian.shape[-1]
    place = {link: i for i, link in enumerate((*tree.anchored, GROUND))}
    links = np.array([place[anchor.link] for anchor in anchors], dtype=int)

    def with_ground(moving: Array, resting: Array) -> Array:
        ground = np.broadcast_to(resting, (samples, 1, *resting.shape))
        return np.concatenate([moving, ground], axis=1)[:, links]

    R = with_ground(motion.rotation, np.eye(3))
    J = with_ground(motion.jacobian, np.zeros((6, n_v)))
    bias = with_ground(motion.bias, np.zeros(6))
    turns = np.array([anchor.at.rotation for anchor in anchors]).reshape(-1, 3, 3)
    offsets = np.array([anchor.at.position for anchor in anchors]).reshape(-1, 3)
    r = np.einsum("nkij,kj->nki", R, offsets)
    w = np.einsum("nkij,nj->nki", J[:, :, 3:], v)
    J[:, :, :3] -= skew(r) @ J[:, :, 3:]
    bias[:, :, :3] += np.cross(bias[:, :, 3:], r) + np.cross(w, np.cross(w, r))
    return LinkMotion(
        rotation=R @ turns,
        position=with_ground(motion.position, np.zeros(3)) + r,
        jacobian=J,
        bias=bias,
    )


def _dot(x: Array, y: Array) -> Array:
    return np.sum(x * y, axis=-1)


def _times(x: Array, J: Array) -> Array:
    """xᵀ J by sample and row: (N, k, 3) and (N, k, 3, n_v) to (N, k, n_v)."""
    return np.einsum("nki,nkij->nkj", x, J)
