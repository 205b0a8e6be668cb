"""Affine forms of the velocities of all coordinates, per independent velocity and parameter rate."""

from __future__ import annotations

import numpy as np

from tauloop.design.intervals.matrices import Matrix, inverse_product, matrix, numeric_product


def inverses(matrices: np.ndarray) -> np.ndarray:
    """Return inverses (N, n, n); NaN where a matrix is singular or not finite."""
    is_finite = np.isfinite(matrices).all(axis=(1, 2))
    finite = np.where(is_finite[:, None, None], matrices, np.eye(matrices.shape[-1]))
    try:
        result = np.linalg.inv(finite)
    except np.linalg.LinAlgError:
        result = np.array([_single_inverse(A) for A in finite])
    return np.where(is_finite[:, None, None], result, np.nan)


def _single_inverse(A: np.ndarray) -> np.ndarray:
    """Return the inverse of a matrix; NaN if it is singular."""
    try:
        return np.linalg.inv(A)
    except np.linalg.LinAlgError:
        return np.full(A.shape, np.nan)


def dependent_velocities(K: Matrix, m: int) -> tuple[Matrix, np.ndarray]:
    """Return the dependent velocities per unit of the independent velocities and parameter rates.

    The constraint Jacobian K = [K_1 K_2] with n columns K_2 gives -K_2^-1 K_1.

    Args:
        K: Jacobian of the loop equations (N, n, m + n), dimensionless.
        m: number of columns of K_1: independent velocities, then parameters.

    Returns:
        The matrices (N, n, m), and whether they are valid (N,).
    """
    total = K.rows.shape[-1]
    if total == m:
        none = np.zeros((*K.rows.shape[:2], 0, m))
        return matrix(none), np.ones(K.rows.shape[1], dtype=bool)
    others = K.chosen_columns(range(m))
    dependent = K.chosen_columns(range(m, total))
    C = inverses(dependent.center)
    S, valid = inverse_product(numeric_product(C, dependent), numeric_product(-C, others))
    return S, valid & np.isfinite(C).all(axis=(1, 2))
