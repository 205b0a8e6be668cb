"""Claims on errors of the tool due to errors of encoders and parameters, over batches of boxes.

Let all errors grow from zero to their full values. The pose of the machine then moves along a path, and
the tool moves by the integral of the sum over all errors of (twist per error) x (error). The twists are
bounded over a box that is enlarged by a margin. The changes of the pose are smaller than this margin, so
that the path does not leave the enlarged box. So the bound includes terms of all orders.

With the velocities v of the coordinates, p of the parameters and e of the encoder errors, the loop
equations are K v + k p = 0, the actuators A v + a p = e, and the twist of the tool J v + j p. The twists
follow from the dependent velocities v_d = S v_i + s p and from (A_i + A_d S) v_i = e - (A_d s + a) p.

The rotation vector of the tool differs from the integral of its angular velocity by less than half the
square of the angle, if the angle is below one radian.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC, PROOF_FACTOR, Claim
from tauloop.design.intervals.forms import INFLATION, ROUNDING, Form
from tauloop.design.intervals.matrices import (
    Matrix,
    added,
    inverse_product,
    matrix,
    matrix_from_entries,
    numeric_product,
    product,
    shifted,
    side_by_side,
)
from tauloop.design.loads import ERROR_DIRECTIONS, LoadLimits
from tauloop.design.problem import PoseProblem
from tauloop.design.velocity_forms import dependent_velocities, inverses

#: Margin of the enlarged box, as a multiple of the changes of the pose in the box itself.
MARGIN = 1.1
#: Largest margin of rotations, rad.
MAX_ROTATION_MARGIN = 0.04
#: Upper bound of the derivative of a rotation vector per angular velocity. It is valid for rotations
#: up to `MAX_ROTATION` with `MAX_ROTATION_MARGIN` in three axes.
ROTATION_RATE = 1.35
#: Largest angle, rad, up to which half its square bounds the difference between the rotation vector
#: and the integral of the angular velocity.
MAX_ANGLE = 1.0
#: Suffixes of the names of angular velocities.
ANGULAR_VELOCITIES = (".wx", ".wy", ".wz")
#: Suffixes of the names of the components of a rotation vector.
ROTATIONS = (".rx", ".ry", ".rz")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorMaps:
    """Changes due to the full error of each of s encoders and parameters.

    Attributes:
        twist: twists of the tool (N, 6, s), m and rad.
        velocities: changes of all coordinates (N, m + n, s), in the order of the velocities, m and rad.
        valid: whether they are valid in each box (N,).
    """

    twist: Matrix
    velocities: Matrix
    valid: np.ndarray


def error_maps(
    problem: PoseProblem, limits: LoadLimits, K: Matrix, inputs: list[Form]
) -> ErrorMaps:
    """Return the changes due to errors.

    Args:
        problem: functions of the machine.
        limits: limits; they contain the errors of the encoders.
        K: Jacobian of the loop equations (N, n, m + n), dimensionless.
        inputs: affine forms of the pose, the unknowns and the parameters, which are the inputs of
            the programs of the problem.
    """
    assert problem.loads is not None
    N, k = K.rows.shape[1], K.rows.shape[0] - 2
    m = len(problem.axes)
    n_u, n_c = problem.transmission.shape
    n = n_c - m
    count = len(problem.parameters)
    values = problem.deviations.run(inputs, ARITHMETIC) if problem.deviations is not None else []
    changes = matrix_from_entries(values, n + n_u + 6, count, k, N)
    loop_rows = side_by_side(
        K.chosen_columns(range(m)),
        side_by_side(changes.chosen_rows(range(n)), K.chosen_columns(range(m, n_c))),
    )
    S, valid = dependent_velocities(loop_rows, m + count)
    by_axes = S.chosen_columns(range(m))
    by_parameters = S.chosen_columns(range(m, m + count))
    A = problem.transmission
    actuator_changes = added(
        numeric_product(A[:, m:], by_parameters), changes.chosen_rows(range(n, n + n_u))
    )
    right_side = side_by_side(
        _numbers(np.diag(limits.encoders), k, N), numeric_product(-np.eye(n_u), actuator_changes)
    )
    Q = shifted(numeric_product(A[:, m:], by_axes), A[:, :m])
    C = inverses(Q.center)
    V, converges = inverse_product(numeric_product(C, Q), numeric_product(C, right_side))
    no_motion = _numbers(np.zeros((n, n_u)), k, N)
    W = added(product(by_axes, V), side_by_side(no_motion, by_parameters))
    loads = matrix_from_entries(problem.loads.run(inputs, ARITHMETIC), n_c, 7, k, N)
    J = loads.chosen_columns(range(1, 7))
    by_coordinates = added(
        product(J.chosen_rows(range(m)).T, V), product(J.chosen_rows(range(m, n_c)).T, W)
    )
    direct_twist = side_by_side(
        _numbers(np.zeros((6, n_u)), k, N), changes.chosen_rows(range(n + n_u, n + n_u + 6))
    )
    velocities = matrix(np.concatenate([V.rows, W.rows], axis=-2))
    return ErrorMaps(
        twist=added(by_coordinates, direct_twist),
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
    total = maps.velocities.magnitude_bounds().sum(axis=-1) * INFLATION
    changes = total[:, : len(problem.axes)].copy()
    is_angular = np.array([name.endswith(ANGULAR_VELOCITIES) for name in problem.velocity_names])
    angle = np.linalg.norm(total[:, is_angular], axis=1) * INFLATION
    for i, axis in enumerate(problem.axes):
        if axis.endswith(ROTATIONS):
            changes[:, i] = ROTATION_RATE * angle
    return np.asarray(changes)


def margins(problem: PoseProblem, maps: ErrorMaps) -> np.ndarray:
    """Return the margins (N, m) of enlarged boxes; zero where the changes are not bounded."""
    changes = np.where(maps.valid[:, None], MARGIN * pose_changes(problem, maps), 0.0)
    return np.where(np.isfinite(changes), changes, 0.0)


def error_claims(
    problem: PoseProblem,
    limits: LoadLimits,
    maps: ErrorMaps,
    margin: np.ndarray,
    has_unique_solution: np.ndarray,
) -> list[Claim]:
    """Return the claims that errors of the tool stay within limits.

    Args:
        problem: functions of the machine.
        limits: limits of the errors.
        maps: changes due to errors over the enlarged boxes.
        margin: margins (N, m) of the enlarged boxes.
        has_unique_solution: whether the solution is unique in each enlarged box (N,).
    """
    is_rotation = np.array([axis.endswith(ROTATIONS) for axis in problem.axes])
    changes = pose_changes(problem, maps)
    is_within_margin = (changes < PROOF_FACTOR * margin) | (changes + margin == 0.0)
    is_valid = has_unique_solution & maps.valid & is_within_margin.all(axis=1)
    is_valid &= (margin[:, is_rotation] <= MAX_ROTATION_MARGIN).all(axis=1)
    rows = maps.twist.rows.copy()
    rows[:, ~is_valid] = np.nan
    totals = maps.twist.magnitude_bounds()[:, 3:].sum(axis=-1)
    angle = np.linalg.norm(totals, axis=1) * INFLATION
    rotation_difference = np.where(angle <= MAX_ANGLE, 0.5 * angle**2, np.inf)
    claims = []
    for i in np.flatnonzero(np.isfinite(limits.errors)):
        name = f"error of the tool: {ERROR_DIRECTIONS[i]}"
        difference = rotation_difference if i >= 3 else np.zeros_like(rotation_difference)
        claims.append(_error_claim(name, rows[:, :, i], difference, limits.errors[i]))
    return claims


def _error_claim(name: str, rows: np.ndarray, difference: np.ndarray, limit: float) -> Claim:
    """Return the claim that the error is below a limit.

    The error is sum_j |x_j| of forms x (k + 2, N, s), up to a difference. |x| is at most its chord
    over the interval of x, and the chord is linear in x.

    Args:
        name: name of the claim.
        rows: the forms.
        difference: largest difference (N,) of the error from the sum.
        limit: the limit.
    """
    c = rows[0]
    radius = np.abs(rows[1:]).sum(axis=0) * INFLATION
    low, high = c - radius, c + radius
    contains_zero = (low < 0.0) & (high > 0.0)
    span = np.where(contains_zero, high - low, 1.0)
    slope = np.where(contains_zero, (high + low) / span, np.sign(c))
    intercept = np.where(contains_zero, -2.0 * low * high / span, 0.0)
    chord = slope * rows
    chord[0] += intercept
    chord[-1] = np.abs(slope) * rows[-1] + 16.0 * ROUNDING * (np.abs(c) + radius)
    rounding = 16.0 * rows.shape[2] * ROUNDING
    upper = chord[0].sum(axis=1) + np.abs(chord[1:].sum(axis=2)).sum(axis=0) * INFLATION
    upper = upper + rounding * np.abs(chord).sum(axis=(0, 2)) + difference
    smallest = np.maximum(np.abs(c) - radius * INFLATION, 0.0).sum(axis=1)
    is_point = np.abs(rows[1:-1]).sum(axis=(0, 2)) == 0.0
    return Claim(
        name=name,
        lower=limit - upper,
        margin_at_center=limit - np.abs(c).sum(axis=1),
        slopes=-(np.sign(c) * rows[1:-1]).sum(axis=2).T,
        proved=upper < PROOF_FACTOR * limit,
        refuted=is_point & (smallest * (1.0 - rounding) - difference > limit),
    )
