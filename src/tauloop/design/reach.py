"""Poses that no assembly mode reaches: a loop equation without a solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.design.claims import ARITHMETIC
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form, form
from tauloop.design.problem import PoseProblem

#: Pieces of the range of an unknown at first, and the number of times that pieces are halved.
FIRST_PIECES, MAX_PATH_HALVINGS = 32, 14
#: Most pieces that may be left; more are given up.
MAX_PIECES = 4096
#: Values of an unknown at which its equation is compared between machines.
GRID_POINTS = 128


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


def farthest_machines(problem: PoseProblem, pose: np.ndarray) -> Iterator[np.ndarray]:
    """Yield parameters (n_p,) of machines within the deviations that may not reach a pose.

    For each loop equation with one unknown, its value that is nearest to zero among the largest and
    the smallest one moves towards zero at a vertex of the deviations.

    Args:
        problem: functions of the machine.
        pose: the pose (m,).
    """
    for equation, unknown in problem.single_unknowns:
        ends = _range(problem, unknown)
        if ends is None:
            continue
        values = np.linspace(*ends, GRID_POINTS)
        nominal = np.tile(problem.nominal, (GRID_POINTS, 1))
        psi = _values(problem, pose, equation, unknown, values, nominal)
        is_largest = psi.max() < -psi.min()
        extreme = int(np.argmax(psi) if is_largest else np.argmin(psi))
        moved = problem.nominal + np.diag(problem.tolerances)
        at_extreme = np.full(len(moved), values[extreme])
        changes = _values(problem, pose, equation, unknown, at_extreme, moved) - psi[extreme]
        toward = -np.sign(changes) if is_largest else np.sign(changes)
        yield problem.nominal + toward * problem.tolerances


def _values(
    problem: PoseProblem,
    pose: np.ndarray,
    equation: int,
    unknown: int,
    values: np.ndarray,
    parameters: np.ndarray,
) -> np.ndarray:
    """Return a loop equation at values (N,) of its unknown and parameters (N, n_p)."""
    y = np.zeros((len(values), len(problem.unknowns)))
    y[:, unknown] = values
    psi = problem.point([np.tile(pose, (len(values), 1)), y, parameters], len(values))[0]
    return np.asarray(psi[:, equation])


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
    for _ in range(MAX_PATH_HALVINGS):
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
