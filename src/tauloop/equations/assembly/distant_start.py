"""Closing of loops from a distant start by a trust region, for imported machines.

The loops of an imported machine may be far from closed at its neutral pose. Gauss-Newton steps with
damping that only doubles or halves progress slowly along curved valleys. A trust-region method
adapts the radius to the prediction error of each linear model (Branch, Coleman and Li 1999, as in
SciPy) and converges.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.execution.blas import one_blas_thread
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.topology import Topology, integrate

#: Relative changes of the cost, the coordinates and the gradient below which the search stops.
TRUST_REGION_TOLERANCE = 1e-15
#: Maximum number of evaluations of the loops.
MAX_EVALUATIONS = 300


@one_blas_thread()
def close_from_distant_start(
    loops: Loops, q: np.ndarray, *, held: tuple[int, ...] = ()
) -> tuple[np.ndarray, float]:
    """Return the coordinates that close the loops best, from a start at any distance.

    The function minimizes |W phi(q)|^2, where the row scales W make residuals dimensionless. If the
    minimum does not close the loops, it is returned anyway; its residual shows that they are open.

    Args:
        loops: the loop equations; the equations of `aligned` prevent wrong orientations of joints.
        q: start coordinates (n_q,).
        held: indices of velocities whose coordinates do not move.

    Returns:
        Coordinates (n_q,) and the largest residual, characteristic lengths (or dimensionless).
    """
    topology, weight = loops.topology, loops.row_scale
    movable = [i for i in range(topology.n_v) if i not in held]
    if not loops.names or not movable:
        return q, float(loops.openings(loops.residuals(q[None, :])[0])[0])

    def displacement(x: np.ndarray) -> np.ndarray:
        step = np.zeros((1, topology.n_v))
        step[0, movable] = x * loops.velocity_scale[movable]
        return step

    def residual(x: np.ndarray) -> np.ndarray:
        return np.asarray(
            weight * loops.residuals(integrate(topology, q[None, :], displacement(x)))[0][0]
        )

    def jacobian(x: np.ndarray) -> np.ndarray:
        step = displacement(x)
        _, K = loops.residuals(integrate(topology, q[None, :], step))
        scaled = (
            loops.row_scale[:, None] * (K[0] @ _rates(topology, step[0])) * loops.velocity_scale
        )
        return np.asarray(scaled[:, movable])

    # imported here, because the import takes a tenth of a second and is rarely needed
    from scipy.optimize import least_squares

    solution = least_squares(
        residual,
        np.zeros(len(movable)),
        jacobian,
        method="trf",
        xtol=TRUST_REGION_TOLERANCE,
        ftol=TRUST_REGION_TOLERANCE,
        gtol=TRUST_REGION_TOLERANCE,
        max_nfev=MAX_EVALUATIONS,
    )
    closed = integrate(topology, q[None, :], displacement(solution.x))
    return closed[0], float(loops.openings(loops.residuals(closed)[0])[0])


def _rates(topology: Topology, step: np.ndarray) -> np.ndarray:
    """Return velocities (n_v, n_v) per rate of a finite displacement (n_v,).

    The matrix is the identity except for rotation vectors.

    The angular velocity of exp(w) R is J w' with J = I + (1 - cos a)/a^2 [w] + (a - sin a)/a^3
    [w]^2, a = |w|.
    """
    rates = np.eye(topology.n_v)
    for _, iv in topology.quaternions:
        w = step[iv : iv + 3]
        angle = float(np.linalg.norm(w))
        W = np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
        if angle < SMALL_ANGLE:
            first, second = 0.5, 1.0 / 6.0
        else:
            first, second = (1.0 - np.cos(angle)) / angle**2, (angle - np.sin(angle)) / angle**3
        rates[iv : iv + 3, iv : iv + 3] += first * W + second * W @ W
    return rates


#: Angle, rad, below which the coefficients of the rotation vector's rate are replaced by their
#: limits at zero, to avoid differences of nearly equal numbers. The error is 1e-8.
SMALL_ANGLE = 1e-4
