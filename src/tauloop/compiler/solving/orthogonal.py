"""Orthogonal factors as straight-line code: Householder reflections of a tall matrix."""

from __future__ import annotations

import casadi as ca

from tauloop.common.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """R = Q [T; 0] for a matrix R (n, m) of rank m: factors Q (n, n) and T (m, m).

    Attributes:
        triangle: upper triangular matrix T.
        axes: vectors v (n,) of the reflections I - v b v^T, with the factors b.
    """

    triangle: ca.SX
    axes: tuple[tuple[ca.SX, ca.SX], ...]

    @property
    def pivots(self) -> ca.SX:
        """Diagonal of T (m,)."""
        return ca.diag(self.triangle)

    def times_Q(self, x: ca.SX) -> ca.SX:
        """Return Q x for x (n, k)."""
        for v, factor in reversed(self.axes):
            x = x - v @ (factor * (v.T @ x))
        return x

    def least_norm(self, t: ca.SX) -> ca.SX:
        """Return the shortest x (n,) with R^T x = t (m,): Q [T^-T t; 0]."""
        m = self.triangle.size1()
        z = ca.SX(m, 1)
        for i in range(m):
            z[i] = (t[i] - ca.dot(self.triangle[:i, i], z[:i])) / self.triangle[i, i]
        return self.times_Q(ca.vertcat(z, ca.SX(self.rows - m, 1)))

    def complement(self) -> ca.SX:
        """Return orthonormal directions (n, n - m) with R^T x = 0."""
        n, m = self.rows, self.triangle.size1()
        return self.times_Q(ca.SX(ca.vertcat(ca.DM(m, n - m), ca.DM.eye(n - m))))

    @property
    def rows(self) -> int:
        """Number of rows of R."""
        return int(self.axes[0][0].numel())


def factors(R: ca.SX) -> Factors:
    """Return orthogonal factors of R (n, m), n >= m > 0; a pivot is zero if the rank is below m."""
    n, m = R.shape
    A = ca.SX(R)
    axes = []
    for j in range(m):
        x = ca.densify(A[j:, j])
        length = ca.sqrt(ca.dot(x, x))
        pivot = -length * (2 * (x[0] >= 0) - 1)  # the sign is opposite to x to avoid cancellation
        v = ca.vertcat(ca.SX(j, 1), x[0] - pivot, x[1:])
        factor = 1 / (length * (length + ca.fabs(x[0])))
        for k in range(j + 1, m):
            A[:, k] = A[:, k] - v * (factor * ca.dot(v, A[:, k]))
        A[:, j] = ca.vertcat(A[:j, j], pivot, ca.SX(n - j - 1, 1))
        axes.append((v, factor))
    return Factors(triangle=ca.triu(A[:m, :]), axes=tuple(axes))
