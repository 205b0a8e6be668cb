"""Small dense quadratic programs, solved by the dual active-set solver DAQP through CasADi."""

from __future__ import annotations

from typing import final

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError

#: Largest violation of an optimality condition, relative to the largest term in it.
OPTIMALITY_TOLERANCE = 1e-6


@final
class QuadraticProgram:
    """min x^T H x / 2 + g^T x subject to lower <= x <= upper and least <= R x <= most.

    Source: Arnström, Bemporad and Axehill, A Dual Active-Set Solver for Embedded Quadratic
    Programming Using Recursive LDLᵀ Updates, IEEE Transactions on Automatic Control 67, 2022.
    """

    def __init__(self, size: int, rows: int) -> None:
        """Build the solver for `size` unknowns and a matrix R with `rows` rows.

        Raises:
            InputError: the installed CasADi has no DAQP.
        """
        if not ca.has_conic("daqp"):
            raise InputError.of(
                "casadi",
                "was built without DAQP",
                "install CasADi's wheel from PyPI, which includes DAQP",
            )
        shapes = {"h": ca.Sparsity.dense(size, size), "a": ca.Sparsity.dense(rows, size)}
        self._solver = ca.conic(
            "tracking", "daqp", shapes, {"error_on_fail": False, "print_time": False}
        )
        self._buffer, self._run = self._solver.buffer()
        lengths = {
            "h": size * size,
            "g": size,
            "lbx": size,
            "ubx": size,
            "a": rows * size,
            "lba": rows,
            "uba": rows,
        }
        # the solver reads and writes these arrays directly, column by column
        self._inputs = {name: np.zeros(length) for name, length in lengths.items()}
        self._outputs = {"x": np.zeros(size), "lam_x": np.zeros(size), "lam_a": np.zeros(rows)}
        for name, array in self._inputs.items():
            self._buffer.set_arg(self._solver.index_in(name), memoryview(array))  # type: ignore[call-arg]
        for name, array in self._outputs.items():
            self._buffer.set_res(self._solver.index_out(name), memoryview(array))  # type: ignore[call-arg]

    def __call__(
        self, H: np.ndarray, g: np.ndarray, bounds: tuple[np.ndarray, np.ndarray], *rows: np.ndarray
    ) -> np.ndarray | None:
        """Return the solution (n,); None if there is no solution or the result is not optimal.

        Args:
            H, g: matrix (n, n), symmetric, and vector (n,) of the cost.
            bounds: lower and upper bounds of x (n,).
            rows: R (r, n), and lower and upper bounds of R x (r,); omit them if R has no rows.
        """
        R, minimum, maximum = rows or (np.zeros((0, len(g))), np.zeros(0), np.zeros(0))
        for name, array in zip(self._inputs, (H, g, *bounds, R.T, minimum, maximum), strict=True):
            self._inputs[name][:] = array.ravel()
        try:
            self._run()
        except RuntimeError:
            return None
        x, at_bounds, at_rows = self._outputs.values()
        if not is_optimal(x, at_bounds, at_rows, H, g, bounds, R, (minimum, maximum)):
            return None
        return x.copy()


def is_optimal(
    x: np.ndarray,
    at_bounds: np.ndarray,
    at_rows: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    R: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
) -> bool:
    """Return whether x and its multipliers satisfy the Karush-Kuhn-Tucker conditions.

    Args:
        x: the solution (n,).
        at_bounds, at_rows: multipliers of the bounds (n,) and of the rows of R (r,).
        H, g: matrix and vector of the cost.
        bounds: lower and upper bounds of x.
        R: matrix of the constraints.
        limits: lower and upper bounds of R x.
    """
    value = np.concatenate([x, R @ x])
    multiplier = np.concatenate([at_bounds, at_rows])
    lower = np.concatenate([bounds[0], limits[0]])
    upper = np.concatenate([bounds[1], limits[1]])
    gradient = H @ x + g + at_bounds + at_rows @ R
    # Tolerances are relative to the magnitudes of the variables and of the gradient. The constants
    # keep them positive if both are zero.
    scale = 1.0 + np.abs(value).max(initial=0.0)
    gradient_scale = np.abs(g).max(initial=0.0) + np.abs(multiplier).max(initial=0.0)
    # a multiplier and the distance from its bound must not both differ from zero
    complementarity = np.maximum(
        np.minimum(upper - value, np.maximum(multiplier, 0)),
        np.minimum(value - lower, np.maximum(-multiplier, 0)),
    )
    violation = np.maximum(value - upper, lower - value).max(initial=0.0)
    return bool(
        np.abs(gradient).max(initial=0.0) <= OPTIMALITY_TOLERANCE * (1e-9 + gradient_scale)
        and violation <= OPTIMALITY_TOLERANCE * scale
        and complementarity.max(initial=0.0) <= OPTIMALITY_TOLERANCE * (scale + gradient_scale)
    )
