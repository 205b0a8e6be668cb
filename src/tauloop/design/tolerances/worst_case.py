"""Worst-case sums of errors over all errors within their tolerances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Number of cells per edge of the cube. The directions point to the centers of the cells on its faces.
CELLS_PER_EDGE = 16
#: Cosine of the largest angle between any direction and the nearest of `directions`: half the
#: diagonal of a cell, seen from the center of the cube.
COVERING_COSINE = float(1.0 / np.sqrt(1.0 + 2.0 / CELLS_PER_EDGE**2))


def directions() -> Array:
    """Return unit vectors (d, 3), such that any direction or its opposite is near one of them."""
    edge = (2.0 * np.arange(CELLS_PER_EDGE) + 1.0) / CELLS_PER_EDGE - 1.0
    u_grid, v_grid = np.meshgrid(edge, edge)
    u, v = u_grid.ravel(), v_grid.ravel()
    ones = np.ones_like(u)
    rows = np.concatenate(
        [np.stack([ones, u, v], -1), np.stack([u, ones, v], -1), np.stack([u, v, ones], -1)]
    )
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def largest_sum(intervals: Array, balls: Array, unit_vectors: Array) -> Array:
    """Return the largest component (N, d) along unit vectors d: Σ |d·gᵢ| + Σ ‖Gₖᵀ d‖.

    Args:
        intervals: (N, 3, p) displacements g due to the full tolerance of each error in an interval.
        balls: (N, k, 3, 3) displacements G per radius of each error vector in a ball.
        unit_vectors: (d, 3) directions of the components.
    """
    total = np.abs(unit_vectors @ intervals).sum(axis=-1)
    in_balls = np.linalg.norm(np.einsum("nkij,di->ndkj", balls, unit_vectors), axis=-1)
    return np.asarray(total + in_balls.sum(axis=-1))


def farthest(intervals: Array, balls: Array) -> tuple[Array, Array]:
    """Return an upper bound (N,) of the distance, and the direction (N, 3) in which it is largest.

    The largest component along `directions` is at least `COVERING_COSINE` times the largest distance,
    so that the bound exceeds the distance by less than 0.4 %.
    """
    candidates = directions()
    sums = largest_sum(intervals, balls, candidates)
    best = sums.argmax(axis=1)
    return sums.max(axis=1) / COVERING_COSINE, candidates[best]
