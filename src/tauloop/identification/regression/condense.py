"""Condense a long regressor into small triangles that hold all that least squares can ask of it.

Source: Golub and Van Loan 2013, Matrix Computations, section 5.3: least squares by triangularisation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg.lapack import dtpqrt

if TYPE_CHECKING:
    from tauloop.identification.regression.data import RegressionData

#: Samples taken at a time: many enough for LAPACK to be fast, few enough to stay in the processor's cache.
SAMPLES_AT_ONCE = 1024
#: Columns that LAPACK eliminates together.
COLUMNS_AT_ONCE = 16


def condense(data: RegressionData) -> np.ndarray:
    """One triangle R_k for every measured output k, with R_k^T R_k = [Y_k f_k]^T [Y_k f_k].

    Householder QR of the samples in chunks, each below the triangle so far (Golub and Van Loan, Matrix Computations,
    4th ed., section 5.2: QR of a row-partitioned matrix; LAPACK's tpqrt). Nothing is squared, so the singular values
    and the least-squares solutions, with any weights of the outputs, are those of the whole regressor. Ties are applied
    chunk by chunk: Y becomes Y T, and f becomes f - Y offset.

    Returns:
        (n_measured, n + 1, n + 1) for n unknowns; the force is the last column.
    """
    size = len(data.unknowns) + 1
    triangles = [np.zeros((size, size), order="F") for _ in data.kept]
    for start in range(0, len(data), SAMPLES_AT_ONCE):
        rows = unknown_rows(data, slice(start, start + SAMPLES_AT_ONCE))
        for k, columns in enumerate(rows):
            width = min(COLUMNS_AT_ONCE, size)
            triangles[k], *_ = dtpqrt(0, width, triangles[k], columns.T, overwrite_a=True, overwrite_b=True)
    return np.stack(triangles)


def unknown_rows(data: RegressionData, samples: slice) -> np.ndarray:
    """[Y_k f_k] of every measured output k and some samples, each column by itself: (n_measured, n + 1, samples)."""
    regressor, forces = data.regressor[samples], data.forces[samples]
    kept = data.kept
    rows = np.empty((len(kept), len(data.unknowns) + 1, len(forces)))
    rows[:, -1] = forces[:, kept].T
    if data.ties is None:
        rows[:, :-1] = regressor[:, kept].transpose(1, 2, 0)
        return rows
    # one product for all outputs; that most of the matrix is zero costs less than to pick columns out of rows
    both = np.column_stack([data.ties.matrix, data.ties.expand(np.zeros(len(data.unknowns)))])
    chosen = regressor if len(kept) == regressor.shape[1] else regressor[:, kept]
    tied = chosen.reshape(-1, len(both)) @ both
    tied = tied.reshape(len(forces), len(kept), -1)
    rows[:, :-1] = tied[:, :, :-1].transpose(1, 2, 0)
    rows[:, -1] -= tied[:, :, -1].T
    return rows
