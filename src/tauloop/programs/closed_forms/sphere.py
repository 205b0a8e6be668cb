"""Closed form of as many loop equations as unknown lengths that all are spheres: trilateration.

With psi_i = x^T H x / 2 + g_i^T x + c_i and one constant H for all, the differences psi_i - psi_0 are linear. They give
all unknowns as functions of one, u + w t, and psi_0 becomes one quadratic equation in it. The origin is put at the
centre of the first sphere, which keeps both the code short and the numbers small.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from tauloop.programs.closed_forms.single import QuadraticForm
from tauloop.records import dataclass

#: Second derivatives of two spheres are the same within this share of the largest.
SAME = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class SphereForm:
    """x^T H x / 2 + g_i^T x + c_i = 0 about the centre of the first sphere, where g_0 = 0.

    Attributes:
        centre: of the first sphere (n,).
        H: second derivatives (n, n), numbers.
        A: differences of the slopes, g_i - g_0, of all but the first (n - 1, n).
        b: differences of the constants (n - 1,).
        c: constant of the first, minus half of its squared radius.
    """

    centre: ca.SX
    H: ca.DM
    A: ca.SX
    b: ca.SX
    c: ca.SX

    def along(self, u: ca.SX, w: ca.SX) -> tuple[QuadraticForm, ca.SX]:
        """The first sphere on the line u + w t as a quadratic in t, and the factor alpha of its monic polynomial."""
        Hw = ca.SX(self.H) @ w
        alpha = ca.dot(w, Hw)
        half = ca.dot(u, Hw) / alpha
        rest = (ca.dot(u, ca.SX(self.H) @ u) / 2 + self.c) * 2 / alpha
        return QuadraticForm(half=half, square=half * half - rest), alpha


def sphere_form(psi: ca.SX, x: ca.SX) -> SphereForm | None:
    """The form of equations psi (n,) in as many unknowns x (symbols), or None where they are of another form."""
    slopes = ca.jacobian(psi, x)
    second = [ca.jacobian(slopes[i, :], x) for i in range(psi.numel())]
    if not all(H.is_constant() for H in second):
        return None
    H = ca.DM(second[0])
    size = float(ca.norm_inf(H))
    # an indefinite one would be hyperboloids, on which the quadratic along a line may lose its leading term
    if np.linalg.eigvalsh(H.full()).min() <= SAME * size:
        return None
    if any(float(ca.norm_inf(ca.DM(other) - H)) > SAME * size for other in second[1:]):
        return None
    (at_zero,) = ca.substitute([slopes[0, :].T], [x], [ca.SX.zeros(*x.shape)])
    centre = -at_zero if np.array_equal(H.full(), np.eye(x.numel())) else -ca.solve(ca.SX(H), at_zero)
    centre = ca.densify(centre)
    g, c = ca.substitute([slopes, psi], [x], [centre])
    return SphereForm(centre=centre, H=H, A=ca.densify(g[1:, :]), b=c[1:] - c[0], c=c[0])


def sphere_slope(psi: ca.SX, x: ca.SX, last: int) -> ca.SX:
    """Slope of the first sphere along the line of the others' differences, w_last = 1: its sign tells the root."""
    slopes = ca.jacobian(psi, x)
    n = x.numel()
    others = [j for j in range(n) if j != last]
    A = slopes[1:, :] - ca.repmat(slopes[0, :], n - 1, 1)
    w = ca.SX(n, 1)
    w[others], w[last] = -ca.solve(A[:, others], A[:, last]), 1
    return ca.SX(slopes[0, :] @ w)
