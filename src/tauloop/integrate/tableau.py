"""Butcher tableaus of the explicit integrators, with the polynomials of their dense output.

Source: Dormand and Prince 1980, A family of embedded Runge-Kutta formulae; Hairer, Nørsett and
Wanner 1993, Solving Ordinary Differential Equations I, section II.6, for the dense output.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tableau(ReprMixin):
    """An explicit Runge-Kutta method with s stages and the FSAL property (first same as last).

    The last stage is the derivative at the end of the step, which is the first stage of the next
    step.

    Attributes:
        A: coefficients a_ij (s, s); the last row contains the weights b_j of the solution.
        c: nodes c_i (s,): times of the stages, in units of the step.
        error: weights of the error estimate (s,); zeros for a method with fixed steps.
        dense: coefficients (s, d) of the dense output y(x) = y_0 + h sum_k x^(k+1) sum_j dense_jk
            K_j for x in [0, 1], where K_j is the derivative of stage j; (s, 0) without one.
        order: order of the error estimate plus one, with which adaptive steps are scaled. Methods
            with fixed steps do not use it.
    """

    A: np.ndarray
    c: np.ndarray
    error: np.ndarray
    dense: np.ndarray
    order: int

    @property
    def is_adaptive(self) -> bool:
        """Whether the method estimates its error."""
        return bool(self.error.any())


@cache
def dormand_prince() -> Tableau:
    """Return the pair of orders 5(4) with dense output (Dormand, Prince 1980; Shampine 1986)."""
    rows = (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    )
    A = np.zeros((7, 7))
    for i, row in enumerate(rows):
        A[i, : len(row)] = row
    c = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
    error = np.array([-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40])
    dense = np.array(
        [
            [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
            [0, 0, 0, 0],
            [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
            [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
            [
                0,
                127303824393 / 49829197408,
                -318862633887 / 49829197408,
                701980252875 / 199316789632,
            ],
            [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
            [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
        ]
    )
    return Tableau(A=A, c=c, error=error, dense=dense, order=5)


@cache
def runge_kutta_4() -> Tableau:
    """Return the classical method of order 4, with cubic Hermite interpolation as dense output."""
    return chained((0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6), is_dense=True)


def chained(
    places: tuple[float, ...], weights: tuple[float, ...], *, is_dense: bool = False
) -> Tableau:
    """Return a method with fixed steps, each of whose stages depends only on the previous stage.

    Stage k is the derivative K_k at y + h c_k K_(k-1).

    With a dense output, the solution within a step is the cubic Hermite interpolant. Without it,
    values within a step are not available, and the derivative at the end of a step is not computed.
    Control loops use this form, because their forces change between steps.

    Args:
        places: nodes c of the stages after the first, in units of the step.
        weights: weights b of all stages.
        is_dense: whether the method has a dense output.
    """
    size = len(weights) + 1
    A = np.zeros((size, size))
    for stage, node in enumerate(places, start=1):
        A[stage, stage - 1] = node
    A[-1, :-1] = weights
    method = Tableau(
        A=A,
        c=np.array([0.0, *places, 1.0]),
        error=np.zeros(size),
        dense=np.zeros((size, 0)),
        order=4,  # has no effect, because the steps are fixed
    )
    return with_dense_output(method) if is_dense else method


def with_dense_output(method: Tableau) -> Tableau:
    """Return the method with cubic Hermite interpolation, unless it already has a dense output."""
    if method.dense.size:
        return method
    # y0 + h (k_1 x + (3 d - 2 k_1 - k_s) x^2 + (k_1 + k_s - 2 d) x^3) with d = sum of the weights
    # times stages
    dense = np.zeros((len(method.c), 3))
    dense[:-1, 1], dense[:-1, 2] = 3 * method.A[-1, :-1], -2 * method.A[-1, :-1]
    dense[0] += [1.0, -2.0, 1.0]
    dense[-1] += [0.0, -1.0, 1.0]
    return replace(method, dense=dense)
