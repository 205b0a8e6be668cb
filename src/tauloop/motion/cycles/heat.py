"""Durations of the legs of a cycle if motor heating or conveyors determine the time.

The forces of a leg of duration T are quadratic in the rate r = 1/T (docs/motion.md), so the mean of
their squares is a polynomial P(r) of degree 4. The mean squares of a cycle of legs and stops are

    (H + sum_k T_k P_k(1/T_k)) / (D + sum_k T_k),

where D is the time of all stops and H the integral of the squares over this time. The shortest
cycle whose mean squares are within the motors' ratings, and the coolest cycle of a given duration,
are programs in the few unknowns T_k with exact derivatives, which IPOPT solves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from tauloop.common.errors import PoseError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Degree of the polynomials.
DEGREE = 4
#: Largest factor by which legs are slowed.
MAX_SLOWDOWN = 1e3
#: Relative tolerance of a bound.
BOUND_TOLERANCE = 1e-9
#: Number of halvings that find the common factor of all legs, down to rounding.
SLOWDOWN_HALVINGS = 64
#: Maximum number of steps of IPOPT.
MAX_SOLVER_STEPS = 200
#: Tolerance of the optimum.
SOLVER_TOLERANCE = 1e-12


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
        return np.asarray(np.sqrt(self._sums(durations) / (durations.sum() + self.dwell)))

    def _sums(self, durations: np.ndarray) -> np.ndarray:
        """Return the integrals (n_u,) of the squares over a cycle with leg durations (K,)."""
        powers = (self.least / durations) ** np.arange(DEGREE + 1)[:, None]
        return self.held + durations @ np.einsum("dk,dku->ku", powers, self.legs)

    def _symbolic_sums(self, y: ca.SX) -> ca.SX:
        """Return the integrals of `_sums` for multiples y (K,) of the shortest durations."""
        sums = ca.SX(ca.DM(self.held))
        for degree, legs in enumerate(self.legs):
            sums += ca.mtimes(ca.DM(legs.T), ca.DM(self.least) * y ** (1 - degree))
        return sums

    def evenly(self) -> np.ndarray:
        """Return the shortest durations (K,) within the ratings, with all legs slowed equally.

        Raises:
            PoseError: the rating of a motor is too small even to hold the machine at rest.
        """

        def excess(factor: float) -> float:
            """Return the excess of the largest RMS force for legs slowed by a factor."""
            return float(self.shares(factor * self.least).max()) - 1.0

        if excess(1.0) <= 0:
            return self.least
        if excess(MAX_SLOWDOWN) > 0:
            shares = self.shares(MAX_SLOWDOWN * self.least)
            what = f"has a rated force of only {1 / shares.max():.3g} times the force that holds the machine"
            raise PoseError.of(
                self.names[int(shares.argmax())],
                what,
                "allow a larger rated force, or use a lighter load",
            )
        low, high = 1.0, MAX_SLOWDOWN
        for _ in range(SLOWDOWN_HALVINGS):
            middle = 0.5 * (low + high)
            if excess(middle) > 0:
                low = middle
            else:
                high = middle
        return self.least * high

    def shortest(self) -> np.ndarray:
        """Return the durations (K,) of the shortest cycle within the motors' ratings.

        Raises:
            PoseError: see `evenly`.
        """
        start = self.evenly()
        if start is self.least:
            return start

        y = ca.SX.sym("y", len(start))
        durations = y * ca.DM(self.least)
        program = _HeatProgram(
            unknown=y,
            cost=ca.sum1(durations) / float(self.least.sum()),
            positive=ca.sum1(durations) + self.dwell - self._symbolic_sums(y),
            zero=ca.SX(0, 1),
        )
        shortest = self.least * program.solved(start / self.least, np.ones(len(start)))
        if self._is_within_ratings(shortest) and shortest.sum() < start.sum():
            return shortest
        return start

    def _is_within_ratings(self, durations: np.ndarray) -> bool:
        """Return whether the RMS forces are within the motors' ratings."""
        return bool(self.shares(durations).max() <= 1.0 + BOUND_TOLERANCE)

    def coolest(self, total: float) -> np.ndarray:
        """Return the durations (K,) of a cycle of given duration with the coolest motors.

        These durations minimize the largest RMS force relative to its rating.

        Args:
            total: duration of the cycle, s; at least the sum of the legs' shortest durations and
                the stops.
        """
        n = len(self.least)
        time = total - self.dwell
        start = self.least * time / self.least.sum()
        start_heat = float(self.shares(start).max()) ** 2
        if n == 1 or start_heat == 0 or time <= self.least.sum() * (1 + BOUND_TOLERANCE):
            return start

        y = ca.SX.sym("y", n)
        relative_heat = ca.SX.sym("relative_heat")
        program = _HeatProgram(
            unknown=ca.vertcat(y, relative_heat),
            cost=relative_heat,
            positive=relative_heat * start_heat - self._symbolic_sums(y) / total,
            zero=ca.dot(y, ca.DM(self.least / time)) - 1.0,
        )
        solution = program.solved(np.append(start / self.least, 1.0), np.append(np.ones(n), 0.0))
        durations = np.maximum(self.least * solution[:-1], self.least)
        spare = durations - self.least
        durations = self.least + spare * (time - self.least.sum()) / max(spare.sum(), 1e-300)
        is_cooler = self.shares(durations).max() < self.shares(start).max()
        return durations if is_cooler else start


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeatProgram:
    """A nonlinear program in few unknowns.

    Attributes:
        unknown: the unknowns (n,).
        cost: expression to be minimized.
        positive: expressions that must not be negative.
        zero: expressions that must be zero.
    """

    unknown: ca.SX
    cost: ca.SX
    positive: ca.SX
    zero: ca.SX

    def solved(self, start: np.ndarray, low: np.ndarray) -> np.ndarray:
        """Return the last iterate of IPOPT (n,), from a start and with lower bounds (n,).

        Bounds are not relaxed, so that the result satisfies them.
        """
        settings: dict[str, object] = {
            "print_level": 0,
            "sb": "yes",
            "max_iter": MAX_SOLVER_STEPS,
            "tol": SOLVER_TOLERANCE,
            "bound_relax_factor": 0.0,
        }
        options: dict[str, Any] = {"print_time": False, "ipopt": settings}
        program = {"x": self.unknown, "f": self.cost, "g": ca.vertcat(self.positive, self.zero)}
        solver = ca.nlpsol("heat", "ipopt", program, options)
        high = np.append(np.full(self.positive.numel(), np.inf), np.zeros(self.zero.numel()))
        return np.asarray(solver(x0=start, lbx=low, lbg=0.0, ubg=high)["x"]).ravel()


def mean_polynomials(means: Callable[[float], np.ndarray], least: float) -> np.ndarray:
    """Return the coefficients (DEGREE + 1, n_u) of polynomials in least / T for mean squares.

    `means` is the function from a duration T to the mean squares (n_u,).
    """
    z = 0.525 + 0.475 * np.cos(np.linspace(0.0, np.pi, DEGREE + 4))
    values = np.array([means(least / share) for share in z.tolist()])
    return np.asarray(np.polynomial.polynomial.polyfit(z, values, DEGREE))
