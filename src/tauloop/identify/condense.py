"""Condense a long regressor into small triangles that hold all that least squares can ask of it."""

from __future__ import annotations

import numpy as np

from tauloop.identify.data import RegressionData

#: Samples taken at a time: many enough for LAPACK to be fast, few enough to stay in the processor's cache.
SAMPLES_AT_ONCE = 1024


def condense(data: RegressionData) -> np.ndarray:
    """One triangle R_k for every measured output k, with R_k^T R_k = [Y_k f_k]^T [Y_k f_k].

    Householder QR of the samples in chunks, each stacked below the triangle so far (Golub and Van Loan, Matrix
    Computations, 4th ed., section 5.2: QR of a row-partitioned matrix). Nothing is squared, so the singular values and
    the least-squares solutions, with any weights of the outputs, are those of the whole regressor. Ties are applied
    chunk by chunk: Y becomes Y T, and f becomes f - Y offset.

    Returns:
        (n_measured, n + 1, n + 1) for n unknowns; the force is the last column.
    """
    size = len(data.unknowns) + 1
    step = max(SAMPLES_AT_ONCE, 8 * size)
    kept = data.kept
    triangles = np.zeros((len(kept), 0, size))
    for start in range(0, len(data), step):
        chunk = slice(start, start + step)
        regressor, forces = data.regressor[chunk], data.forces[chunk]
        if data.ties is not None:
            rows = regressor.reshape(-1, regressor.shape[-1])  # one product of matrices, not one per sample
            forces = forces - (rows @ data.ties.expand(np.zeros(size - 1))).reshape(forces.shape)
            regressor = (rows @ data.ties.matrix).reshape(*forces.shape, size - 1)
        block = np.concatenate([regressor, forces[:, :, None]], axis=2)[:, kept].transpose(1, 0, 2)
        triangles = np.asarray(np.linalg.qr(np.concatenate([triangles, block], axis=1), mode="r"))
    return np.pad(triangles, ((0, 0), (0, size - triangles.shape[1]), (0, 0)))
