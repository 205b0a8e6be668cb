"""Quadratic programs in turn: from a solution nearby a few are enough, where a barrier needs many steps.

    least  g'd + d'Hd / 2   with   lower <= r + J d <= upper

H is the exact Hessian of the Lagrangian, with eigenvalues of a share of the largest at least. Whole
steps are taken: what does not settle within a few is left to who asks.

Source: Nocedal and Wright 2006, Numerical Optimization, algorithm 18.1; Arnstrom, Bemporad, Axehill
2022, A dual active-set solver for embedded quadratic programming using recursive LDL' updates
(DAQP).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

#: Most programs in turn; a step that ends them, over the room of each unknown; the least eigenvalue
#: over the largest.
MOST, STILL, LEAST = 10, 2e-3, 3e-3
#: A step beyond so many times the room of an unknown is none.
WILD = 1.0
#: Rows farther from their bounds are looked at afterwards; what a step may exceed; how often rows
#: are added.
NEARBY, BEYOND, ROUNDS = 0.5, 1e-4, 4
#: The solver of quadratic programs, of those that come with CasADi.
SOLVER = "daqp"
SETTINGS: dict[str, Any] = {"error_on_fail": False, "daqp": {"primal_tol": 1e-9, "dual_tol": 1e-9}}


class Sequential:
    """Solves a nonlinear program from a solution nearby."""

    def __init__(self, derivatives: Mapping[str, ca.Function]) -> None:
        """Lay the quadratic program out.

        Args:
            derivatives: as IPOPT takes them: `grad_f`, `jac_g` and `hess_lag`.
        """
        self._derivatives = derivatives

    def solved(
        self, x: np.ndarray, p: np.ndarray, weights: np.ndarray, bounds: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], int] | None:
        """The solution, the multipliers of bounds and rows, and the number of programs; None where it does not settle.

        Args:
            x: where it starts (n,).
            p: parameters.
            weights: multipliers of the rows (m,).
            bounds: `lbx`, `ubx`, `lbg` and `ubg`.
        """
        room = bounds["ubx"] - bounds["lbx"]
        room = np.where(np.isfinite(room), room, np.abs(x))
        for k in range(MOST):
            step = self._step(x, p, weights, bounds)
            if step is None or not np.abs(step[0] / room).max() < WILD:
                return None
            x, weights = x + step[0], step[2]
            if np.abs(step[0] / room).max() < STILL:
                return x, step[1:], k + 1
        return None

    def _step(
        self, x: np.ndarray, p: np.ndarray, weights: np.ndarray, bounds: Mapping[str, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """The step of one quadratic program, with rows near their bounds alone, and its multipliers; None without."""
        _, gradient = self._derivatives["grad_f"](x, p)
        rows, slopes = self._derivatives["jac_g"](x, p)
        r = rows.full().ravel()
        lower, upper = bounds["lbg"] - r, bounds["ubg"] - r
        hessian = _convex(self._derivatives["hess_lag"](x, p, 1.0, weights).full())
        counted = np.minimum(upper, -lower) < NEARBY
        for _ in range(ROUNDS):
            kept = np.flatnonzero(counted)
            part = slopes[kept.tolist(), :]
            shapes = {"h": ca.Sparsity.dense(*hessian.shape), "a": part.sparsity()}
            solver = ca.conic("step", SOLVER, shapes, SETTINGS)
            limits = {
                "lba": lower[kept],
                "uba": upper[kept],
                "lbx": bounds["lbx"] - x,
                "ubx": bounds["ubx"] - x,
            }
            solution = solver(h=hessian, g=gradient, a=part, **limits)
            d, made = solution["x"].full().ravel(), np.zeros(len(r))
            made[kept] = solution["lam_a"].full().ravel()
            if not (np.isfinite(d).all() and np.isfinite(made).all()):
                return None
            ahead = (slopes @ d).full().ravel()
            beyond = np.maximum(ahead - upper, lower - ahead) > BEYOND
            if not (beyond & ~counted).any():
                return (d, solution["lam_x"].full().ravel(), made) if not beyond.any() else None
            counted |= beyond
        return None


def _convex(upper: np.ndarray) -> np.ndarray:
    """A symmetric matrix of which the upper triangle is given, with eigenvalues of a share of the largest at least."""
    values, vectors = np.linalg.eigh(upper, UPLO="U")
    return np.asarray((vectors * np.maximum(values, LEAST * np.abs(values).max())) @ vectors.T)
