"""Local search for objectives without derivatives: neighbors are polled in batches.

Source: Kolda, Lewis, Torczon 2003, Optimization by direct search: new perspectives on some classical
and modern methods, SIAM Review 45 (compass search).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tauloop.design.synthesis.evaluation import Scores

#: First step, relative to the widths of the bounds.
FIRST_POLL_STEP = 0.08
#: Step below which the search ends, relative to the widths of the bounds.
MIN_POLL_STEP = 0.01
#: Maximum number of polls.
MAX_POLLS = 40
#: Relative gain below which a neighbor counts as equal.
MIN_POLL_GAIN = 1e-6


def polled_design(
    score: Callable[[np.ndarray], Scores],
    bounds: np.ndarray,
    x: np.ndarray,
    weights: Sequence[float],
    limits: np.ndarray | None = None,
) -> np.ndarray:
    """Return a design (d,) that is at least as good as x and has no better neighbor.

    A neighbor differs by a step in a single variable. All neighbors are evaluated as a batch. The search
    moves to the best neighbor, or halves the step if none is better. It ends at `MIN_POLL_STEP`, or
    after `MAX_POLLS` polls; then a neighbor may be better.

    Args:
        score: scores of candidates (N, d), with all quantities.
        bounds: lower and upper bounds (2, d).
        x: a design that meets all requirements (d,).
        weights: weight of each objective.
        limits: upper bounds of the objectives (k,), all of which are minimized; x satisfies them. None
            for no bounds.
    """
    width = bounds[1] - bounds[0]
    start = score(x[None]).objectives[0]
    scale = np.maximum(np.abs(start), 1e-12)
    best = x
    value = float(start @ (weights / scale))
    step = FIRST_POLL_STEP
    for _ in range(MAX_POLLS):
        moves = np.concatenate([np.eye(len(x)), -np.eye(len(x))]) * (step * width)
        neighbors = np.clip(best + moves, bounds[0], bounds[1])
        scores = score(neighbors)
        is_feasible = np.isfinite(scores.objectives).all(axis=1) & (scores.worst <= 0.0)
        if limits is not None:
            is_feasible &= (scores.objectives <= limits + MIN_POLL_GAIN * scale).all(axis=1)
        values = np.full(len(neighbors), np.inf)
        values[is_feasible] = scores.objectives[is_feasible] @ (weights / scale)
        index = int(np.argmin(values))
        if values[index] < value - MIN_POLL_GAIN * abs(value):
            best = neighbors[index]
            value = float(values[index])
        else:
            step *= 0.5
        if step < MIN_POLL_STEP:
            break
    return best
