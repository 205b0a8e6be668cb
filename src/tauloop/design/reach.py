"""Poses that no assembly mode reaches: a loop equation without a solution."""

from __future__ import annotations

import numpy as np

from tauloop.design.claims import ARITHMETIC
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form, form
from tauloop.design.problem import PoseProblem

#: Pieces of the range of an unknown at first, and the number of times that pieces are halved.
FIRST_PIECES, HALVINGS = 32, 14
#: Most pieces that may be left; more are given up.
MAX_PIECES = 4096


def unreachable(problem: PoseProblem, pose: np.ndarray) -> str | None:
    """Return the unknown for which a loop equation has no solution at a pose; None if there is none.

    Only equations with one unknown count. An angle takes all values, any other unknown those within
    its limits. The equation is evaluated in interval arithmetic on pieces of that range.

    Args:
        problem: functions of the machine.
        pose: the pose (m,).
    """
    with np.errstate(all="ignore"):
        for equation, unknown in problem.single_unknowns:
            ends = _range(problem, unknown)
            if ends is not None and _has_no_root(problem, pose, equation, unknown, ends):
                return problem.unknowns[unknown]
    return None


def _range(problem: PoseProblem, unknown: int) -> tuple[float, float] | None:
    for limit in problem.limits:
        if limit.unknown == unknown and np.isfinite([limit.lower, limit.upper]).all():
            return limit.lower, limit.upper
    return (-3.1416, 3.1416) if problem.is_angle[unknown] else None


def _has_no_root(
    problem: PoseProblem, pose: np.ndarray, equation: int, unknown: int, ends: tuple[float, float]
) -> bool:
    cuts = np.linspace(*ends, FIRST_PIECES + 1)
    middle, half = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
    for _ in range(HALVINGS):
        psi = _residual(problem, pose, equation, unknown, middle, half)
        if not isinstance(psi, Form):
            return bool(psi != 0.0)
        lower, upper = psi.bounds
        left = ~((lower > 0.0) | (upper < 0.0))
        if not left.any():
            return True
        if left.sum() > MAX_PIECES:
            return False
        half = np.repeat(0.5 * half[left], 2)
        middle = np.repeat(middle[left], 2) + half * np.tile([-1.0, 1.0], int(left.sum()))
    return False


def _residual(
    problem: PoseProblem,
    pose: np.ndarray,
    equation: int,
    unknown: int,
    middle: np.ndarray,
    half: np.ndarray,
) -> Form | float:
    """Return a loop equation over pieces (N,) of an unknown."""
    n = len(middle)
    inputs = []
    for value in pose:
        inputs.append(form(np.stack([np.full(n, value), np.zeros(n)])))
    for j in range(len(problem.unknowns)):
        wide = half * INFLATION + 4.0 * ROUNDING * np.abs(middle) + 1e-15
        rows = [middle, wide] if j == unknown else [np.zeros(n), np.zeros(n)]
        inputs.append(form(np.stack(rows)))
    for value, tolerance in zip(problem.nominal, problem.tolerances, strict=True):
        inputs.append(form(np.stack([np.full(n, value), np.full(n, tolerance)])))
    result: Form | float = problem.loops.run(inputs, ARITHMETIC)[equation]
    return result
