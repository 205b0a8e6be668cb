"""Durations of the legs of a cycle if motor heating or conveyors determine the time.

The forces of a leg of duration T are quadratic in the rate r = 1/T (docs/motion.md), so the mean of
their squares is a polynomial P(r) of degree 4. The mean squares of a cycle of legs and stops are

    (H + sum_k T_k P_k(1/T_k)) / (D + sum_k T_k),

where D is the time of all stops and H the integral of the squares over it. The shortest cycle whose
mean squares are within the motors' ratings, and the coolest cycle of a given duration, are programs
in the few unknowns T_k with exact derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize

from tauloop.common.errors import PoseError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Degree of the polynomials.
DEGREE = 4
#: Largest factor by which legs are slowed, and relative tolerance of a bound.
MAX_SLOWDOWN, BOUND_TOLERANCE = 1e3, 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleHeat(ReprMixin):
    """Mean squared motor forces, relative to the squares of the rated forces.

    Attributes:
        names: names of the motors (n_u,).
        least: shortest durations of the legs (K,), s.
        legs: coefficients (DEGREE + 1, K, n_u) of polynomials in least / T for the legs' mean
            squares.
        held: integral of the squares over all stops (n_u,), s.
        dwell: time of all stops, s.
    """

    names: tuple[str, ...]
    least: np.ndarray
    legs: np.ndarray
    held: np.ndarray
    dwell: float

    def shares(self, durations: np.ndarray) -> np.ndarray:
        """Return the RMS forces relative to the rated forces (n_u,), for leg durations (K,), s."""
        return np.asarray(np.sqrt(self._sums(durations)[0] / (durations.sum() + self.dwell)))

    def _sums(self, durations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the integrals of squares over a cycle (n_u,), and their derivatives (n_u, K)."""
        z = self.least / durations
        powers = z ** np.arange(DEGREE + 1)[:, None]
        mean = np.einsum("dk,dku->ku", powers, self.legs)
        slope = np.einsum("dk,dku->ku", powers * np.arange(DEGREE + 1)[:, None], self.legs)
        return self.held + durations @ mean, (mean - slope).T

    def evenly(self) -> np.ndarray:
        """Return the shortest durations (K,) within the ratings, with all legs slowed equally.

        Raises:
            PoseError: the rating of a motor is too small even to hold the machine at rest.
        """

        def over(factor: float) -> float:
            return float(self.shares(factor * self.least).max()) - 1.0

        if over(1.0) <= 0:
            return self.least
        if over(MAX_SLOWDOWN) > 0:
            shares = self.shares(MAX_SLOWDOWN * self.least)
            what = f"has a rated force of only {1 / shares.max():.3g} times the force that holds the machine"
            raise PoseError.of(
                self.names[int(shares.argmax())],
                what,
                "allow a larger rated force, or use a lighter load",
            )
        return self.least * float(brentq(over, 1.0, MAX_SLOWDOWN, xtol=1e-12))

    def shortest(self) -> np.ndarray:
        """Return the durations (K,) of the shortest cycle within the motors' ratings.

        Raises:
            PoseError: see `evenly`.
        """
        start = self.evenly()
        if start is self.least:
            return start

        def left(y: np.ndarray) -> np.ndarray:
            return np.asarray(y @ self.least + self.dwell - self._sums(y * self.least)[0])

        def by(y: np.ndarray) -> np.ndarray:
            return np.asarray(self.least * (1.0 - self._sums(y * self.least)[1]))

        total = self.least.sum()
        kept = {"type": "ineq", "fun": left, "jac": by}
        made = _solved(
            lambda y: (float(y @ self.least / total), self.least / total),
            start / self.least,
            [kept],
            1.0,
        )
        durations = self.least * made
        return durations if self._is_kept(durations) and durations.sum() < start.sum() else start

    def _is_kept(self, durations: np.ndarray) -> bool:
        return bool(self.shares(durations).max() <= 1.0 + BOUND_TOLERANCE)

    def coolest(self, total: float) -> np.ndarray:
        """Return the durations (K,) of a cycle of given duration with the coolest motors.

        They minimize the largest RMS force relative to its rating.

        Args:
            total: duration of the cycle, s; at least the sum of the legs' shortest durations and
                the stops.
        """
        n, time = len(self.least), total - self.dwell
        start = self.least * time / self.least.sum()
        first = float(self.shares(start).max()) ** 2
        if n == 1 or first == 0 or time <= self.least.sum() * (1 + BOUND_TOLERANCE):
            return start

        def left(y: np.ndarray) -> np.ndarray:
            return np.asarray(y[-1] * first * total - self._sums(y[:-1] * self.least)[0]) / total

        def by(y: np.ndarray) -> np.ndarray:
            sums = self._sums(y[:-1] * self.least)[1] * self.least
            return np.column_stack([-sums, np.full(len(sums), first * total)]) / total

        whole = np.append(self.least / time, 0.0)
        kept = [{"type": "ineq", "fun": left, "jac": by}]
        kept.append(
            {
                "type": "eq",
                "fun": lambda y: np.array([y @ whole - 1.0]),
                "jac": lambda _: whole[None],
            }
        )
        last = np.append(np.zeros(n), 1.0)
        made = _solved(
            lambda y: (float(y[-1]), last), np.append(start / self.least, 1.0), kept, 0.0
        )[:-1]
        durations = np.maximum(self.least * made, self.least)
        spare = durations - self.least
        durations = self.least + spare * (time - self.least.sum()) / max(spare.sum(), 1e-300)
        return durations if self.shares(durations).max() < self.shares(start).max() else start


def _solved(
    cost: Callable[[np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    kept: list[Any],
    last: float,
) -> np.ndarray:
    """Return the optimum from SLSQP (Kraft 1988).

    All unknowns except the last are at least 1; the last is at least `last`.
    """
    lower = [1.0] * (len(start) - 1) + [last]
    bounds = [(low, None) for low in lower]
    options = {"maxiter": 200, "ftol": 1e-12}
    made = minimize(
        cost, start, jac=True, bounds=bounds, constraints=kept, method="SLSQP", options=options
    )
    return np.asarray(made.x)


def mean_polynomials(means: Callable[[float], np.ndarray], least: float) -> np.ndarray:
    """Return the coefficients (DEGREE + 1, n_u) of polynomials in least / T for mean squares.

    `means` is the function from a duration T to the mean squares (n_u,).
    """
    z = 0.525 + 0.475 * np.cos(np.linspace(0.0, np.pi, DEGREE + 4))
    values = np.array([means(least / share) for share in z.tolist()])
    return np.asarray(np.polynomial.polynomial.polyfit(z, values, DEGREE))
