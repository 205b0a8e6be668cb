"""Peaks of functions that are known at grid points and can be evaluated between them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Points per bracket and round; each round narrows a bracket to the two intervals around its
#: largest value.
POINTS = 9
#: Rounds: a bracket shrinks by 4 each time, to 1e-6 of its width, which leaves 1e-12 of a
#: parabola's height.
ROUNDS = 10
#: Peaks below this share of the largest value are not refined, nor are more than the next number of
#: them.
NEAR_THE_TOP = 0.9
MOST_PEAKS = 12
#: Heights alike to this many digits of the highest are equal: mirrored motions have equal peaks.
ALIKE = 12


def vertices(grid: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the places (K,) of the vertices of parabolas through each largest of three neighbours on a grid (N,)."""
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
    """Places and heights of the highest peaks between grid points, by narrowing brackets, all at once.

    Args:
        function: (M,) points to (M,) values.
        grid: ascending points (N,).
        values: the function there (N,).

    Returns:
        Places (K,) and values (K,), the highest first, the earliest of equal ones.
    """
    ahead = np.concatenate([values[1:], [-np.inf]])
    behind = np.concatenate([[-np.inf], values[:-1]])
    peaks = np.flatnonzero(
        (values >= ahead) & (values >= behind) & (values >= NEAR_THE_TOP * values.max())
    )
    peaks = peaks[np.argsort(-values[peaks], kind="stable")][:MOST_PEAKS]
    low, high = grid[np.maximum(peaks - 1, 0)], grid[np.minimum(peaks + 1, len(grid) - 1)]
    places, heights = grid[peaks].copy(), values[peaks].copy()
    rows = np.arange(len(peaks))
    for _ in range(ROUNDS):
        inside = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, POINTS)
        refined_values = function(inside.ravel()).reshape(inside.shape)
        best = refined_values.argmax(axis=1)
        better = refined_values[rows, best] > heights
        places = np.where(better, inside[rows, best], places)
        heights = np.where(better, refined_values[rows, best], heights)
        low, high = (
            inside[rows, np.maximum(best - 1, 0)],
            inside[rows, np.minimum(best + 1, POINTS - 1)],
        )
    order = np.lexsort((places, -np.round(heights / np.abs(heights).max(initial=1e-300), ALIKE)))
    return places[order], heights[order]
