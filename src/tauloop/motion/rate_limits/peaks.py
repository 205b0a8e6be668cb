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
#: Fraction of the largest value below which peaks are not refined, and maximum number of refined
#: peaks.
PEAK_THRESHOLD = 0.9
MAX_PEAKS = 12
#: Number of digits to which heights are compared, because mirrored motions have equal peaks.
HEIGHT_DIGITS = 12


def vertices(grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the vertices (K,) of parabolas through each local maximum on a grid (N,)."""
    i = 1 + np.flatnonzero((values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:]))
    before, behind = grid[i] - grid[i - 1], grid[i + 1] - grid[i]
    rise, fall = (values[i] - values[i - 1]) / before, (values[i + 1] - values[i]) / behind
    is_bent = rise > fall
    i, before, behind, rise, fall = (part[is_bent] for part in (i, before, behind, rise, fall))
    slope = (rise * behind + fall * before) / (before + behind)
    return np.asarray(
        grid[i] + np.clip(0.5 * slope * (before + behind) / (rise - fall), -before, behind)
    )


def refined(
    function: Callable[[np.ndarray], np.ndarray], grid: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions and heights of the highest peaks, also between grid points.

    All brackets are narrowed together.

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
    places, heights = grid[peaks].copy(), values[peaks].copy()
    rows = np.arange(len(peaks))
    for _ in range(BRACKET_ROUNDS):
        inside = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, BRACKET_POINTS)
        refined_values = function(inside.ravel()).reshape(inside.shape)
        best = refined_values.argmax(axis=1)
        better = refined_values[rows, best] > heights
        places = np.where(better, inside[rows, best], places)
        heights = np.where(better, refined_values[rows, best], heights)
        low, high = (
            inside[rows, np.maximum(best - 1, 0)],
            inside[rows, np.minimum(best + 1, BRACKET_POINTS - 1)],
        )
    order = np.lexsort(
        (places, -np.round(heights / np.abs(heights).max(initial=1e-300), HEIGHT_DIGITS))
    )
    return places[order], heights[order]
