"""Poses that no assembly mode reaches: a loop equation without a solution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.design.claims import ARITHMETIC
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form, form
from tauloop.design.problem import PoseProblem

#: Number of pieces into which the range of an unknown is divided first.
FIRST_PIECES = 32
#: Maximum number of times that pieces are halved.
MAX_HALVINGS = 14
#: Maximum number of pieces that may contain a root; the test gives up if there are more.
MAX_PIECES = 4096
#: Number of values of an unknown at which its equation is compared between machines.
UNKNOWN_GRID_POINTS = 128


def unreachable(problem: PoseProblem, pose: np.ndarray) -> str | None:
    """Return the unknown for which a loop equation has no solution at a pose; None if there is none.

    Only equations with a single unknown are tested. The range of an angle is a full revolution; the
    range of any other unknown is given by its limits. Interval arithmetic evaluates the equation on
    pieces of this range.

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

    For each loop equation with a single unknown, consider the largest and the smallest value of the
    residual over the unknown. The result is the vertex of the deviations that moves the value nearer
    to zero farthest towards the other sign, so that the equation may lose its root.

    Args:
        problem: functions of the machine.
        pose: the pose (m,).
    """
    for equation, unknown in problem.single_unknowns:
        ends = _range(problem, unknown)
        if ends is None:
            continue
        values = np.linspace(*ends, UNKNOWN_GRID_POINTS)
        nominal = np.tile(problem.nominal, (UNKNOWN_GRID_POINTS, 1))
        psi = _values(problem, pose, equation, unknown, values, nominal)
        uses_maximum = psi.max() < -psi.min()
        extreme = int(np.argmax(psi) if uses_maximum else np.argmin(psi))
        deviating = problem.nominal + np.diag(problem.tolerances)
        at_extreme = np.full(len(deviating), values[extreme])
        changes = _values(problem, pose, equation, unknown, at_extreme, deviating) - psi[extreme]
        signs = -np.sign(changes) if uses_maximum else np.sign(changes)
        yield problem.nominal + signs * problem.tolerances


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
    """Return the range of an unknown; None if it is not an angle and has no limits."""
    for limit in problem.limits:
        if limit.unknown == unknown and np.isfinite([limit.lower, limit.upper]).all():
            return limit.lower, limit.upper
    return (-3.1416, 3.1416) if problem.is_angle[unknown] else None


def _has_no_root(
    problem: PoseProblem, pose: np.ndarray, equation: int, unknown: int, ends: tuple[float, float]
) -> bool:
    """Return whether a loop equation is proved to have no root within the range of its unknown."""
    cuts = np.linspace(*ends, FIRST_PIECES + 1)
    center, half = 0.5 * (cuts[1:] + cuts[:-1]), 0.5 * np.diff(cuts)
    for _ in range(MAX_HALVINGS):
        psi = _residual(problem, pose, equation, unknown, center, half)
        if not isinstance(psi, Form):
            return bool(psi != 0.0)
        lower, upper = psi.bounds
        may_have_root = ~((lower > 0.0) | (upper < 0.0))
        if not may_have_root.any():
            return True
        count = int(may_have_root.sum())
        if count > MAX_PIECES:
            return False
        half = np.repeat(0.5 * half[may_have_root], 2)
        center = np.repeat(center[may_have_root], 2) + half * np.tile([-1.0, 1.0], count)
    return False


def _residual(
    problem: PoseProblem,
    pose: np.ndarray,
    equation: int,
    unknown: int,
    center: np.ndarray,
    half: np.ndarray,
) -> Form | float:
    """Return a loop equation over pieces (N,) of an unknown, center ± half."""
    n = len(center)
    inputs = []
    for value in pose:
        inputs.append(form(np.stack([np.full(n, value), np.zeros(n)])))
    for j in range(len(problem.unknowns)):
        radius = half * INFLATION + 4.0 * ROUNDING * np.abs(center) + 1e-15
        rows = [center, radius] if j == unknown else [np.zeros(n), np.zeros(n)]
        inputs.append(form(np.stack(rows)))
    for value, tolerance in zip(problem.nominal, problem.tolerances, strict=True):
        inputs.append(form(np.stack([np.full(n, value), np.full(n, tolerance)])))
    result: Form | float = problem.loops.run(inputs, ARITHMETIC)[equation]
    return result
