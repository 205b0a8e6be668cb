"""An explicit integrator for stiff friction, which halves the time of global searches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tauloop.integrate import Integrator, Method, Tableau


@dataclass(frozen=True, slots=True, kw_only=True)
class Chebyshev(Integrator):
    """Runge-Kutta-Chebyshev method of order 2 (Sommeijer, Shampine and Verwer 1998).

    It is stable along the negative real axis up to 0.65 (s^2 - 1) for the product of step and decay
    rate. A cart of 1 kg with a viscous friction of 1000 N s/m loses its speed within 1 ms. The
    Dormand-Prince method, stable up to 3.3, therefore takes more than 3000 steps in ten seconds at
    any tolerance.

    Attributes:
        rtol, atol: tolerances of a step's error.
        stages: number of stages s.
        max_steps: maximum number of steps.
    """

    rtol: float
    atol: float
    stages: int
    max_steps: int

    @property
    def method(self) -> Method:
        """Return the tableau, with cubic Hermite interpolation between steps."""
        return Method.adaptive(chebyshev(self.stages), self.rtol, self.atol)


@cache
def chebyshev(stages: int) -> Tableau:
    """Return the coefficients by the three-term recursion of T_s, damped by 2/13."""
    s = stages
    w = 1.0 + 2.0 / (13.0 * s**2)
    T = [np.polynomial.Chebyshev.basis(j) for j in range(s + 1)]
    value = np.array([polynomial(w) for polynomial in T])
    slope = np.array([polynomial.deriv(1)(w) for polynomial in T])
    bend = np.array([polynomial.deriv(2)(w) for polynomial in T])
    w1 = slope[s] / bend[s]
    b = np.ones(s + 1)
    b[2:] = bend[2:] / slope[2:] ** 2
    b[:2] = b[2]
    A = np.zeros((s + 1, s + 1))
    A[1, 0] = b[1] * w1
    for j in range(2, s + 1):
        share = b[j] / b[j - 1]
        A[j] = 2 * share * w * A[j - 1] - b[j] / b[j - 2] * A[j - 2]
        A[j, j - 1] += 2 * share * w1
        A[j, 0] -= (1.0 - b[j - 1] * value[j - 1]) * 2 * share * w1
    weights = A[s]
    error = -0.8 * weights
    error[[0, s]] += 0.4
    # y0 + h (k_1 x + (3 d - 2 k_1 - k_s) x^2 + (k_1 + k_s - 2 d) x^3) with d = sum of the weights
    # times stages
    dense = np.stack([np.zeros(s + 1), 3 * weights, -2 * weights], axis=1)
    dense[0] += [1.0, -2.0, 1.0]
    dense[s] += [0.0, -1.0, 1.0]
    return Tableau(A=A, c=A.sum(axis=1), error=error, dense=dense, order=3)
