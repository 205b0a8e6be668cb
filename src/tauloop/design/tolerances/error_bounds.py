"""Proved bounds of what first-order errors of the tool leave out, over all errors within tolerances.

The errors e are the axes of a box, one generator each, and the displacement d of the coordinates is
the unknown of f(q + d, e) = f(q, 0). By Krawczyk's test d = S e + r with a bound of r of second order,
and first-order forms of the tool's place and rotation follow.

Over-constrained machines have more loop equations g than independent ones f. A machine that assembles
satisfies all of them. So its coordinates are the solution of f, and the bounds hold for it. The forms of
g bound how far the redundant loops of the solution are open.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC
from tauloop.design.intervals.forms import INFLATION, Form, form
from tauloop.design.intervals.matrices import Matrix, added, gathered, multiplied, shifted
from tauloop.design.intervals.program import InstructionList, program
from tauloop.design.krawczyk import linear_form, solution_bounds, widened
from tauloop.design.pose_symbols import turned
from tauloop.design.tolerances.error_equations import (
    Array,
    ErrorEquations,
    ErrorExpressions,
    FirstOrder,
)
from tauloop.equations.values import BatchFunction

#: What the programs compute, for messages.
PROGRAM_NAME = "the equations of errors"
#: Numbers in the forms of one batch of poses.
MAX_NUMBERS = 200_000


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
    """Bounds of what first order leaves out, over all combinations of errors; NaN where not proved.

    Attributes:
        twist: (N, 6) of the errors of the tool, m and rad.
        loops: (N, c) of the residuals of redundant loops.
    """

    twist: Array
    loops: Array


def second_order_bounds(
    equations: ErrorEquations, q: Array, errors: Array, first: FirstOrder
) -> SecondOrderBounds:
    """Return bounds of the difference of errors of the tool, and of redundant loops, from first order.

    They hold for every combination of errors of a machine that assembles; NaN where none is proved:
    also for machines whose errors do not determine all coordinates, or with operations that
    intervals do not cover.

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
    none = SecondOrderBounds(
        twist=np.full((len(q), 6), np.nan), loops=np.full(first.mismatch.shape[:2], np.nan)
    )
    if expressions.f.numel() != len(free):
        return none
    try:
        programs = _programs(expressions, free)
    except InputError:
        return none
    scale = np.where(expressions.is_angular[free], 1.0, equations.assembly.loops.length)
    step = max(1, MAX_NUMBERS // (len(errors) + 2) // 100)
    parts = []
    for i in range(0, len(q), step):
        some = slice(i, i + step)
        twist, mismatch = first.twist[some], first.mismatch[some]
        parts.append(_bounds(programs, q[some], errors, (twist, mismatch), scale))
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
    moved = _displaced(expressions, q, displacement)
    readings = ca.substitute(
        [expressions.f],
        [expressions.q, e],
        [q, ca.SX.zeros(e.numel(), 1)],
    )[0]
    f, place, R, redundant = ca.substitute(
        [
            expressions.f,
            expressions.place,
            ca.vec(expressions.rotation),
            expressions.redundant,
        ],
        [expressions.q],
        [ca.densify(moved)],
    )
    f = f - readings
    z = ca.vertcat(q, e, d)
    by_d = ca.jacobian(f, d)
    at_start = [ca.densify(ca.vec(by_d)), ca.densify(ca.vec(ca.jacobian(f, e)))]
    at_start += [ca.densify(place), ca.densify(R)]
    inputs = [q, e, d]
    return _Programs(
        equations=program(PROGRAM_NAME, z, f),
        jacobian=program(PROGRAM_NAME, z, ca.vec(by_d)),
        tool=program(PROGRAM_NAME, z, ca.vertcat(place, R)),
        redundant=program(PROGRAM_NAME, z, redundant),
        derivatives=BatchFunction(ca.Function("derivatives", inputs, at_start, {"cse": True})),
    )


def _displaced(expressions: ErrorExpressions, q: ca.SX, d: ca.SX) -> ca.SX:
    """Return coordinates displaced by d (n_v,): rotations by rotation vectors in the base frame."""
    moved = ca.SX(q)
    for q0, v0 in expressions.quaternions:
        moved[q0 : q0 + 4] = turned(d[v0 : v0 + 3], q[q0 : q0 + 4])
    for i, column in enumerate(expressions.q_of_v):
        if column >= 0:
            moved[int(column)] = q[int(column)] + d[i]
    return moved


def _bounds(
    programs: _Programs, q: Array, errors: Array, first: tuple[Array, Array], scale: Array
) -> SecondOrderBounds:
    """Return the bounds at some poses, with the first-order twist and mismatch there."""
    N, p, n, c = len(q), len(errors), len(scale), first[1].shape[1]
    zeros = [np.zeros((N, p)), np.zeros((N, n))]
    by_d, by_e, place, R = programs.derivatives([q, *zeros], N)
    with np.errstate(all="ignore"):
        C = np.linalg.inv(by_d.reshape(N, n, n).swapaxes(1, 2))
        S = -C @ by_e.reshape(N, p, n).swapaxes(1, 2)
        before = [form(_with_slopes(column, p)) for column in q.T]
        before += [_error_form(j, size, N, p) for j, size in enumerate(errors)]
        slopes = (S * errors).transpose(1, 2, 0)
        unknowns = [linear_form(np.zeros(N), slopes[j]) for j in range(n)]
        solution = solution_bounds(
            programs.equations, programs.jacobian, before, unknowns, (), C, scale
        )
        tight = [widened(y, solution.remainder[:, j]) for j, y in enumerate(unknowns)]
        values = programs.tool.run([*before, *tight], ARITHMETIC)
        moved = shifted(gathered(values[:3], 3, 1, p, N), -place[:, :, None])
        spin, beyond = _rotation(gathered(values[3:], 3, 3, p, N), R)
        twist, mismatch = (rows * errors for rows in first)
        bounds = np.concatenate(
            [_beyond(moved, twist[:, :3]), _beyond(spin, twist[:, 3:]) + beyond], axis=1
        )
        opened = programs.redundant.run([*before, *tight], ARITHMETIC)
        loops = _beyond(gathered(opened, c, 1, p, N), mismatch)
    closed = solution.closed[:, None]
    return SecondOrderBounds(
        twist=np.where(closed & np.isfinite(bounds), bounds, np.nan),
        loops=np.where(closed & np.isfinite(loops), loops, np.nan),
    )


def _with_slopes(middle: Array, p: int) -> Array:
    return np.concatenate([middle[None], np.zeros((p + 1, len(middle)))])


def _error_form(j: int, size: float, N: int, p: int) -> Form:
    rows = np.zeros((p + 2, N))
    rows[1 + j] = size
    return form(rows)


def _rotation(R: Matrix, nominal: Array) -> tuple[Matrix, Array]:
    """Return the sines of the rotation vector (N, 3, 1), and bounds (N, 3) of the rest.

    The rotation vector is s arcsin|s| / |s| with the sines s.
    """
    R_0 = nominal.reshape(-1, 3, 3).swapaxes(1, 2)
    turn = multiplied(R_0, R.T).T
    difference = added(turn, turn.T, -1.0)
    columns = [difference.part([a]).chosen_rows([b]) for a, b in ((1, 2), (2, 0), (0, 1))]
    rows = 0.5 * np.concatenate([column.rows for column in columns], axis=2)
    size = 0.5 * np.concatenate([column.size for column in columns], axis=1)
    spin = Matrix(rows, size)
    largest = spin.largest()[:, :, 0]
    sine = np.linalg.norm(largest, axis=1, keepdims=True) * INFLATION
    excess = np.arcsin(sine) / np.maximum(sine, 1e-300) - 1.0
    return spin, largest * np.where(sine > 0.0, excess + 1e-15, 0.0)


def _beyond(x: Matrix, first: Array) -> Array:
    """Return bounds (N, r) of forms (N, r, 1) less the first-order terms (N, r, p)."""
    slopes = x.rows[1:-1, :, :, 0].transpose(1, 2, 0)
    unlike = np.abs(slopes - first).sum(axis=2)
    return np.asarray((np.abs(x.rows[0]) + x.rows[-1])[:, :, 0] * INFLATION + unlike)
