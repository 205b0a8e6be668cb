"""Polynomial initial guesses for Newton's method, so that it needs few steps at any position.

The polynomials are fitted to states of the machine on the branch of its reference pose.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import final

import casadi as ca
import numpy as np

from tauloop.common.records import dataclass

#: Degrees of the polynomials for one variable, two variables and so on; more variables use the last
#: degree. Initial guesses for an ankle are accurate to 1e-3 rad, and three Newton steps converge to
#: round-off.
DEGREES = (9, 5, 4, 3, 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StartPolynomials:
    """Chebyshev polynomials of coordinates over given positions.

    The variables are x = (L p - center) / half_width, limited to [-1, 1].

    Attributes:
        reference: coordinates (n_q,) of the reference pose, the start values of coordinates without
            a polynomial.
        columns: indices of the coordinates with a polynomial.
        linear: L (n, n).
        center, half_width: middle and half width of the range of L p (n,).
        orders: orders of the Chebyshev polynomials in each product (k, n).
        coefficients: coefficients (k, number of coordinates).
    """

    reference: np.ndarray
    columns: tuple[int, ...]
    linear: np.ndarray
    center: np.ndarray
    half_width: np.ndarray
    orders: np.ndarray
    coefficients: np.ndarray

    def __call__(self, position: ca.SX, known: Mapping[int, ca.SX]) -> ca.SX:
        """Return start values (n_q,) from the given position and the coordinates known from it."""
        start = [ca.SX(float(value)) for value in self.reference]
        for i, value in known.items():
            start[i] = value
        if not self.columns:
            return ca.SX(ca.vertcat(*start))
        x = (ca.DM(self.linear) @ position - self.center) / self.half_width
        factors = [
            _chebyshev(_limited(x[i]), int(self.orders[:, i].max()))
            for i in range(len(self.half_width))
        ]
        for column, coefficients in zip(self.columns, self.coefficients.T, strict=True):
            start[column] = self._sum(factors, coefficients)
        return ca.SX(ca.vertcat(*start))

    def _sum(self, factors: list[list[ca.SX]], coefficients: np.ndarray) -> ca.SX:
        """Return the sum of products of polynomials, grouped by the order of the first variable."""
        total = ca.SX(0)
        for first, polynomial in enumerate(factors[0]):
            inner = ca.SX(0)
            for orders, coefficient in zip(self.orders, coefficients, strict=True):
                if orders[0] != first:
                    continue
                term = ca.SX(float(coefficient))
                for variable, order in enumerate(orders[1:], start=1):
                    term = term * factors[variable][order]
                inner = inner + term
            total = total + inner * polynomial
        return total


def constant_start(reference: np.ndarray, variables: int) -> StartPolynomials:
    """Return start values without polynomials: the coordinates (n_q,) of the reference pose."""
    return StartPolynomials(
        reference=reference,
        columns=(),
        linear=np.eye(variables),
        center=np.zeros(variables),
        half_width=np.ones(variables),
        orders=np.zeros((0, variables), dtype=int),
        coefficients=np.zeros((0, 0)),
    )


def start_polynomials(
    position: np.ndarray,
    q: np.ndarray,
    columns: tuple[int, ...],
    linear: np.ndarray,
    reference: np.ndarray,
) -> StartPolynomials:
    """Return polynomials fitted to states.

    Args:
        position: given positions (N, n) of the states.
        q: coordinates (N, n_q).
        columns: indices of the coordinates to fit.
        linear: matrix L (n, n) that maps positions to variables in which the coordinates are smooth.
        reference: coordinates (n_q,) of the reference pose.
    """
    n = position.shape[1]
    variables = position @ linear.T
    lower, upper = variables.min(axis=0), variables.max(axis=0)
    center = 0.5 * (lower + upper)
    half_width = np.maximum(0.5 * (upper - lower), 1e-9)
    degree = DEGREES[min(n, len(DEGREES)) - 1]
    orders = [row for row in product(range(degree + 1), repeat=n) if sum(row) <= degree]
    x = (variables - center) / half_width
    powers = np.polynomial.chebyshev.chebvander(x, degree)  # (N, n, degree + 1)
    axes = np.arange(n)
    basis = np.stack([np.prod(powers[:, axes, row], axis=1) for row in orders], axis=1)
    coefficients = np.linalg.lstsq(basis, q[:, list(columns)], rcond=1e-10)[0]
    return StartPolynomials(
        reference=reference,
        columns=columns,
        linear=linear,
        center=center,
        half_width=half_width,
        orders=np.array(orders),
        coefficients=coefficients,
    )


def _limited(x: ca.SX) -> ca.SX:
    """Return x limited to [-1, 1]; compilers do not vectorize `fmin` and `fmax`."""
    return 0.5 * (ca.fabs(x + 1) - ca.fabs(x - 1))


def _chebyshev(x: ca.SX, degree: int) -> list[ca.SX]:
    """Return the Chebyshev polynomials of orders 0 to `degree` at x."""
    values = [ca.SX(1), x]
    while len(values) <= degree:
        values.append(2 * x * values[-1] - values[-2])
    return values[: degree + 1]
