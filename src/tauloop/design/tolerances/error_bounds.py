"""Proved bounds of the nonlinear terms of the tool's errors, for all errors within tolerances.

The errors e are the axes of a box, with a generator for each error. The displacement d of the
coordinates is the unknown of f(q + d, e) = f(q, 0), where f are the equations of loops and encoders.
Krawczyk's test proves d = S e + r with a bound of r of second order. From it follow affine forms of the
tool's position and rotation.

Over-constrained machines have redundant loop equations g in addition to f. A machine that can be
assembled satisfies all of them. So its coordinates are the solution of f, and the bounds are valid for
it. The affine forms of g bound the residuals of the redundant loops at this solution.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC
from tauloop.design.intervals.forms import INFLATION, Form, form
from tauloop.design.intervals.matrices import (
    Matrix,
    added,
    matrix_from_entries,
    numeric_product,
    shifted,
)
from tauloop.design.intervals.program import InstructionList, program
from tauloop.design.krawczyk import linear_form, solution_bounds, widened
from tauloop.design.pose_symbols import rotated
from tauloop.design.tolerances.error_equations import (
    Array,
    ErrorEquations,
    ErrorExpressions,
    FirstOrder,
)
from tauloop.equations.values import BatchFunction

#: Name of the programs, for messages.
PROGRAM_NAME = "the equations of errors"
#: Approximate number of coefficients of affine forms in a batch of poses.
BATCH_COEFFICIENTS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Programs:
    """Programs of (q, e, d), and the derivatives at d = 0 and e = 0."""

    equations: InstructionList
    jacobian: InstructionList
    tool: InstructionList
    redundant: InstructionList
    derivatives: BatchFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondOrderBounds:
    """Bounds of nonlinear terms for all combinations of errors; NaN where no bound is proved.

    Attributes:
        twist: (N, 6) bounds for the errors of the tool, m and rad.
        loops: (N, c) bounds for the residuals of redundant loops.
    """

    twist: Array
    loops: Array


def second_order_bounds(
    equations: ErrorEquations, q: Array, errors: Array, first: FirstOrder
) -> SecondOrderBounds:
    """Return bounds of the nonlinear terms of the tool's errors and of redundant loops.

    The bounds are valid for every combination of errors with which the machine can be assembled.
    They are NaN where no bound is proved. No bound is proved for machines whose equations do not
    determine all coordinates, or whose operations interval arithmetic does not support.

    Args:
        equations: the machine with errors.
        q: coordinates (N, n_q).
        errors: largest errors (p,).
        first: derivatives at these coordinates.

    Source: Neumaier 1990, Interval methods for systems of equations, section 5.1; Makino and Berz
    2003, Taylor models (order one).
    """
    expressions = equations.expressions
    free = [i for i in range(expressions.n_v) if i not in equations.held]
    no_bounds = SecondOrderBounds(
        twist=np.full((len(q), 6), np.nan), loops=np.full(first.mismatch.shape[:2], np.nan)
    )
    if expressions.f.numel() != len(free):
        return no_bounds
    try:
        programs = _programs(expressions, free)
    except InputError:
        return no_bounds
    scale = np.where(expressions.is_angular[free], 1.0, equations.assembly.loops.length)
    step = max(1, BATCH_COEFFICIENTS // (len(errors) + 2) // 100)
    parts = []
    for i in range(0, len(q), step):
        batch = slice(i, i + step)
        twist = first.twist[batch]
        mismatch = first.mismatch[batch]
        parts.append(_bounds(programs, q[batch], errors, (twist, mismatch), scale))
    return SecondOrderBounds(
        twist=np.concatenate([part.twist for part in parts]),
        loops=np.concatenate([part.loops for part in parts]),
    )


def _programs(expressions: ErrorExpressions, free: list[int]) -> _Programs:
    """Return the programs.

    Raises:
        InputError: an operation has no interval arithmetic.
    """
    q, e = ca.SX.sym("q", expressions.q.numel()), expressions.errors
    d = ca.SX.sym("d", len(free))
    displacement = ca.SX(expressions.n_v, 1)
    displacement[free] = d
    displaced = _displaced(expressions, q, displacement)
    readings = ca.substitute(
        [expressions.f],
        [expressions.q, e],
        [q, ca.SX.zeros(e.numel(), 1)],
    )[0]
    f, position, R, redundant = ca.substitute(
        [
            expressions.f,
            expressions.position,
            ca.vec(expressions.rotation),
            expressions.redundant,
        ],
        [expressions.q],
        [ca.densify(displaced)],
    )
    f = f - readings
    z = ca.vertcat(q, e, d)
    by_d = ca.jacobian(f, d)
    at_start = [ca.densify(ca.vec(by_d)), ca.densify(ca.vec(ca.jacobian(f, e)))]
    at_start += [ca.densify(position), ca.densify(R)]
    inputs = [q, e, d]
    return _Programs(
        equations=program(PROGRAM_NAME, z, f),
        jacobian=program(PROGRAM_NAME, z, ca.vec(by_d)),
        tool=program(PROGRAM_NAME, z, ca.vertcat(position, R)),
        redundant=program(PROGRAM_NAME, z, redundant),
        derivatives=BatchFunction(ca.Function("derivatives", inputs, at_start, {"cse": True})),
    )


def _displaced(expressions: ErrorExpressions, q: ca.SX, d: ca.SX) -> ca.SX:
    """Return coordinates displaced by d (n_v,): rotations by rotation vectors in the base frame."""
    displaced = ca.SX(q)
    for q0, v0 in expressions.quaternions:
        displaced[q0 : q0 + 4] = rotated(q[q0 : q0 + 4], d[v0 : v0 + 3])
    for i, column in enumerate(expressions.q_of_v):
        if column >= 0:
            displaced[int(column)] = q[int(column)] + d[i]
    return displaced


def _bounds(
    programs: _Programs, q: Array, errors: Array, first: tuple[Array, Array], scale: Array
) -> SecondOrderBounds:
    """Return the bounds at some poses, with the first-order twist and mismatch there."""
    N, p, n, c = len(q), len(errors), len(scale), first[1].shape[1]
    zeros = [np.zeros((N, p)), np.zeros((N, n))]
    by_d, by_e, position, R = programs.derivatives([q, *zeros], N)
    with np.errstate(all="ignore"):
        C = np.linalg.inv(by_d.reshape(N, n, n).swapaxes(1, 2))
        S = -C @ by_e.reshape(N, p, n).swapaxes(1, 2)
        inputs = [form(_constant_rows(column, p)) for column in q.T]
        inputs += [_error_form(j, size, N, p) for j, size in enumerate(errors)]
        slopes = (S * errors).transpose(1, 2, 0)
        unknowns = [linear_form(np.zeros(N), slopes[j]) for j in range(n)]
        solution = solution_bounds(
            programs.equations, programs.jacobian, inputs, unknowns, (), C, scale
        )
        tight = [widened(y, solution.remainder[:, j]) for j, y in enumerate(unknowns)]
        values = programs.tool.run([*inputs, *tight], ARITHMETIC)
        translation = shifted(matrix_from_entries(values[:3], 3, 1, p, N), -position[:, :, None])
        sines, rotation_difference = _rotation(matrix_from_entries(values[3:], 3, 3, p, N), R)
        twist = first[0] * errors
        mismatch = first[1] * errors
        bounds = np.concatenate(
            [
                _nonlinear_bounds(translation, twist[:, :3]),
                _nonlinear_bounds(sines, twist[:, 3:]) + rotation_difference,
            ],
            axis=1,
        )
        residuals = programs.redundant.run([*inputs, *tight], ARITHMETIC)
        loops = _nonlinear_bounds(matrix_from_entries(residuals, c, 1, p, N), mismatch)
    is_valid = solution.has_unique_solution[:, None]
    return SecondOrderBounds(
        twist=np.where(is_valid & np.isfinite(bounds), bounds, np.nan),
        loops=np.where(is_valid & np.isfinite(loops), loops, np.nan),
    )


def _constant_rows(center: Array, p: int) -> Array:
    """Return the coefficients (p + 2, N) of constant forms."""
    return np.concatenate([center[None], np.zeros((p + 1, len(center)))])


def _error_form(j: int, tolerance: float, N: int, p: int) -> Form:
    """Return N forms of the error with index j, whose range is ± its tolerance."""
    rows = np.zeros((p + 2, N))
    rows[1 + j] = tolerance
    return form(rows)


def _rotation(R: Matrix, nominal: Array) -> tuple[Matrix, Array]:
    """Return the sines s (N, 3, 1) of the rotation, and bounds (N, 3) of their error.

    s is the vector of the skew-symmetric part of R R_0^T. The rotation vector is s arcsin|s| / |s|; the
    bounds are those of its difference from s.
    """
    R_0 = nominal.reshape(-1, 3, 3).swapaxes(1, 2)
    relative = numeric_product(R_0, R.T).T
    difference = added(relative, relative.T, -1.0)
    columns = [difference.chosen_columns([a]).chosen_rows([b]) for a, b in ((1, 2), (2, 0), (0, 1))]
    rows = 0.5 * np.concatenate([column.rows for column in columns], axis=2)
    radius = 0.5 * np.concatenate([column.radius for column in columns], axis=1)
    sines = Matrix(rows, radius)
    largest = sines.magnitude_bounds()[:, :, 0]
    sine = np.linalg.norm(largest, axis=1, keepdims=True) * INFLATION
    excess = np.arcsin(sine) / np.maximum(sine, 1e-300) - 1.0
    return sines, largest * np.where(sine > 0.0, excess + 1e-15, 0.0)


def _nonlinear_bounds(x: Matrix, first_order: Array) -> Array:
    """Return bounds (N, r) of forms (N, r, 1) minus the first-order terms (N, r, p)."""
    generators = x.rows[1:-1, :, :, 0].transpose(1, 2, 0)
    difference = np.abs(generators - first_order).sum(axis=2)
    return np.asarray((np.abs(x.rows[0]) + x.rows[-1])[:, :, 0] * INFLATION + difference)
