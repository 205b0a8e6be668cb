"""Peaks of functions that are known at grid points and can be evaluated between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Number of points per bracket and round. Each round narrows a bracket to the two intervals around
#: its largest value.
BRACKET_POINTS = 9
#: Number of rounds. Each round divides a bracket's width by 4, down to 1e-6 of its first width. The
#: remaining error is 1e-12 of a parabola's height.
BRACKET_ROUNDS = 10
#: Fraction of the largest value below which peaks are not refined.
PEAK_THRESHOLD = 0.9
#: Maximum number of refined peaks.
MAX_PEAKS = 12
#: Number of digits to which heights are compared, because mirrored motions have equal peaks.
HEIGHT_DIGITS = 12


def vertices(grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the vertices (K,) of parabolas through each local maximum on a grid (N,)."""
    i = 1 + np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:]))
    slopes = np.diff(values) / np.diff(grid)
    i = i[slopes[i - 1] > slopes[i]]  # without plateaus
    before, after = grid[i] - grid[i - 1], grid[i + 1] - grid[i]
    rise = slopes[i - 1]
    fall = slopes[i]
    slope = (rise * after + fall * before) / (before + after)
    offset = 0.5 * slope * (before + after) / (rise - fall)
    return np.asarray(grid[i] + np.clip(offset, -before, after))


def refined(
    function: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and heights of the highest peaks, also between grid points.

    Each peak is bracketed by its neighbors on the grid. All brackets are narrowed together.

    Args:
        function: function from points (M,) to values (M,).
        grid: ascending points (N,).
        values: values at the grid (N,).

    Returns:
        Positions (K,) and heights (K,), the highest peak first. Equal peaks are in ascending order
        of their positions.
    """
    ahead = np.concatenate([values[1:], [-np.inf]])
    behind = np.concatenate([[-np.inf], values[:-1]])
    peaks = np.flatnonzero(
        (values >= ahead) & (values >= behind) & (values >= PEAK_THRESHOLD * values.max())
    )
    peaks = peaks[np.argsort(-values[peaks], kind="stable")][:MAX_PEAKS]
    low, high = grid[np.maximum(peaks - 1, 0)], grid[np.minimum(peaks + 1, len(grid) - 1)]
    positions = grid[peaks].copy()
    heights = values[peaks].copy()
    rows = np.arange(len(peaks))
    for _ in range(BRACKET_ROUNDS):
        points = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, BRACKET_POINTS)
        point_values = function(points.ravel()).reshape(points.shape)
        best = point_values.argmax(axis=1)
        is_higher = point_values[rows, best] > heights
        positions = np.where(is_higher, points[rows, best], positions)
        heights = np.where(is_higher, point_values[rows, best], heights)
        low = points[rows, np.maximum(best - 1, 0)]
        high = points[rows, np.minimum(best + 1, BRACKET_POINTS - 1)]
    relative_heights = heights / np.abs(heights).max(initial=1e-300)
    order = np.lexsort((positions, -np.round(relative_heights, HEIGHT_DIGITS)))
    return positions[order], heights[order]
