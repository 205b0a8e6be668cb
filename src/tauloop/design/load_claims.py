"""Bounds of forces at rest over batches of boxes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.claims import ARITHMETIC, POINT_ERROR, SURE, Claim
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
)
from tauloop.design.loads import LoadLimits, distribution, force_ranges, separation
from tauloop.design.problem import PoseProblem
from tauloop.design.velocity_forms import inverses

#: Name of the claim that redundant actuators share a load within their limits.
SHARED_FORCES = "forces within limits"
#: Widening of limits in a proof that no forces are within them, relative to them.
WIDENING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Balance:
    """Q^T u = H [1; -w] over boxes.

    Attributes:
        loads: tau and unit wrenches (m + n, 7).
        Q: actuator velocities per independent velocity (n_u, m).
        H: generalized forces (m, 7).
    """

    loads: Matrix
    Q: Matrix
    H: Matrix


def load_claims(
    problem: PoseProblem, limits: LoadLimits, S: Matrix, valid: np.ndarray, inputs: list[Form]
) -> list[Claim]:
    """Return the claims on forces.

    Args:
        problem: functions of the machine.
        limits: of forces.
        S: dependent per independent velocities (N, n, m), dimensionless.
        valid: where they are valid (N,).
        inputs: inputs of programs.
    """
    balance = _balance(problem, S, inputs)
    if len(problem.drives) > len(problem.axes):
        return [_shared_claim(limits, balance, valid)]
    C = inverses(balance.Q.middle.swapaxes(1, 2))
    U, converges = inverse_product(multiplied(C, balance.Q.T), multiplied(C, balance.H))
    U = _only(U, valid & converges & np.isfinite(C).all(axis=(1, 2)))
    forces = multiplied(limits.wrenches.T, U.T).T
    values = _quantities(limits, balance, forces)
    return [
        _within(name, values.rows[:, :, r], limits.lower[r], limits.upper[r])
        for r, name in enumerate(limits.quantities)
    ]


def _balance(problem: PoseProblem, S: Matrix, inputs: list[Form]) -> _Balance:
    assert problem.loads is not None
    m, N, k = len(problem.axes), S.rows.shape[1], S.rows.shape[0] - 2
    n_c = problem.drives.shape[1]
    loads = gathered(problem.loads.run(inputs, ARITHMETIC), n_c, 7, k, N)
    independent, dependent = range(m), range(m, n_c)
    A = problem.drives
    by_dependent = product(S.T, loads.chosen_rows(dependent))
    return _Balance(
        loads=loads,
        Q=shifted(multiplied(A[:, m:], S), A[:, :m]),
        H=added(by_dependent, loads.chosen_rows(independent)),
    )


def _only(x: Matrix, valid: np.ndarray) -> Matrix:
    """Return forms that are undefined where they are not valid (N,)."""
    rows = x.rows.copy()
    rows[:, ~valid] = np.nan
    return matrix(rows)


def _quantities(limits: LoadLimits, balance: _Balance, forces: Matrix) -> Matrix:
    """Return the limited forces (r, V) at actuator forces (n_u, V)."""
    tau = balance.loads.part([0])
    return added(multiplied(limits.by_force, forces), multiplied(limits.by_load, tau))


def _is_point(rows: np.ndarray) -> np.ndarray:
    """Return whether forms (k + 2, N, ...) have no extent (N,)."""
    others = tuple(range(2, rows.ndim))
    return np.asarray(np.abs(rows[1:-1]).sum(axis=(0, *others)) == 0.0)


def _within(name: str, rows: np.ndarray, lower: float, upper: float) -> Claim:
    """Return the claim that forms (k + 2, N, V) are within limits: the worst of all of them."""
    sides = []
    for limit, sign in ((lower, 1.0), (upper, -1.0)):
        if np.isfinite(limit):
            sides.append(_room(rows, limit, sign))
    return _least(name, np.concatenate(sides, axis=2))


def _room(rows: np.ndarray, limit: float, sign: float) -> np.ndarray:
    """Return sign (x - limit) as forms (k + 2, N, V)."""
    room = sign * rows
    room[0] -= sign * limit
    room[-1] = rows[-1] + 4.0 * ROUNDING * (np.abs(rows[0]) + abs(limit))
    return room


def _least(name: str, rooms: np.ndarray) -> Claim:
    """Return the claim that all of some forms (k + 2, N, V) are positive."""
    size = np.abs(rooms[1:]).sum(axis=0) * INFLATION
    lower = rooms[0] - size * INFLATION - ROUNDING * np.abs(rooms[0])
    upper = rooms[0] + size * INFLATION + ROUNDING * np.abs(rooms[0])
    predicted = rooms[0] - np.abs(rooms[1:-1]).sum(axis=0)
    worst = np.nan_to_num(predicted, nan=-np.inf).argmin(axis=1)
    each = np.arange(len(worst))
    sure = lower > (1.0 - SURE) * np.abs(rooms[0])
    return Claim(
        name=name,
        lower=np.nan_to_num(lower, nan=-np.inf).min(axis=1),
        middle=rooms[0, each, worst],
        slopes=rooms[1:-1, each, worst].T,
        proved=sure.all(axis=1),
        refuted=_is_point(rooms) & (upper < 0.0).any(axis=1),
    )


def _shared_claim(limits: LoadLimits, balance: _Balance, valid: np.ndarray) -> Claim:
    """Return the claim that forces within limits balance each corner of the wrench's range.

    Any forces u_0 give balanced ones u = u_0 + B (Q^T B)^-1 (h - Q^T u_0), with B the pseudoinverse of
    Q^T at the middle.
    """
    H = multiplied(limits.wrenches.T, balance.H.T).T
    Qt = balance.Q.T
    finite = (
        valid & np.isfinite(Qt.middle).all(axis=(1, 2)) & np.isfinite(H.middle).all(axis=(1, 2))
    )
    numbers = np.where(finite[:, None, None], Qt.middle, 0.0)
    needed = np.where(finite[:, None, None], H.middle, 0.0)
    tau = np.where(finite[:, None], balance.loads.middle[:, :, 0], 0.0)
    lower, upper = force_ranges(limits, tau)
    start = distribution(numbers, needed, lower, upper)
    B = np.linalg.pinv(numbers)
    rest = added(H, multiplied(start.swapaxes(1, 2), balance.Q).T, -1.0)
    Z, converges = inverse_product(multiplied(B.swapaxes(1, 2), balance.Q).T, rest)
    forces = shifted(multiplied(B, _only(Z, finite & converges)), start)
    values = _quantities(limits, balance, forces)
    rooms = []
    for r in range(len(limits.quantities)):
        for limit, sign in ((limits.lower[r], 1.0), (limits.upper[r], -1.0)):
            if np.isfinite(limit):
                rooms.append(_room(values.rows[:, :, r], limit, sign))
    claim = _least(SHARED_FORCES, np.concatenate(rooms, axis=2))
    claim = replace(claim, refuted=np.zeros(len(valid), dtype=bool))
    tried = np.flatnonzero(_is_point(balance.H.rows) & finite & ~claim.proved)
    return _refuted(claim, limits, Qt, H, (lower, upper), tried)


def _refuted(
    claim: Claim,
    limits: LoadLimits,
    Qt: Matrix,
    H: Matrix,
    ranges: tuple[np.ndarray, np.ndarray],
    tried: np.ndarray,
) -> Claim:
    """Return the claim with the poses (numbers `tried`) at which no forces within limits balance a load."""
    refuted, middle = claim.refuted.copy(), claim.middle.copy()
    for i in tried:
        low, high = (ends[i] for ends in ranges)
        for corner in range(H.rows.shape[-1]):
            room, y = separation(Qt.middle[i], H.middle[i, :, corner], low, high)
            if room < 0.0 and _separates(y, Qt, H, i, corner, low, high):
                refuted[i], middle[i] = True, room
                break
    return replace(claim, refuted=refuted, middle=middle)


def _separates(
    y: np.ndarray, Qt: Matrix, H: Matrix, i: int, corner: int, low: np.ndarray, high: np.ndarray
) -> bool:
    """Return whether y^T h is beyond y^T Q^T u for all forces within limits, with interval bounds."""
    error = Qt.size[i] + 4.0 * len(y) * ROUNDING * np.abs(Qt.middle[i]) + POINT_ERROR
    g, g_error = y @ Qt.middle[i], np.abs(y) @ error
    side, around = y @ H.middle[i, :, corner], np.abs(y) @ H.size[i, :, corner]
    around += 4.0 * len(y) * ROUNDING * float(np.abs(y) @ np.abs(H.middle[i, :, corner]))
    wide_low = low - WIDENING * np.abs(low) - WIDENING
    wide_high = high + WIDENING * np.abs(high) + WIDENING
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
    most, least = ends.max(axis=0).sum(), ends.min(axis=0).sum()
    slack = 1e-12 * np.abs(ends).max(axis=0).sum()
    return bool(side - around > most + slack or side + around < least - slack)
