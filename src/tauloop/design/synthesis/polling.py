"""Local search without derivatives, for objectives that have none: neighbors are polled in batches.

Source: Kolda, Lewis, Torczon 2003, Optimization by direct search: new perspectives on some classical
and modern methods, SIAM Review 45 (compass search).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tauloop.design.synthesis.evaluation import Scores

#: First and last step, in widths of the bounds.
FIRST_POLL_STEP, LAST_STEP = 0.08, 0.01
#: Maximum number of polls.
MAX_POLLS = 40
#: Relative gain below which a neighbor counts as equal.
LEAST_GAIN = 1e-6


def polled_design(
    score: Callable[[np.ndarray], Scores],
    bounds: np.ndarray,
    x: np.ndarray,
    weights: Sequence[float],
    limits: np.ndarray | None = None,
) -> np.ndarray:
    """Return a design (d,) of which no neighbor along a variable is better, or a better one than x.

    All neighbors at a step are one batch. The search moves to the best one; without a better one
    it halves the step. It ends after `MAX_POLLS` polls.

    Args:
        score: scores of candidates (N, d), with all quantities.
        bounds: lower and upper bounds (2, d).
        x: a design that meets all requirements (d,).
        weights: weight of each objective.
        limits: largest values of the objectives (k,), of which less is better, that x has; None for
            none.
    """
    width = bounds[1] - bounds[0]
    start = score(x[None]).objectives[0]
    size = np.maximum(np.abs(start), 1e-12)
    best, value, step = x, float(start @ (weights / size)), FIRST_POLL_STEP
    for _ in range(MAX_POLLS):
        moves = np.concatenate([np.eye(len(x)), -np.eye(len(x))]) * (step * width)
        around = np.clip(best + moves, bounds[0], bounds[1])
        scores = score(around)
        known = np.isfinite(scores.objectives).all(axis=1) & (scores.worst <= 0.0)
        if limits is not None:
            known &= (scores.objectives <= limits + LEAST_GAIN * size).all(axis=1)
        values = np.full(len(around), np.inf)
        values[known] = scores.objectives[known] @ (weights / size)
        index = int(np.argmin(values))
        if values[index] < value - LEAST_GAIN * abs(value):
            best, value = around[index], float(values[index])
        else:
            step *= 0.5
        if step < LAST_STEP:
            break
    return best
