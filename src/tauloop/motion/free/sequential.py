"""Sequential quadratic programming, which converges in few steps from a nearby solution.

Each step d is the solution of the quadratic program

    minimize  g'd + d'Hd / 2   subject to   lower <= r + J d <= upper.

H is the exact Hessian of the Lagrangian, with eigenvalues of at least a fraction of the largest.
Full steps are taken. If they do not converge within a few steps, the caller must use another
method.

Source: Nocedal and Wright 2006, Numerical Optimization, algorithm 18.1; Arnstrom, Bemporad, Axehill
2022, A dual active-set solver for embedded quadratic programming using recursive LDL' updates
(DAQP).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

#: Maximum number of quadratic programs.
MAX_PROGRAMS = 10
#: Step size at which the iteration ends, relative to the range of each unknown.
STEP_TOLERANCE = 2e-3
#: Minimum eigenvalue of the Hessian matrix, relative to the largest.
MIN_EIGENVALUE = 3e-3
#: Largest accepted step, relative to the range of an unknown.
MAX_STEP = 1.0
#: Distance from its bound within which a constraint is included at first.
ROW_MARGIN = 0.5
#: Largest violation of the other constraints by a step.
ROW_TOLERANCE = 1e-4
#: Maximum number of rounds in which constraints are added.
MAX_ROW_ROUNDS = 4
#: Name of the CasADi solver of quadratic programs.
SOLVER = "daqp"
SETTINGS: dict[str, Any] = {"error_on_fail": False, "daqp": {"primal_tol": 1e-9, "dual_tol": 1e-9}}


class Sequential:
    """Solver of a nonlinear program from a nearby solution."""

    def __init__(self, derivatives: Mapping[str, ca.Function]) -> None:
        """Store the derivatives.

        Args:
            derivatives: functions `grad_f`, `jac_g` and `hess_lag`, as for IPOPT.
        """
        self._derivatives = derivatives

    def solved(
        self, x: np.ndarray, p: np.ndarray, weights: np.ndarray, bounds: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], int] | None:
        """Return solution, multipliers and number of programs; None without convergence.

        The multipliers are those of bounds and rows.

        Args:
            x: start values (n,).
            p: parameters.
            weights: multipliers of the rows (m,).
            bounds: `lbx`, `ubx`, `lbg` and `ubg`.
        """
        scale = bounds["ubx"] - bounds["lbx"]
        scale = np.where(np.isfinite(scale), scale, np.abs(x))
        for k in range(MAX_PROGRAMS):
            step = self._step(x, p, weights, bounds)
            if step is None or not np.abs(step[0] / scale).max() < MAX_STEP:
                return None
            x = x + step[0]
            weights = step[2]
            if np.abs(step[0] / scale).max() < STEP_TOLERANCE:
                return x, step[1:], k + 1
        return None

    def _step(
        self, x: np.ndarray, p: np.ndarray, weights: np.ndarray, bounds: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Return the step of a quadratic program, and its multipliers; None without a solution.

        Only rows near their bounds are included.
        """
        _, gradient = self._derivatives["grad_f"](x, p)
        rows, jacobian = self._derivatives["jac_g"](x, p)
        r = rows.full().ravel()
        lower, upper = bounds["lbg"] - r, bounds["ubg"] - r
        hessian = _convex(self._derivatives["hess_lag"](x, p, 1.0, weights).full())
        is_included = np.minimum(upper, -lower) < ROW_MARGIN
        for _ in range(MAX_ROW_ROUNDS):
            included = np.flatnonzero(is_included)
            jacobian_rows = jacobian[included.tolist(), :]
            shapes = {"h": ca.Sparsity.dense(*hessian.shape), "a": jacobian_rows.sparsity()}
            solver = ca.conic("step", SOLVER, shapes, SETTINGS)
            limits = {
                "lba": lower[included],
                "uba": upper[included],
                "lbx": bounds["lbx"] - x,
                "ubx": bounds["ubx"] - x,
            }
            solution = solver(h=hessian, g=gradient, a=jacobian_rows, **limits)
            d = solution["x"].full().ravel()
            row_multipliers = np.zeros(len(r))
            row_multipliers[included] = solution["lam_a"].full().ravel()
            if not (np.isfinite(d).all() and np.isfinite(row_multipliers).all()):
                return None
            predicted = (jacobian @ d).full().ravel()
            is_violated = np.maximum(predicted - upper, lower - predicted) > ROW_TOLERANCE
            if not (is_violated & ~is_included).any():
                if is_violated.any():
                    return None
                return d, solution["lam_x"].full().ravel(), row_multipliers
            is_included |= is_violated
        return None


def _convex(upper: np.ndarray) -> np.ndarray:
    """Return a symmetric positive definite matrix from an upper triangle.

    Smaller eigenvalues are replaced by a fraction of the largest absolute eigenvalue.
    """
    values, vectors = np.linalg.eigh(upper, UPLO="U")
    return np.asarray(
        (vectors * np.maximum(values, MIN_EIGENVALUE * np.abs(values).max())) @ vectors.T
    )
