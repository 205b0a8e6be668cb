"""Check of claims on errors of the tool in one box, in the balls of python-flint's arb."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from flint import arb

from tauloop.common.records import dataclass
from tauloop.design.error_claims import (
    ANGULAR_VELOCITIES,
    MARGIN,
    MAX_ANGLE,
    MAX_ROTATION_MARGIN,
    ROTATION_RATE,
    ROTATIONS,
)
from tauloop.design.intervals.balls import BALLS, BallForm, BallMatrix, near_inverse_product
from tauloop.design.loads import ERROR_DIRECTIONS, LoadLimits
from tauloop.design.problem import PoseProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class BallMaps:
    """Changes by the whole error of each encoder and parameter (s).

    Attributes:
        twist: twists of the tool (6, s), m and rad.
        changes: upper bounds (m,) of the changes of the axes by all errors.
    """

    twist: BallMatrix
    changes: list[arb]


def ball_maps(
    problem: PoseProblem, limits: LoadLimits, K: BallMatrix, inputs: list[BallForm]
) -> BallMaps | None:
    """Return the changes due to errors; None if the machine is too near a singularity.

    Args:
        problem: functions of the machine.
        limits: limits; they contain the errors of the encoders.
        K: Jacobian of the loop equations (n, m + n), dimensionless.
        inputs: inputs of programs.
    """
    assert problem.loads is not None
    A = problem.transmission
    n_u, n_c = A.shape
    m, k = len(problem.axes), K.n_symbols
    n = n_c - m
    count = len(problem.parameters)
    values = problem.deviations.run(inputs, BALLS) if problem.deviations is not None else []
    changes = BallMatrix.by_columns(values, n + n_u + 6, count, k)
    loads = BallMatrix.by_columns(problem.loads.run(inputs, BALLS), n_c, 7, k)
    J = loads.columns(range(1, 7)).transposed()
    by_parameters = BallMatrix(changes.rows[:n], k)
    S = _dependent(K, by_parameters, m)
    if S is None:
        return None
    actuator_changes = BallMatrix(changes.rows[n : n + n_u], k)
    Q = BallMatrix.constant(A[:, :m], k)
    if n:
        by_loops = S.columns(range(m, m + count)).numeric_product(A[:, m:].tolist())
        actuator_changes = by_loops.plus(actuator_changes)
        Q = S.columns(range(m)).numeric_product(A[:, m:].tolist()).plus(Q)
    right = _side_by_side(
        BallMatrix.constant(np.diag(limits.encoders), k),
        actuator_changes.numeric_product((-np.eye(n_u)).tolist()),
    )
    C = np.linalg.inv(np.array(Q.centers())).tolist()
    V = near_inverse_product(Q.numeric_product(C), right.numeric_product(C))
    if V is None:
        return None
    no_twist = BallMatrix.constant(np.zeros((6, n_u)), k)
    twist = _side_by_side(no_twist, BallMatrix(changes.rows[n + n_u :], k))
    twist = J.columns(range(m)).times(V).plus(twist)
    velocities = V.rows
    if n:
        empty = BallMatrix.constant(np.zeros((n, n_u)), k)
        W = S.columns(range(m)).times(V)
        W = W.plus(_side_by_side(empty, S.columns(range(m, m + count))))
        twist = J.columns(range(m, n_c)).times(W).plus(twist)
        velocities = [*V.rows, *W.rows]
    return BallMaps(twist=twist, changes=_pose_changes(problem, velocities))


def _dependent(K: BallMatrix, by_parameters: BallMatrix, m: int) -> BallMatrix | None:
    """Return the dependent velocities per independent velocity and per parameter (n, m + n_p)."""
    n = len(K.rows)
    if n == 0:
        return BallMatrix([], K.n_symbols)
    dependent = K.columns(range(m, m + n))
    C = np.linalg.inv(np.array(dependent.centers()))
    right = _side_by_side(K.columns(range(m)), by_parameters).numeric_product((-C).tolist())
    return near_inverse_product(dependent.numeric_product(C.tolist()), right)


def _side_by_side(left: BallMatrix, right: BallMatrix) -> BallMatrix:
    """Return a matrix with the columns of both matrices."""
    rows = [[*a, *b] for a, b in zip(left.rows, right.rows, strict=True)]
    return BallMatrix(rows, left.n_symbols)


def _pose_changes(problem: PoseProblem, velocities: Sequence[Sequence[BallForm]]) -> list[arb]:
    """Return upper bounds (m,) of the changes of the axes by all errors."""
    totals = []
    square = arb(0)
    for name, row, scale in zip(
        problem.velocity_names, velocities, problem.velocity_scale, strict=True
    ):
        total = sum((x.magnitude_bounds() for x in row), arb(0)) * float(scale)
        totals.append(total)
        if name.endswith(ANGULAR_VELOCITIES):
            square += total**2
    angle = ROTATION_RATE * square.sqrt()
    return [
        angle if axis.endswith(ROTATIONS) else total
        for axis, total in zip(problem.axes, totals, strict=False)
    ]


def ball_margins(maps: BallMaps) -> list[float]:
    """Return the margins (m,) of the enlarged box."""
    return [MARGIN * float(change.upper()) for change in maps.changes]


def failed_error(
    problem: PoseProblem, limits: LoadLimits, maps: BallMaps, margin: Sequence[float]
) -> str | None:
    """Return the first claim on errors that is not confirmed; None if all are.

    Args:
        problem: functions of the machine.
        limits: limits of the errors.
        maps: changes due to errors over the enlarged box.
        margin: margins (m,) of the enlarged box.
    """
    for axis, change, width in zip(problem.axes, maps.changes, margin, strict=True):
        is_rotation = axis.endswith(ROTATIONS)
        if not (change < width or (width == 0.0 and change == 0)):
            return f"change of {axis} by errors"
        if is_rotation and width > MAX_ROTATION_MARGIN:
            return f"change of {axis} by errors"
    squared_angle = arb(0)
    for row in maps.twist.rows[3:]:
        squared_angle += sum((x.magnitude_bounds() for x in row), arb(0)) ** 2
    angle = squared_angle.sqrt()
    for i in map(int, np.flatnonzero(np.isfinite(limits.errors))):
        total = sum((_chord(x) for x in maps.twist.rows[i]), arb(0))
        largest = total.upper() if isinstance(total, BallForm) else total
        if i >= 3:
            largest += angle**2 / 2
        if (i >= 3 and not angle <= MAX_ANGLE) or not largest < float(limits.errors[i]):
            return f"error of the tool: {ERROR_DIRECTIONS[i]}"
    return None


def _chord(x: BallForm) -> BallForm:
    """Return an upper bound of |x| that is linear in x."""
    low, high = x.lower(), x.upper()
    if low >= 0:
        return x
    if high <= 0:
        return -x
    span = high - low
    return x * ((high + low) / span) + (-2 * low * high / span)
