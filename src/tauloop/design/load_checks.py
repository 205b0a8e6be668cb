"""Check of claims on forces in one box, in the balls of python-flint's arb."""

from __future__ import annotations

import numpy as np
from flint import arb

from tauloop.design.intervals.balls import BALLS, BallForm, BallMatrix, near_inverse_product
from tauloop.design.loads import LoadLimits, distribution, force_ranges
from tauloop.design.problem import PoseProblem


def failed_load(
    problem: PoseProblem, limits: LoadLimits, S: BallMatrix, inputs: list[BallForm]
) -> str | None:
    """Return the first claim on forces that does not hold; None if all hold.

    Args:
        problem: functions of the machine.
        limits: of forces.
        S: dependent per independent velocities (n, m), dimensionless.
        inputs: inputs of programs.
    """
    assert problem.loads is not None
    m, (n_u, n_c), k = len(problem.axes), problem.drives.shape, S.n_symbols
    loads = BallMatrix.by_columns(problem.loads.run(inputs, BALLS), n_c, 7, k)
    A = problem.drives
    H, Q = BallMatrix(loads.rows[:m], k), _numbers(A[:, :m], k)
    if S.rows:
        dependent = BallMatrix(loads.rows[m:], k)
        H = S.transposed().times(dependent).plus(H)
        Q = S.multiplied(A[:, m:].tolist()).plus(Q)
    if n_u > m:
        forces = _shared_forces(limits, loads, Q, H)
        if forces is None:
            return "balance of forces"
        return _exceeded(limits, loads, forces)
    C = np.linalg.inv(np.array(Q.middle()).T).tolist()
    U = near_inverse_product(Q.transposed().multiplied(C), H.multiplied(C))
    if U is None:
        return "balance of forces"
    return _exceeded(limits, loads, _with_wrenches(U, limits.wrenches))


def _numbers(values: np.ndarray, n_symbols: int) -> BallMatrix:
    return BallMatrix([[arb(float(x)) for x in row] for row in values], n_symbols)


def _with_wrenches(U: BallMatrix, wrenches: np.ndarray) -> BallMatrix:
    """Return the forces by loads at rest and each corner of the wrench's range."""
    return U.transposed().multiplied(wrenches.T.tolist()).transposed()


def _exceeded(limits: LoadLimits, loads: BallMatrix, forces: BallMatrix) -> str | None:
    """Return the first limited force that is not shown to be within its limits."""
    of_forces = forces.multiplied(limits.by_force.tolist())
    of_loads = loads.columns([0]).multiplied(limits.by_load.tolist())
    for r, name in enumerate(limits.quantities):
        low, high = float(limits.lower[r]), float(limits.upper[r])
        for value in of_forces.rows[r]:
            total = value + of_loads.rows[r][0]
            if not total.lower() > low or not total.upper() < high:
                return name
    return None


def _shared_forces(
    limits: LoadLimits, loads: BallMatrix, Q: BallMatrix, H: BallMatrix
) -> BallMatrix | None:
    """Return balanced forces u_0 + B (Q^T B)^-1 (h - Q^T u_0) of redundant actuators."""
    k = Q.n_symbols
    needed = _with_wrenches(H, limits.wrenches)
    balance = np.array(Q.middle()).T
    tau = np.array(loads.middle())[:, 0]
    ranges = force_ranges(limits, tau[None])
    start = distribution(balance[None], np.array(needed.middle())[None], *ranges)[0]
    B = np.linalg.pinv(balance)
    used = Q.transposed().times(_numbers(start, k))
    rest = needed.plus(used.multiplied((-np.eye(len(balance))).tolist()))
    near_one = Q.multiplied(B.T.tolist()).transposed()
    Z = near_inverse_product(near_one, rest)
    return None if Z is None else Z.multiplied(B.tolist()).plus(_numbers(start, k))
