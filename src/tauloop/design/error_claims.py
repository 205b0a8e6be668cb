"""Claims on errors of the tool by errors of encoders and parameters, over batches of boxes.

A machine with errors leaves its pose on a path: all errors grow from zero to their whole values. Along
the path the tool moves by the sum over all errors of (twist per error) x (error). The twists are bounded
on a box that is wider by the largest changes of the pose. These changes are smaller than the margin of
the wider box, so that the path does not leave it. So the bound holds for the whole errors, not only to
first order.

With the loops K v + k p = 0, the actuators A v + a p = e and the tool's twist J v + j p, the twists
follow from v_d = S v_i + s p and (A_i + A_d S) v_i = e - (A_d s + a) p.

The rotation vector of the tool differs from the integral of its angular velocity: by less than half the
square of the angle, below one radian.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC, SURE, Claim
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form
from tauloop.design.intervals.matrices import (
    Matrix,
    added,
    gathered,
    inverse_product,
    matrix,
    multiplied,
    product,
    shifted,
    side_by_side,
)
from tauloop.design.loads import ERROR_DIRECTIONS, LoadLimits
from tauloop.design.problem import PoseProblem
from tauloop.design.velocity_forms import dependent_velocities, inverses

#: Margin of the wider box, as a multiple of the changes of the pose in the box itself.
MARGIN = 1.1
#: Largest margin of rotations, rad, and largest rate of a rotation vector per angular velocity: that at
#: `MAX_ROTATION` and this margin in three axes.
MAX_ROTATION_MARGIN, ROTATION_RATE = 0.04, 1.35
#: Largest angle at which half its square bounds what the rotation vector differs by, rad.
MAX_ANGLE = 1.0
#: Ends of the names of angular velocities, and of the axes of a rotation vector.
SPINS, ROTATIONS = (".wx", ".wy", ".wz"), (".rx", ".ry", ".rz")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMaps:
    """Changes by the whole error of each encoder and parameter (s).

    Attributes:
        twist: of the tool (N, 6, s), m and rad.
        velocities: of all velocities (N, m + n, s), m and rad.
        valid: where they are valid (N,).
    """

    twist: Matrix
    velocities: Matrix
    valid: np.ndarray


def error_maps(
    problem: PoseProblem, limits: LoadLimits, K: Matrix, inputs: list[Form]
) -> ErrorMaps:
    """Return the changes by errors.

    Args:
        problem: functions of the machine.
        limits: with the errors of the encoders.
        K: rates of the loops (N, n, m + n), dimensionless.
        inputs: inputs of programs.
    """
    assert problem.loads is not None
    N, k = K.rows.shape[1], K.rows.shape[0] - 2
    m, (n_u, n_c) = len(problem.axes), problem.drives.shape
    n, count = n_c - m, len(problem.parameters)
    values = problem.deviations.run(inputs, ARITHMETIC) if problem.deviations is not None else []
    changes = gathered(values, n + n_u + 6, count, k, N)
    all_rates = side_by_side(
        K.part(range(m)), side_by_side(changes.chosen_rows(range(n)), K.part(range(m, n_c)))
    )
    S, valid = dependent_velocities(all_rates, m + count)
    by_axes, by_parameters = S.part(range(m)), S.part(range(m, m + count))
    A = problem.drives
    moved = added(multiplied(A[:, m:], by_parameters), changes.chosen_rows(range(n, n + n_u)))
    right = side_by_side(_numbers(np.diag(limits.encoders), k, N), multiplied(-np.eye(n_u), moved))
    Q = shifted(multiplied(A[:, m:], by_axes), A[:, :m])
    C = inverses(Q.middle)
    V, converges = inverse_product(multiplied(C, Q), multiplied(C, right))
    none = _numbers(np.zeros((n, n_u)), k, N)
    W = added(product(by_axes, V), side_by_side(none, by_parameters))
    J = gathered(problem.loads.run(inputs, ARITHMETIC), n_c, 7, k, N).part(range(1, 7))
    carried = added(
        product(J.chosen_rows(range(m)).T, V), product(J.chosen_rows(range(m, n_c)).T, W)
    )
    own = side_by_side(
        _numbers(np.zeros((6, n_u)), k, N), changes.chosen_rows(range(n + n_u, n + n_u + 6))
    )
    velocities = matrix(np.concatenate([V.rows, W.rows], axis=-2))
    return ErrorMaps(
        twist=added(carried, own),
        velocities=velocities.scaled(problem.velocity_scale[:, None]),
        valid=valid & converges & np.isfinite(C).all(axis=(1, 2)),
    )


def _numbers(values: np.ndarray, n_symbols: int, N: int) -> Matrix:
    """Return N matrices of numbers as forms."""
    rows = np.zeros((n_symbols + 2, N, *values.shape))
    rows[0] = values
    return matrix(rows)


def pose_changes(problem: PoseProblem, maps: ErrorMaps) -> np.ndarray:
    """Return upper bounds (N, m) of the changes of the axes by all errors."""
    total = maps.velocities.largest().sum(axis=-1) * INFLATION
    changes = total[:, : len(problem.axes)].copy()
    is_spin = np.array([name.endswith(SPINS) for name in problem.velocity_names])
    angle = np.linalg.norm(total[:, is_spin], axis=1) * INFLATION
    for i, axis in enumerate(problem.axes):
        if axis.endswith(ROTATIONS):
            changes[:, i] = ROTATION_RATE * angle
    return np.asarray(changes)


def margins(problem: PoseProblem, maps: ErrorMaps) -> np.ndarray:
    """Return the margins (N, m) of wider boxes; zero where the changes are not bounded."""
    changes = np.where(maps.valid[:, None], MARGIN * pose_changes(problem, maps), 0.0)
    return np.where(np.isfinite(changes), changes, 0.0)


def error_claims(
    problem: PoseProblem,
    limits: LoadLimits,
    maps: ErrorMaps,
    margin: np.ndarray,
    closed: np.ndarray,
) -> list[Claim]:
    """Return the claims that errors of the tool stay within limits.

    Args:
        problem: functions of the machine.
        limits: of the errors.
        maps: changes by errors on the wider boxes.
        margin: margins (N, m) of these boxes.
        closed: where the solution is unique on them (N,).
    """
    is_rotation = np.array([axis.endswith(ROTATIONS) for axis in problem.axes])
    changes = pose_changes(problem, maps)
    stays = (changes < SURE * margin) | (changes + margin == 0.0)
    within = closed & maps.valid & stays.all(axis=1)
    within &= (margin[:, is_rotation] <= MAX_ROTATION_MARGIN).all(axis=1)
    rows = maps.twist.rows.copy()
    rows[:, ~within] = np.nan
    totals = maps.twist.largest()[:, 3:].sum(axis=-1)
    angle = np.linalg.norm(totals, axis=1) * INFLATION
    turned = np.where(angle <= MAX_ANGLE, 0.5 * angle**2, np.inf)
    claims = []
    for i in np.flatnonzero(np.isfinite(limits.errors)):
        name = f"error of the tool: {ERROR_DIRECTIONS[i]}"
        rest = turned if i >= 3 else np.zeros_like(turned)
        claims.append(_error_claim(name, rows[:, :, i], rest, limits.errors[i]))
    return claims


def _error_claim(name: str, rows: np.ndarray, rest: np.ndarray, limit: float) -> Claim:
    """Return the claim that sum_j |x_j| stays below a limit, for forms x (k + 2, N, s).

    |x| is below its chord on the interval of x, which is linear in x.

    Args:
        name: of the claim.
        rows: the forms.
        rest: what the sum may differ by (N,).
        limit: the limit.
    """
    c = rows[0]
    size = np.abs(rows[1:]).sum(axis=0) * INFLATION
    low, high = c - size, c + size
    crosses = (low < 0.0) & (high > 0.0)
    span = np.where(crosses, high - low, 1.0)
    slope = np.where(crosses, (high + low) / span, np.sign(c))
    rise = np.where(crosses, -2.0 * low * high / span, 0.0)
    chord = slope * rows
    chord[0] += rise
    chord[-1] = np.abs(slope) * rows[-1] + 16.0 * ROUNDING * (np.abs(c) + size)
    rounding = 16.0 * rows.shape[2] * ROUNDING
    upper = chord[0].sum(axis=1) + np.abs(chord[1:].sum(axis=2)).sum(axis=0) * INFLATION
    upper = upper + rounding * np.abs(chord).sum(axis=(0, 2)) + rest
    least = np.maximum(np.abs(c) - size * INFLATION, 0.0).sum(axis=1)
    is_point = np.abs(rows[1:-1]).sum(axis=(0, 2)) == 0.0
    return Claim(
        name=name,
        lower=limit - upper,
        middle=limit - np.abs(c).sum(axis=1),
        slopes=-(np.sign(c) * rows[1:-1]).sum(axis=2).T,
        proved=upper < SURE * limit,
        refuted=is_point & (least * (1.0 - rounding) - rest > limit),
    )
