"""Least squares for batches of small matrices that may be rank-deficient."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.mechanism.poses import Array

#: Singular values below this fraction of the largest count as zero. The fraction is far above
#: rounding errors and far below the singular values of usual machines.
LEAST_SQUARES_RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeastSquares:
    """Minimum-norm least-squares solver of A x = b.

    Attributes:
        matrix: A (N, m, n).
        inverse: pseudoinverse (N, n, m) of A.
        null: projector (N, n, n) on the null space of A.
    """

    matrix: Array
    inverse: Array
    null: Array

    @staticmethod
    def of(matrix: Array) -> LeastSquares:
        """Return the solver for a batch of matrices (N, m, n), from their singular values."""
        samples, rows, columns = matrix.shape
        if not rows or not columns:
            null = np.broadcast_to(np.eye(columns), (samples, columns, columns))
            return LeastSquares(
                matrix=matrix, inverse=np.zeros((samples, columns, rows)), null=null
            )
        U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
        is_nonzero = s > LEAST_SQUARES_RANK_TOLERANCE * s[:, :1]
        V = np.swapaxes(Vt, -1, -2) * is_nonzero[:, None, :]
        reciprocal = np.divide(1.0, s, where=is_nonzero, out=np.zeros_like(s))
        inverse = (V * reciprocal[:, None, :]) @ np.swapaxes(U, -1, -2)
        return LeastSquares(
            matrix=matrix, inverse=inverse, null=np.eye(columns) - V @ np.swapaxes(V, -1, -2)
        )

    def solve(self, right: Array) -> Array:
        """Return x (N, n) for right-hand sides (N, m), with one step of iterative refinement."""
        x = times(self.inverse, right)
        return x + times(self.inverse, right - times(self.matrix, x))

    def max_nullity(self) -> int:
        """Return the largest dimension of the null space over the samples."""
        return int(np.max(np.rint(np.trace(self.null, axis1=1, axis2=2)), initial=0.0))

    def null_norms(self) -> Array:
        """Return the norm (n,) of each unknown's projection on the null space.

        The norm is 0 for an unknown that A x determines, and 1 for a free unknown. It is the
        largest over the samples.
        """
        return np.max(np.linalg.norm(self.null, axis=-1), axis=0)


def times(matrix: Array, vector: Array) -> Array:
    """Return A x for matrices A (N, m, n) and vectors x (N, n)."""
    return np.einsum("nij,nj->ni", matrix, vector)
