"""Velocities of all coordinates per independent velocity and per parameter, as first-order forms."""

from __future__ import annotations

import numpy as np

from tauloop.design.intervals.matrices import Matrix, inverse_product, matrix, multiplied


def inverses(matrices: np.ndarray) -> np.ndarray:
    """Return inverses (N, n, n); NaN where a matrix is singular or not finite."""
    good = np.isfinite(matrices).all(axis=(1, 2))
    safe = np.where(good[:, None, None], matrices, np.eye(matrices.shape[-1]))
    try:
        result = np.linalg.inv(safe)
    except np.linalg.LinAlgError:
        result = np.array([_single_inverse(A) for A in safe])
    return np.where(good[:, None, None], result, np.nan)


def _single_inverse(A: np.ndarray) -> np.ndarray:
    try:
        return np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return np.full(A.shape, np.nan)


def dependent_velocities(K: Matrix, m: int) -> tuple[Matrix, np.ndarray]:
    """Return what the last n velocities are per unit of the other columns of K, in closed loops.

    K = [K_1 K_2] with n columns K_2 gives -K_2^-1 K_1.

    Args:
        K: rates of the loops (N, n, m + n), dimensionless.
        m: number of columns of K_1: independent velocities, then parameters.

    Returns:
        The velocities (N, n, m), and where they are valid (N,).
    """
    total = K.rows.shape[-1]
    if total == m:
        none = np.zeros((*K.rows.shape[:2], 0, m))
        return matrix(none), np.ones(K.rows.shape[1], dtype=bool)
    others, dependent = K.part(range(m)), K.part(range(m, total))
    C = inverses(dependent.middle)
    S, valid = inverse_product(multiplied(C, dependent), multiplied(-C, others))
    return S, valid & np.isfinite(C).all(axis=(1, 2))
