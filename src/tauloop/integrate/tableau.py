"""Butcher tableaus of the explicit integrators, with the polynomials of their dense output.

Source: Dormand and Prince 1980, A family of embedded Runge-Kutta formulae; Hairer, Nørsett and
Wanner 1993, Solving Ordinary Differential Equations I, section II.6, for the dense output.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from scipy.integrate import RK45

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tableau(ReprMixin):
    """An explicit Runge-Kutta method whose last stage is the rate at the end of the step.

    Attributes:
        A: weights of earlier stages (s, s); the last row gives the end of the step.
        c: times of the stages (s,), in steps.
        error: weights of the error estimate (s,); zeros for a method with fixed steps.
        dense: y(x) = y_0 + h sum_k x^(k+1) sum_j dense_jk K_j for x in [0, 1] (s, d).
        order: order of the error estimate plus one; it determines the next step.
    """

    A: np.ndarray
    c: np.ndarray
    error: np.ndarray
    dense: np.ndarray
    order: int

    @property
    def is_adaptive(self) -> bool:
        """Whether it estimates its error."""
        return bool(self.error.any())


@cache
def dormand_prince() -> Tableau:
    """Return the pair of orders 5(4) and its dense output, as in SciPy (Shampine 1986)."""
    A = np.zeros((7, 7))
    A[:6, :5] = RK45.A
    A[6, :6] = RK45.B
    return Tableau(
        A=A, c=np.append(RK45.C, 1.0), error=np.array(RK45.E), dense=np.array(RK45.P), order=5
    )


@cache
def runge_kutta_4() -> Tableau:
    """Return the classical method of order 4, with Hermite's cubic as dense output."""
    return chained((0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6), is_dense=True)


def chained(
    places: tuple[float, ...], weights: tuple[float, ...], *, is_dense: bool = False
) -> Tableau:
    """Return a method of fixed steps whose stages need only the previous stage.

    Without a dense output nothing is known within its steps, and the rate at their ends is left to
    the next ones: for control loops, whose forces change there. With one it is Hermite's cubic
    through both ends.

    Args:
        places: c of the stages after the first, in steps.
        weights: b of all stages.
        is_dense: whether it has a dense output.

    Returns:
        Stages have the rates at y + h c_k (previous rate).
    """
    size = len(weights) + 1
    A = np.zeros((size, size))
    for stage, place in enumerate(places, start=1):
        A[stage, stage - 1] = place
    A[-1, :-1] = weights
    method = Tableau(
        A=A,
        c=np.array([0.0, *places, 1.0]),
        error=np.zeros(size),
        dense=np.zeros((size, 0)),
        order=4,
    )
    return known_within(method) if is_dense else method


def known_within(method: Tableau) -> Tableau:
    """Return a method with its dense output, or with Hermite's cubic through both ends."""
    if method.dense.size:
        return method
    # y0 + h (k_1 x + (3 d - 2 k_1 - k_s) x^2 + (k_1 + k_s - 2 d) x^3) with d = sum of the weights
    # times stages
    dense = np.zeros((len(method.c), 3))
    dense[:-1, 1], dense[:-1, 2] = 3 * method.A[-1, :-1], -2 * method.A[-1, :-1]
    dense[0] += [1.0, -2.0, 1.0]
    dense[-1] += [0.0, -1.0, 1.0]
    return replace(method, dense=dense)
