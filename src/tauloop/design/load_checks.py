"""Check of claims on forces in one box, in the balls of python-flint's arb."""

from __future__ import annotations

import numpy as np

from tauloop.design.intervals.balls import BALLS, BallForm, BallMatrix, near_inverse_product
from tauloop.design.loads import LoadLimits, distribution, force_ranges
from tauloop.design.problem import PoseProblem


def failed_load(
    problem: PoseProblem, limits: LoadLimits, S: BallMatrix, inputs: list[BallForm]
) -> str | None:
    """Return the first claim on forces that is not proved; None if all are proved.

    Args:
        problem: functions of the machine.
        limits: limits of forces.
        S: dependent velocities (n, m) per independent velocity, dimensionless.
        inputs: forms of the pose, the unknowns and the parameters, which are the inputs of the
            programs of the problem.
    """
    assert problem.loads is not None
    m, k = len(problem.axes), S.n_symbols
    n_u, n_c = problem.transmission.shape
    loads = BallMatrix.by_columns(problem.loads.run(inputs, BALLS), n_c, 7, k)
    A = problem.transmission
    H, Q = BallMatrix(loads.rows[:m], k), BallMatrix.constant(A[:, :m], k)
    if S.rows:
        dependent = BallMatrix(loads.rows[m:], k)
        H = S.transposed().times(dependent).plus(H)
        Q = S.numeric_product(A[:, m:].tolist()).plus(Q)
    if n_u > m:
        forces = _shared_forces(limits, loads, Q, H)
        if forces is None:
            return "balance of forces"
        return _first_unproved(limits, loads, forces)
    C = np.linalg.inv(np.array(Q.centers()).T).tolist()
    U = near_inverse_product(Q.transposed().numeric_product(C), H.numeric_product(C))
    if U is None:
        return "balance of forces"
    return _first_unproved(limits, loads, _forces_at_vertices(U, limits.wrenches))


def _forces_at_vertices(U: BallMatrix, wrenches: np.ndarray) -> BallMatrix:
    """Return the forces due to the loads at rest and to each vertex of the wrench's range."""
    return U.transposed().numeric_product(wrenches.T.tolist()).transposed()


def _first_unproved(limits: LoadLimits, loads: BallMatrix, forces: BallMatrix) -> str | None:
    """Return the first limited force that is not proved to be within its limits."""
    by_forces = forces.numeric_product(limits.by_force.tolist())
    by_loads = loads.columns([0]).numeric_product(limits.by_load.tolist())
    for r, name in enumerate(limits.quantities):
        low, high = float(limits.lower[r]), float(limits.upper[r])
        for value in by_forces.rows[r]:
            total = value + by_loads.rows[r][0]
            if not total.lower() > low or not total.upper() < high:
                return name
    return None


def _shared_forces(
    limits: LoadLimits, loads: BallMatrix, Q: BallMatrix, H: BallMatrix
) -> BallMatrix | None:
    """Return balanced forces u_0 + B (Q^T B)^-1 (h - Q^T u_0) of redundant actuators.

    The generalized forces h are those that the actuators must balance. The numeric matrices B and
    u_0 are a pseudoinverse of Q^T and a force distribution at the center of the box.
    """
    k = Q.n_symbols
    h = _forces_at_vertices(H, limits.wrenches)
    Qt_center = np.array(Q.centers()).T
    tau = np.array(loads.centers())[:, 0]
    ranges = force_ranges(limits, tau[None])
    u_0 = distribution(Qt_center[None], np.array(h.centers())[None], *ranges)[0]
    B = np.linalg.pinv(Qt_center)
    balanced = Q.transposed().times(BallMatrix.constant(u_0, k))
    difference = h.plus(balanced.numeric_product((-np.eye(len(Qt_center))).tolist()))
    near_identity = Q.numeric_product(B.T.tolist()).transposed()
    Z = near_inverse_product(near_identity, difference)
    return None if Z is None else Z.numeric_product(B.tolist()).plus(BallMatrix.constant(u_0, k))
