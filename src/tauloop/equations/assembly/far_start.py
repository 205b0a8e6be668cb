"""Closing loops from a far start, by a trust region: for imported machines whose neutral pose is wide open.

Gauss-Newton steps with a damping that only doubles or halves crawl along curved valleys; a trust
region, whose radius follows how well each linear model predicted (Branch, Coleman and Li 1999, as
SciPy has it), goes through.
"""

from __future__ import annotations

import numpy as np

from tauloop.common.blas import one_blas_thread
from tauloop.equations.assembly.loops import Loops
from tauloop.equations.topology import Topology, integrate

#: Changes of the cost, of the coordinates and of the gradient, all free of units, below which
#: nothing more is gained.
ROUNDING = 1e-15
#: Most evaluations of the loops.
EVALUATIONS = 300


@one_blas_thread()
def close_from_afar(
    loops: Loops, q: np.ndarray, *, held: tuple[int, ...] = ()
) -> tuple[np.ndarray, float]:
    """Coordinates that close the loops as well as can be, from one start of any distance.

    Minimises |W phi(q)|^2, with W the row scales that make residuals free of units. A minimum that
    does not close the loops is returned as it is: its residual tells.

    Args:
        loops: the loop equations; `aligned` ones keep joints from closing turned over.
        q: start coordinates (n_q,).
        held: indices of velocities whose coordinates are not moved.

    Returns:
        Coordinates (n_q,) and the largest residual, characteristic lengths (or pure number).
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

    # a tenth of a second of every start of Tauloop, rarely used
    from scipy.optimize import least_squares

    solution = least_squares(
        residual,
        np.zeros(len(movable)),
        jacobian,
        method="trf",
        xtol=ROUNDING,
        ftol=ROUNDING,
        gtol=ROUNDING,
        max_nfev=EVALUATIONS,
    )
    closed = integrate(topology, q[None, :], displacement(solution.x))
    return closed[0], float(loops.openings(loops.residuals(closed)[0])[0])


def _rates(topology: Topology, step: np.ndarray) -> np.ndarray:
    """Velocities (n_v, n_v) per rate of a finite displacement (n_v,): the identity but for rotation vectors.

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


#: Below this angle, rad, the coefficients of the rotation vector's rate are at their limits to
#: 1e-8, which is enough for steps and avoids differences of nearly equal numbers.
SMALL_ANGLE = 1e-4
