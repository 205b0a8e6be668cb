"""Claims that static forces are within their limits, over batches of boxes.

The machine has m independent and n dependent velocities, n_u actuators, and V vertices of the range
of the wrench on the tool. Matrices of generalized forces have seven columns: the forces at rest,
and the forces due to each component of a unit wrench at the tool.

An affine form is a stack of k + 2 rows: row 0 is its value at the center of the box, rows 1 to k
are its linear changes to the faces, and row k + 1 is the radius of its remainder.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC, POINT_ERROR, PROOF_MARGIN, Claim
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
)
from tauloop.design.loads import LoadLimits, distribution, force_ranges, separation
from tauloop.design.problem import PoseProblem
from tauloop.design.velocity_forms import inverses

#: Name of the claim that redundant actuators share a load within their limits.
SHARED_FORCES = "forces within limits"
#: Relative and absolute amount by which limits are widened in a proof that no forces are within them.
LIMIT_WIDENING = 1e-9
#: Bound of the rounding errors of a sum of products, relative to its largest terms.
SUM_ERROR = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Balance:
    """The balance Q^T u = H [1; -w] of actuator forces u with a wrench w on the tool, over boxes.

    Attributes:
        loads: generalized forces (m + n, 7) on all velocities.
        Q: actuator velocities per independent velocity (n_u, m).
        H: generalized forces (m, 7) on the independent velocities, which include the effect of the
            dependent velocities.
    """

    loads: Matrix
    Q: Matrix
    H: Matrix


def load_claims(
    problem: PoseProblem, limits: LoadLimits, S: Matrix, valid: np.ndarray, inputs: list[Form]
) -> list[Claim]:
    """Return a claim for each limited force; for redundant actuators, a single claim on all forces.

    Args:
        problem: functions of the machine.
        limits: limits of forces.
        S: dependent velocities (N, n, m) per independent velocity, dimensionless.
        valid: whether S is valid in each box (N,).
        inputs: affine forms of the pose, the unknowns and the parameters, which are the inputs of
            the programs of the problem.
    """
    balance = _balance(problem, S, inputs)
    n_u, m = len(problem.transmission), len(problem.axes)
    if n_u > m:
        return [_shared_claim(limits, balance, valid)]
    # Solve Q^T U = H over the boxes, preconditioned with the inverse of Q^T at the center of each
    # box.
    C = inverses(balance.Q.center.swapaxes(1, 2))
    U, converges = inverse_product(numeric_product(C, balance.Q.T), numeric_product(C, balance.H))
    U = _valid_only(U, valid & converges & np.isfinite(C).all(axis=(1, 2)))
    forces = numeric_product(limits.wrenches.T, U.T).T
    values = _limited_forces(limits, balance, forces)
    return [
        _within(name, values.rows[:, :, r], limits.lower[r], limits.upper[r])
        for r, name in enumerate(limits.quantities)
    ]


def _balance(problem: PoseProblem, S: Matrix, inputs: list[Form]) -> _Balance:
    """Return the balance of forces over boxes."""
    assert problem.loads is not None
    m, N, k = len(problem.axes), S.rows.shape[1], S.rows.shape[0] - 2
    n_c = problem.transmission.shape[1]
    loads = matrix_from_entries(problem.loads.run(inputs, ARITHMETIC), n_c, 7, k, N)
    independent = range(m)
    dependent = range(m, n_c)
    A = problem.transmission
    dependent_loads = product(S.T, loads.chosen_rows(dependent))
    return _Balance(
        loads=loads,
        Q=shifted(numeric_product(A[:, m:], S), A[:, :m]),
        H=added(dependent_loads, loads.chosen_rows(independent)),
    )


def _valid_only(x: Matrix, valid: np.ndarray) -> Matrix:
    """Return the matrices with NaN in the boxes where they are not valid (N,)."""
    rows = x.rows.copy()
    rows[:, ~valid] = np.nan
    return matrix(rows)


def _limited_forces(limits: LoadLimits, balance: _Balance, forces: Matrix) -> Matrix:
    """Return the r forces that have limits (r, V) for actuator forces (n_u, V)."""
    tau = balance.loads.chosen_columns([0])
    return added(numeric_product(limits.by_force, forces), numeric_product(limits.by_load, tau))


def _is_point(rows: np.ndarray) -> np.ndarray:
    """Return whether forms (k + 2, N, ...) do not change over their box, which is a point (N,)."""
    others = tuple(range(2, rows.ndim))
    return np.asarray(np.abs(rows[1:-1]).sum(axis=(0, *others)) == 0.0)


def _within(name: str, rows: np.ndarray, lower: float, upper: float) -> Claim:
    """Return the claim that all forms (k + 2, N, V) are within limits."""
    margins = []
    for limit, sign in ((lower, 1.0), (upper, -1.0)):
        if np.isfinite(limit):
            margins.append(_margin(rows, limit, sign))
    return _positive_claim(name, np.concatenate(margins, axis=2))


def _margin(rows: np.ndarray, limit: float, sign: float) -> np.ndarray:
    """Return sign (x - limit) as forms (k + 2, N, V)."""
    margin = sign * rows
    margin[0] -= sign * limit
    margin[-1] = rows[-1] + 4.0 * ROUNDING * (np.abs(rows[0]) + abs(limit))
    return margin


def _positive_claim(name: str, rows: np.ndarray) -> Claim:
    """Return the claim that all V forms (k + 2, N, V) are positive."""
    center = rows[0]
    radius = np.abs(rows[1:]).sum(axis=0) * INFLATION
    lower = center - radius * INFLATION - ROUNDING * np.abs(center)
    upper = center + radius * INFLATION + ROUNDING * np.abs(center)
    predicted = center - np.abs(rows[1:-1]).sum(axis=0)
    worst = np.nan_to_num(predicted, nan=-np.inf).argmin(axis=1)
    boxes = np.arange(len(worst))
    is_positive = lower > PROOF_MARGIN * np.abs(center)
    return Claim(
        name=name,
        lower=np.nan_to_num(lower, nan=-np.inf).min(axis=1),
        margin_at_center=center[boxes, worst],
        slopes=rows[1:-1, boxes, worst].T,
        proved=is_positive.all(axis=1),
        refuted=_is_point(rows) & (upper < 0.0).any(axis=1),
    )


def _shared_claim(limits: LoadLimits, balance: _Balance, valid: np.ndarray) -> Claim:
    """Return the claim that forces within limits balance the wrench at each vertex of its range.

    Any forces u_0 give balanced forces u = u_0 + B (Q^T B)^-1 (h - Q^T u_0), where h are the
    generalized forces to balance and B is the pseudoinverse of Q^T at the center of the box.
    """
    H = numeric_product(limits.wrenches.T, balance.H.T).T
    Qt = balance.Q.T
    finite = (
        valid & np.isfinite(Qt.center).all(axis=(1, 2)) & np.isfinite(H.center).all(axis=(1, 2))
    )
    Qt_center = np.where(finite[:, None, None], Qt.center, 0.0)
    h_center = np.where(finite[:, None, None], H.center, 0.0)
    tau = np.where(finite[:, None], balance.loads.center[:, :, 0], 0.0)
    lower, upper = force_ranges(limits, tau)
    u_0 = distribution(Qt_center, h_center, lower, upper)
    B = np.linalg.pinv(Qt_center)
    difference = added(H, numeric_product(u_0.swapaxes(1, 2), balance.Q).T, -1.0)
    Z, converges = inverse_product(numeric_product(B.swapaxes(1, 2), balance.Q).T, difference)
    forces = shifted(numeric_product(B, _valid_only(Z, finite & converges)), u_0)
    values = _limited_forces(limits, balance, forces)
    margins = []
    for r in range(len(limits.quantities)):
        for limit, sign in ((limits.lower[r], 1.0), (limits.upper[r], -1.0)):
            if np.isfinite(limit):
                margins.append(_margin(values.rows[:, :, r], limit, sign))
    claim = _positive_claim(SHARED_FORCES, np.concatenate(margins, axis=2))
    claim = replace(claim, refuted=np.zeros(len(valid), dtype=bool))
    candidates = np.flatnonzero(_is_point(balance.H.rows) & finite & ~claim.proved)
    return _with_refuted(claim, Qt, H, (lower, upper), candidates)


def _with_refuted(
    claim: Claim,
    Qt: Matrix,
    H: Matrix,
    ranges: tuple[np.ndarray, np.ndarray],
    candidates: np.ndarray,
) -> Claim:
    """Return the claim, refuted at the point boxes at which no forces within limits balance a load.

    Args:
        claim: the claim on shared forces.
        Qt: Q^T (N, m, n_u).
        H: generalized forces (N, m, V) for each vertex of the wrench's range.
        ranges: lower and upper limits (N, n_u) of the forces.
        candidates: indices of the point boxes that are tested.
    """
    refuted = claim.refuted.copy()
    margin_at_center = claim.margin_at_center.copy()
    for i in candidates:
        low, high = ranges[0][i], ranges[1][i]
        for vertex in range(H.rows.shape[-1]):
            margin, y = separation(Qt.center[i], H.center[i, :, vertex], low, high)
            if margin < 0.0 and _separates(y, Qt, H, i, vertex, low, high):
                refuted[i] = True
                margin_at_center[i] = margin
                break
    return replace(claim, refuted=refuted, margin_at_center=margin_at_center)


def _separates(
    y: np.ndarray, Qt: Matrix, H: Matrix, i: int, vertex: int, low: np.ndarray, high: np.ndarray
) -> bool:
    """Return whether y^T h is beyond y^T Q^T u for all forces u within limits, despite rounding.

    The matrix Q^T and the vector h are those of box i; h balances the wrench at a vertex of its
    range.
    """
    error = Qt.radius[i] + 4.0 * len(y) * ROUNDING * np.abs(Qt.center[i]) + POINT_ERROR
    g = y @ Qt.center[i]
    g_error = np.abs(y) @ error
    load = y @ H.center[i, :, vertex]
    load_error = np.abs(y) @ H.radius[i, :, vertex]
    load_error += 4.0 * len(y) * ROUNDING * float(np.abs(y) @ np.abs(H.center[i, :, vertex]))
    wide_low = low - LIMIT_WIDENING * np.abs(low) - LIMIT_WIDENING
    wide_high = high + LIMIT_WIDENING * np.abs(high) + LIMIT_WIDENING
    ends = np.stack(
        [
            (g - g_error) * wide_low,
            (g + g_error) * wide_low,
            (g - g_error) * wide_high,
            (g + g_error) * wide_high,
        ]
    )
    if not np.isfinite(ends).all():
        return False
    largest = ends.max(axis=0).sum()
    smallest = ends.min(axis=0).sum()
    rounding = SUM_ERROR * np.abs(ends).max(axis=0).sum()
    is_above = load - load_error > largest + rounding
    is_below = load + load_error < smallest - rounding
    return bool(is_above or is_below)
