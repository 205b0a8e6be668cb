"""Distances between the rods of a machine."""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.assembly.loops import nominal
from tauloop.equations.tree import symbolic_motion
from tauloop.equations.values import BatchFunction
from tauloop.model import Model

#: Rods share a joint if the distance of two of their ends at the reference pose, relative to the
#: characteristic length, is at most this value.
JOINED_DISTANCE = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class RodClearance:
    """Distances between the center lines of rods.

    Attributes:
        rods: names of all rods.
        pairs: indices (n_pairs, 2) of the compared rods: all pairs except those that share a joint.
        ends: function of q that returns the ends A and B of all rods (6 n_rods); None for fewer
            than two rods.
    """

    rods: tuple[str, ...]
    pairs: np.ndarray
    ends: BatchFunction | None

    def segments(self, q: np.ndarray) -> np.ndarray:
        """Return the ends of all rods (N, n_rods, 2, 3), m."""
        if self.ends is None:
            return np.zeros((len(q), 0, 2, 3))
        return self.ends([np.ascontiguousarray(q)], len(q))[0].reshape(len(q), -1, 2, 3)

    def distances(self, q: np.ndarray) -> np.ndarray:
        """Return the distances (N, n_pairs) of the center lines of all pairs, m."""
        segments = self.segments(q)
        first, second = segments[:, self.pairs[:, 0]], segments[:, self.pairs[:, 1]]
        return segment_distances(
            first[..., 0, :], first[..., 1, :], second[..., 0, :], second[..., 1, :]
        )


def rod_clearance(model: Model) -> RodClearance:
    """Return the object that computes distances between the rods of a machine."""
    mechanism = model.mechanism
    names = tuple(rod.name for rod in mechanism.rods)
    none = RodClearance(rods=names, pairs=np.zeros((0, 2), dtype=int), ends=None)
    if len(names) < 2:
        return none
    motion = symbolic_motion(model.topology, nominal(mechanism), is_moving=False)
    points = [motion.point(end).p for rod in mechanism.rods for end in (rod.start, rod.end)]
    ends = BatchFunction(ca.Function("rod_ends", [motion.q], [ca.densify(ca.vertcat(*points))]))
    pairs = np.array(np.triu_indices(len(names), 1)).T
    segments = RodClearance(rods=names, pairs=pairs, ends=ends).segments(model.assembly.q[None])[0]
    first, second = segments[pairs[:, 0], :, None], segments[pairs[:, 1], None]
    end_distances = np.linalg.norm(first - second, axis=-1).min(axis=(1, 2))
    is_separate = end_distances > JOINED_DISTANCE * model.assembly.loops.length
    return RodClearance(rods=names, pairs=pairs[is_separate], ends=ends)


def segment_distances(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the shortest distances between segments ab and cd, shape (...).

    The ends a, b, c and d have the shape (..., 3).
    """
    first, second = closest_points(a, b, c, d)
    return np.asarray(np.linalg.norm(first - second, axis=-1))


def closest_points(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the closest points (..., 3) of segments ab and cd, with ends of the shape (..., 3).

    The unconstrained minimum of |a + s u - c - t w|^2, with u = b - a and w = d - c, is clamped to
    the segments, one parameter after the other.

    Source: Ericson, Real-Time Collision Detection, section 5.1.9.
    """
    u, w, r = b - a, d - c, a - c
    uu, ww, uw = (u * u).sum(-1), (w * w).sum(-1), (u * w).sum(-1)
    ur, wr = (u * r).sum(-1), (w * r).sum(-1)
    determinant = uu * ww - uw**2
    tiny = np.finfo(float).tiny
    with np.errstate(divide="ignore", invalid="ignore"):
        s = np.where(determinant > 1e-12 * uu * ww, (uw * wr - ww * ur) / determinant, 0.0)
    t = np.clip((uw * np.clip(s, 0.0, 1.0) + wr) / np.maximum(ww, tiny), 0.0, 1.0)
    s = np.clip((uw * t - ur) / np.maximum(uu, tiny), 0.0, 1.0)
    return a + s[..., None] * u, c + t[..., None] * w
