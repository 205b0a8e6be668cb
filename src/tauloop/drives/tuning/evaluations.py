"""Evaluations of a cost during tuning: history, limit of their number, and penalty of failures."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, final

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.execution.interrupts import interruptible
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass

#: Function that returns the costs (N,) of points (N, n) in one call.
BatchCost: TypeAlias = Callable[[np.ndarray], np.ndarray]
#: Function that is called with the number of evaluations and the smallest cost so far.
Watcher: TypeAlias = Callable[[int, float], None]
#: The cost of a failed evaluation exceeds the highest cost so far by this multiple of the range of
#: costs (highest minus lowest cost so far), or of the magnitude of the highest cost if that is
#: larger.
PENALTY_SPANS = 1.0
#: Penalty while no finite cost is known: more than any real cost.
PENALTY_WITHOUT_COST = 1e100


class BudgetSpentError(Exception):
    """The allowed number of evaluations is used up; `minimize` raises it to end a search method."""


@final
@dataclass(frozen=True, slots=True)
class Pointwise(Options):
    """Cost of a batch of points from the cost of one point, on several threads.

    Threads help if the cost runs in compiled code or mostly in NumPy and CasADi; a cost in plain
    Python does not become faster.

    Attributes:
        cost: function that returns the cost of one point (n,).
        threads: number of points that are evaluated at the same time.
    """

    cost: Callable[[np.ndarray], float]
    threads: int = option(1, least=1)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Return the costs (N,) of points (N, n), in the order of the points."""
        if self.threads == 1 or len(points) == 1:
            return np.array([self.cost(point) for point in points], dtype=float)
        with ThreadPoolExecutor(self.threads) as pool:
            return np.array(list(pool.map(self.cost, points)), dtype=float)


def box_differences(
    values: Callable[[np.ndarray], np.ndarray], x: np.ndarray, step: float
) -> np.ndarray:
    """Return the derivatives (n, ...) of values at a point (n,) of the unit box.

    The derivatives are central differences, one-sided at a bound. All points are evaluated in one
    call.

    Args:
        values: function that returns the values of points (N, n) of the unit box.
        x: the point.
        step: distance of each evaluated point from `x`.
    """
    offsets = step * np.eye(len(x))
    ahead, behind = np.minimum(x + offsets, 1.0), np.maximum(x - offsets, 0.0)
    evaluated = values(np.concatenate([ahead, behind]))
    change = evaluated[: len(x)] - evaluated[len(x) :]
    widths = np.diag(ahead) - np.diag(behind)
    return np.asarray((change.T / widths).T)


class Evaluations:
    """Cost over the unit box for search methods, with the history of all evaluated points.

    If a cost is not finite, for example after divergence, methods get a cost above all costs so far
    and can continue; the history contains NaN.
    """

    def __init__(
        self,
        cost: BatchCost,
        lower: np.ndarray,
        upper: np.ndarray,
        allowed: int,
        watcher: Watcher | None,
    ) -> None:
        """Store the arguments.

        Args:
            cost: cost of points (N, n) within the bounds.
            lower, upper: bounds (n,), which correspond to 0 and 1 in the unit box.
            allowed: maximum number of evaluations.
            watcher: called after every batch.
        """
        self._cost = cost
        self._lower, self._upper = lower, upper
        self._budget = allowed
        self._watcher = watcher
        self._points: list[np.ndarray] = []
        self._costs: list[np.ndarray] = []
        self._count = 0
        self._smallest, self._largest = np.inf, -np.inf

    @property
    def span(self) -> np.ndarray:
        """Width of the ranges (n,), in the units of the bounds."""
        return self._upper - self._lower

    def point(self, unit_point: np.ndarray) -> np.ndarray:
        """Return the point (n,), in the units of the bounds, of a point (n,) of the unit box."""
        return np.asarray(self._lower + np.clip(unit_point, 0.0, 1.0) * self.span)

    @property
    def points(self) -> np.ndarray:
        """Points so far (N, n), in the order of their evaluation."""
        return np.concatenate(self._points) if self._points else np.empty((0, len(self._lower)))

    @property
    def costs(self) -> np.ndarray:
        """Costs (N,) of `points`; NaN if an evaluation failed."""
        return np.concatenate(self._costs) if self._costs else np.empty(0)

    def at(self, unit_points: np.ndarray) -> np.ndarray:
        """Return the costs (N,) at points (N, n) of the unit box, with a penalty for failures.

        Raises:
            BudgetSpentError: there are more points than evaluations left; the first points are still
                evaluated.
            InputError: the cost returns a wrong number of values.
        """
        remaining = self._budget - self._count
        unit_points = np.clip(np.atleast_2d(unit_points), 0.0, 1.0)
        costs = np.empty(0)
        if remaining > 0:
            costs = self.costs_of(self._lower + unit_points[:remaining] * self.span)
        if len(costs) < len(unit_points):
            raise BudgetSpentError
        return np.where(np.isfinite(costs), costs, self._failure_penalty())

    def costs_of(self, points: np.ndarray) -> np.ndarray:
        """Return and store the costs (N,) of points (N, n); NaN where a cost is not finite."""
        costs = np.asarray(interruptible(self._cost, points), dtype=float)
        if costs.shape != (len(points),):
            raise InputError.of(
                "cost",
                f"returned an array of shape {costs.shape} for {counted(len(points), 'point')}",
                f"return one cost for each row, shape ({len(points)},); wrap a cost of one point in "
                "Pointwise",
            )
        costs = np.where(np.isfinite(costs), costs, np.nan)
        self._points.append(points)
        self._costs.append(costs)
        self._count += len(points)
        if np.isfinite(costs).any():
            self._smallest = min(self._smallest, float(np.nanmin(costs)))
            self._largest = max(self._largest, float(np.nanmax(costs)))
        if self._watcher is not None:
            self._watcher(self._count, self._smallest)
        return costs

    def _failure_penalty(self) -> float:
        """Return a cost above all costs so far."""
        if not np.isfinite(self._smallest):
            return PENALTY_WITHOUT_COST
        return self._largest + PENALTY_SPANS * max(
            self._largest - self._smallest, abs(self._largest), 1e-300
        )
