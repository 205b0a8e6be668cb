"""Matrices of affine forms over batches of boxes: products, and bounds of eigenvalues.

The smallest eigenvalue of a symmetric matrix is a concave function of the matrix. For a matrix
G_0 + sum_k G_k t_k it is therefore smallest at a vertex of the box |t_k| <= 1. Hence a test of
definiteness at the vertices loses nothing to first order.

Source: Rump 2006, Verification of positive definiteness (if the floating-point factorization of a
matrix succeeds after a shift by a small multiple of its trace, the matrix is positive definite);
Rohn 1994, Positive definiteness and stability of interval matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.intervals.forms import INFLATION, ROUNDING, UNDERFLOW, Form, Register

#: Bound of the rounding errors of a factorization or of eigenvalues, relative to the sum of the
#: absolute diagonal entries, for matrices with at most a few tens of rows.
FACTORIZATION_ERROR = 2.0**-43
#: Maximum number of vertices that are tested in a batch.
MAX_VERTICES = 1 << 15
#: Largest row sum of |D| for which products with (I + D)^-1 are bounded by a Neumann series.
MAX_NEUMANN_NORM = 0.9


@dataclass(frozen=True, slots=True)
class Matrix:
    """N matrices (r, s) of affine forms x = c + sum_k g_k t_k + r; see `Form`.

    Attributes:
        rows: coefficients (k + 2, N, r, s): centers c, generators g_1 ... g_k, and bounds e of the
            remainders.
        radius: upper bounds (N, r, s) of |x - c|.
    """

    rows: np.ndarray
    radius: np.ndarray

    @property
    def center(self) -> np.ndarray:
        """Values c (N, r, s) at the centers of the boxes."""
        return np.asarray(self.rows[0])

    @property
    def T(self) -> Matrix:
        """Transposed matrices."""
        return Matrix(self.rows.swapaxes(-1, -2), self.radius.swapaxes(-1, -2))

    def scaled(self, factors: np.ndarray) -> Matrix:
        """Return the matrices with every entry multiplied by a positive factor (r, s)."""
        rows = self.rows * factors
        rows[-1] += ROUNDING * (np.abs(self.rows[0]) + self.radius) * factors
        return matrix(rows)

    def chosen_columns(self, columns: Sequence[int]) -> Matrix:
        """Return the matrices of the columns with these indices."""
        chosen = list(columns)
        return Matrix(self.rows[..., chosen], self.radius[..., chosen])

    def chosen_rows(self, rows: Sequence[int]) -> Matrix:
        """Return the matrices of the rows with these indices."""
        chosen = list(rows)
        return Matrix(self.rows[..., chosen, :], self.radius[..., chosen, :])

    def magnitude_bounds(self) -> np.ndarray:
        """Return upper bounds (N, r, s) of the absolute values of all entries."""
        return (np.abs(self.rows[0]) + self.radius) * INFLATION


def matrix(rows: np.ndarray) -> Matrix:
    """Return matrices from their coefficients (k + 2, N, r, s)."""
    return Matrix(rows, np.abs(rows[1:]).sum(axis=0) * INFLATION)


def matrix_from_entries(
    values: Sequence[Register], r: int, s: int, n_symbols: int, n: int
) -> Matrix:
    """Return n matrices (r, s) from their entries, one column after the other."""
    rows = np.zeros((n_symbols + 2, r * s, n))
    for i, value in enumerate(values):
        if isinstance(value, Form):
            rows[:, i] = value.rows
        else:
            rows[0, i] = value
    by_column = rows.reshape(n_symbols + 2, s, r, n)
    return matrix(np.ascontiguousarray(by_column.transpose(0, 3, 2, 1)))


def numeric_product(left: np.ndarray, right: Matrix) -> Matrix:
    """Return the products of matrices of numbers (N, r, n) with matrices of forms."""
    rows = left @ right.rows
    L = np.abs(left)
    rows[-1] = (L @ (right.rows[-1] + _rounding(right, left.shape[-1]))) * INFLATION
    return matrix(rows)


def product(left: Matrix, right: Matrix) -> Matrix:
    """Return the products of matrices of forms."""
    a, b = left.rows, right.rows
    rows = a[0] @ b
    rows[1:-1] += a[1:-1] @ b[0]
    A, B = np.abs(a[0]), np.abs(b[0])
    rounding = 2.0 * left.rows.shape[-1] * ROUNDING
    remainder = A @ (b[-1] + rounding * (B + right.radius)) + a[-1] @ B
    remainder = remainder + left.radius @ (right.radius + rounding * B)
    rows[-1] = remainder * INFLATION + UNDERFLOW
    return matrix(rows)


def added(left: Matrix, right: Matrix, sign: float = 1.0) -> Matrix:
    """Return left + sign · right for matrices of forms and a sign 1 or -1."""
    rows = left.rows + sign * right.rows
    rows[-1] = left.rows[-1] + right.rows[-1]
    rows[-1] += 2.0 * ROUNDING * (np.abs(rows[0]) + left.radius + right.radius)
    return matrix(rows)


def side_by_side(left: Matrix, right: Matrix) -> Matrix:
    """Return matrices with the columns of both."""
    return Matrix(
        np.concatenate([left.rows, right.rows], axis=-1),
        np.concatenate([left.radius, right.radius], axis=-1),
    )


def shifted(x: Matrix, shift: np.ndarray) -> Matrix:
    """Return matrices of forms plus numbers (r, s) or (N, r, s)."""
    rows = x.rows.copy()
    rows[0] += shift
    rows[-1] += ROUNDING * (np.abs(rows[0]) + np.abs(shift) + x.radius)
    return matrix(rows)


def _rounding(x: Matrix, terms: int) -> np.ndarray:
    """Return bounds of the rounding errors of sums of products, per entry of a matrix of forms."""
    return 2.0 * terms * ROUNDING * (np.abs(x.rows[0]) + x.radius) + UNDERFLOW


def inverse_product(near_identity: Matrix, right: Matrix) -> tuple[Matrix, np.ndarray]:
    """Return (I + D)^-1 Q for matrices I + D near the identity.

    (I + D)^-1 Q = Q - D Q + R with |R| <= |D|^2 (I - |D|)^-1 |Q| entry by entry. The Neumann series
    converges if the largest row sum of |D| is less than 1.

    Returns:
        The products, and whether their bounds are valid (N,): the largest row sum of |D| is less
        than 0.9. Other products are meaningless.
    """
    m = near_identity.rows.shape[-1]
    rows = near_identity.rows.copy()
    rows[0] -= np.eye(m)
    rows[-1] += ROUNDING
    D = matrix(rows)
    abs_D = D.magnitude_bounds()
    norm = abs_D.sum(axis=-1).max(axis=-1)
    abs_Q = right.magnitude_bounds()
    # If all row sums of |D| are at most d, (I - |D|)^-1 x <= x + d / (1 - d) max(x).
    second_order = abs_D @ (abs_D @ abs_Q)
    tail = norm / np.maximum(1.0 - norm, 1e-3)
    remainder = second_order + tail[:, None, None] * second_order.max(axis=-2, keepdims=True)
    result = added(right, product(D, right), -1.0)
    rows = result.rows.copy()
    rows[-1] += remainder * INFLATION
    return matrix(rows), norm < MAX_NEUMANN_NORM


def remainder_norm(G: Matrix) -> np.ndarray:
    """Return upper bounds (N,) of the spectral norm of the remainders of symmetric matrices."""
    return G.rows[-1].sum(axis=-1).max(axis=-1) * INFLATION


def eigenvalue_bounds(G: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds (N,) of all eigenvalues of symmetric matrices.

    They are not sharp to first order; see `is_definite` for a sharper test.
    """
    valid = np.isfinite(G.rows).all(axis=(0, 2, 3))
    center = np.where(valid[:, None, None], G.rows[0], 0.0)
    values = np.linalg.eigvalsh(center)
    linear = np.sqrt((G.rows[1:-1] ** 2).sum(axis=(2, 3))).sum(axis=0)
    trace = np.abs(center).trace(axis1=-2, axis2=-1)
    radius = (linear + remainder_norm(G) + FACTORIZATION_ERROR * trace) * INFLATION
    lower = np.where(valid, values[:, 0] - radius, -np.inf)
    return lower, np.where(valid, values[:, -1] + radius, np.inf)


def is_definite(G: Matrix, shift: np.ndarray | float) -> np.ndarray:
    """Return whether G - shift I is proved to be positive definite in each box (N,).

    The factorization L D L^T is tested at all vertices of the linear part.

    Args:
        G: symmetric matrices.
        shift: a number, or an array (N,) with a number for each box.
    """
    n_symbols = G.rows.shape[0] - 2
    n = G.rows.shape[1]
    m = G.rows.shape[2]
    proved = np.zeros(n, dtype=bool)
    step = max(1, MAX_VERTICES >> n_symbols)
    for first in range(0, n, step):
        batch = slice(first, first + step)
        rows = G.rows[:, batch]
        total_shift = np.broadcast_to(np.asarray(shift, dtype=float), (n,))[batch]
        total_shift = total_shift + rows[-1].sum(axis=-1).max(axis=-1) * INFLATION
        trace = np.abs(rows[:-1]).sum(axis=0).trace(axis1=-2, axis2=-1)
        total_shift = total_shift + FACTORIZATION_ERROR * (trace + np.abs(total_shift))
        center = rows[0] - total_shift[:, None, None] * np.eye(m)
        vertices = np.ascontiguousarray(center.transpose(1, 2, 0))[:, :, None, :]
        for k in range(n_symbols):
            generator = rows[1 + k].transpose(1, 2, 0)[:, :, None, :]
            vertices = np.concatenate([vertices + generator, vertices - generator], axis=2)
        proved[batch] = _has_positive_pivots(vertices).all(axis=0)
    return proved


def _has_positive_pivots(A: np.ndarray) -> np.ndarray:
    """Return whether all pivots of symmetric A (m, m, ...) are positive; A is overwritten."""
    m = len(A)
    positive = np.ones(A.shape[2:], dtype=bool)
    for j in range(m):
        positive &= A[j, j] > 0.0
        factors = A[j + 1 :, j] / A[j, j]
        A[j + 1 :, j + 1 :] -= factors[:, None] * A[j, j + 1 :][None, :]
    return positive
