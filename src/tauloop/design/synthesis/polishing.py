"""Local search with exact derivatives: from a candidate to an optimum, or to the least violation.

Requirements hold at infinitely many poses. The worst poses of each measure are constraints of a
smooth problem, which SLSQP solves; poses that its solution violates are added until there are none
(the exchange method: Hettich and Kortanek 1993, Semi-infinite programming, SIAM Review 35).
Stiffness, first mode, and forces and speeds of actuators have differences in place of exact
derivatives. Their poses and motions are fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.synthesis.elastic import ExpensiveScores
from tauloop.design.synthesis.evaluation import (
    FEASIBLE,
    UNKNOWN_VIOLATION,
    TaskEvaluator,
    signed,
)
from tauloop.design.synthesis.pose_measures import FOOTPRINT, REACH
from tauloop.design.synthesis.task import ELASTIC, DesignRequirement

#: Rounds of the exchange of poses, and iterations of SLSQP in a round.
MAX_ROUNDS, MAX_ITERATIONS = 30, 50
#: The same where derivatives are differences of expensive quantities.
EXPENSIVE_ROUNDS, EXPENSIVE_ITERATIONS = 20, 15
#: Number of poses of the grid with which each measure starts.
FIRST_POSES = 6
#: Margin of a measure that a pose out of reach does not have; its reach is a constraint too.
_NOT_KNOWN = 10.0
#: First and least distance, in widths of the bounds, of a solution from its start.
FIRST_RADIUS, LEAST_RADIUS = 0.1, 1e-6
#: Distance, in widths of the bounds, within which points are the same.
SAME_POINT = 1e-9
#: Relative gain of a round below which the search ends.
LEAST_GAIN, EXPENSIVE_GAIN = 1e-8, 1e-5
#: Value of an objective that bounds nothing.
_NO_BOUND = -1e9
#: Number of designs whose expensive quantities are stored.
REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Polished:
    """Outcome of a local search.

    Attributes:
        x: variables (d,), SI.
        violation: largest relative violation over the box at x, sought between the poses too; at
            least `UNKNOWN_VIOLATION` if a pose is out of reach, where others are not known.
        rounds: number of rounds of the exchange.
    """

    x: np.ndarray
    violation: float
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LocalPoint:
    """Variables (d,), their largest violation, and the weighted objectives."""

    x: np.ndarray
    violation: float
    value: float

    def gain_of(self, other: _LocalPoint, *, is_relaxed: bool) -> float:
        """Return by how much another point is better: less violation first, then less value."""
        if is_relaxed:
            return self.violation - other.violation
        here, there = (max(point.violation, FEASIBLE) for point in (self, other))
        return here - there if here != there else self.value - other.value


class LocalSearch:
    """Smooth problem of one task: constraints at chosen poses, objectives as upper bounds."""

    def __init__(
        self,
        evaluator: TaskEvaluator,
        expensive: ExpensiveScores | None = None,
        quantities: Collection[str] | None = None,
    ) -> None:
        """Store the evaluator.

        Args:
            evaluator: cheap quantities.
            expensive: its quantities with differences are included; None to leave them out.
            quantities: cheap quantities whose requirements are included; all by default.
        """
        self._evaluator, self._task = evaluator, evaluator.task
        self._expensive = None
        if expensive is not None and expensive.sloped:
            self._expensive = _ExpensiveRows(expensive)
        self._lower, upper = self._task.bounds
        self._width = upper - self._lower
        by_quantity: dict[str, list[DesignRequirement]] = {}
        for i in evaluator.cheap:
            requirement = self._task.requirements[i]
            if quantities is None or requirement.quantity in quantities:
                by_quantity.setdefault(requirement.quantity, []).append(requirement)
        self._by_quantity = by_quantity
        self._size = np.ones(len(self._task.objectives))
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None

    def _measured(self, x: np.ndarray, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return measures and derivatives at poses; those of the last call are stored."""
        key = x.tobytes() + poses.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._evaluator.at_poses(x, poses)
        return self._last[1]

    def improve(
        self, x: np.ndarray, weights: Sequence[float], limits: np.ndarray | None = None
    ) -> Polished:
        """Return a design of less weighted objectives that meets the cheap requirements.

        Args:
            x: variables (d,), SI.
            weights: weight of each objective.
            limits: largest values of the objectives (k,), of which less is better, that the design
                at x has; None for none.
        """
        start = self.objectives(x)
        self._size = np.maximum(np.abs(np.nan_to_num(start, nan=1.0)), 1e-12)
        upper = np.full(len(start), np.inf) if limits is None else limits
        return self._exchange(x, np.asarray(weights, dtype=float), upper, is_relaxed=False)

    def repair(self, x: np.ndarray) -> Polished:
        """Return the design with the least largest relative violation near x (d,).

        Poses out of reach come first, because other quantities are not known there. Then the other
        violations are reduced, and all poses stay within reach.
        """
        if self._violation(x)[0] < UNKNOWN_VIOLATION:
            return self._relaxed(x)
        reaching = LocalSearch(self._evaluator, quantities=(REACH,))
        point = reaching._relaxed(x)
        violation = self._violation(point.x)[0]
        if violation >= UNKNOWN_VIOLATION:
            return replace(point, violation=violation)
        return self._relaxed(point.x)

    def _relaxed(self, x: np.ndarray) -> Polished:
        """Return the design with the least largest violation of the requirements near x (d,)."""
        count = len(self._task.objectives)
        self._size = np.ones(count)
        return self._exchange(x, np.zeros(count), np.full(count, np.inf), is_relaxed=True)

    def _exchange(
        self, x: np.ndarray, weights: np.ndarray, limits: np.ndarray, *, is_relaxed: bool
    ) -> Polished:
        poses, radius, rounds = self._first_poses(x), FIRST_RADIUS, 0
        violation, worst = self._violation(x)
        best = _LocalPoint(x=x, violation=violation, value=self._value(x, weights))
        poses = np.concatenate([poses, worst])
        most, least_gain = MAX_ROUNDS, LEAST_GAIN
        if self._expensive is not None:
            most, least_gain = EXPENSIVE_ROUNDS, EXPENSIVE_GAIN
        while rounds < most:
            rounds += 1
            x = self._solved(best.x, poses, weights, limits, radius, is_relaxed=is_relaxed)
            violation, worst = self._violation(x)
            point = _LocalPoint(x=x, violation=violation, value=self._value(x, weights))
            inside = self._violation_at(x, poses)
            gain = best.gain_of(point, is_relaxed=is_relaxed)
            is_same = bool((np.abs(x - best.x) <= SAME_POINT * self._width).all())
            if gain > 0.0:
                best = point
            both = np.concatenate([poses, worst])
            rise = weights @ (self._bounds_of(x, both) - self._bounds_of(x, poses))
            is_exchanged = violation > max(inside, 0.0) + FEASIBLE or rise > FEASIBLE
            if is_exchanged:
                poses = both
            elif gain <= 0.0:
                radius *= 0.25
            has_converged = is_same or 0.0 < gain < least_gain
            if (has_converged and not is_exchanged) or radius < LEAST_RADIUS:
                break
        return Polished(x=best.x, violation=best.violation, rounds=rounds)

    def _value(self, x: np.ndarray, weights: np.ndarray) -> float:
        """Return the weighted objectives, relative to their sizes."""
        objectives = self.objectives(x)
        if not np.isfinite(objectives).all():
            return np.inf
        return float(objectives @ (weights / self._size))

    def objectives(self, x: np.ndarray) -> np.ndarray:
        """Return the objectives (k,) of a design, of which less is better; NaN where not known."""
        objectives = self._evaluator.scores(x[None]).objectives[0]
        if self._expensive is not None:
            rows = self._expensive(x, has_slopes=False)
            for k, objective in enumerate(self._task.objectives):
                if objective.quantity in rows:
                    worst = np.min if objective.quantity in ELASTIC else np.max
                    objectives[k] = signed(objective, worst(rows[objective.quantity][0]))
        return objectives

    def _first_poses(self, x: np.ndarray) -> np.ndarray:
        """Return the worst poses of the grid for each measure."""
        raw = self._evaluator.raw_at_poses(x, self._evaluator.poses)
        chosen = np.argsort(-np.nan_to_num(raw, nan=np.inf), axis=0, kind="stable")[:FIRST_POSES]
        return self._evaluator.poses[np.unique(chosen)]

    def _violation(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the largest violation over the box, and the worst poses of all measures."""
        worst = self._evaluator.worst_poses(x, count=1)
        poses = np.unique(np.array([item.pose for item in worst]).round(12), axis=0)
        return self._violation_at(x, poses), poses

    def _violation_at(self, x: np.ndarray, poses: np.ndarray) -> float:
        """Return the largest violation at poses; those out of reach count as not known."""
        values, _ = self._constraints(x, poses)
        violation = float(-values.min())
        raw, _ = self._measured(x, poses)
        limited = [j for j, name in enumerate(self._evaluator.quantities) if self._limits(name)]
        if np.isfinite(raw[:, limited]).all():
            return violation
        return UNKNOWN_VIOLATION + max(violation, 0.0)

    def _limits(self, quantity: str) -> Sequence[DesignRequirement]:
        """Return the requirements of a quantity."""
        return self._by_quantity.get(quantity, ())

    def _relaxation(self, poses: int, count: int) -> np.ndarray:
        """Return which of the constraints (count,) are relaxed, 0 or 1: not reach among others."""
        relaxed = np.ones(count)
        if len(self._by_quantity) == 1:
            return relaxed
        first = 0
        for quantity in self._evaluator.quantities:
            rows = poses * len(self._limits(quantity))
            if quantity == REACH:
                relaxed[first : first + rows] = 0.0
            first += rows
        return relaxed

    def _solved(
        self,
        x: np.ndarray,
        poses: np.ndarray,
        weights: np.ndarray,
        limits: np.ndarray,
        radius: float,
        *,
        is_relaxed: bool,
    ) -> np.ndarray:
        """Return the solution of the smooth problem at some poses, within a distance of x.

        Its variables are those of the task on the unit box, an upper bound of every objective, and,
        if relaxed, the largest violation.
        """
        from scipy.optimize import minimize

        d = len(x)
        size = self._size
        gradient = np.concatenate([np.zeros(d), weights, [1.0 if is_relaxed else 0.0]])

        cached: dict[tuple[bytes, bool], tuple[np.ndarray, np.ndarray]] = {}
        has_differences = self._expensive is not None

        def constraints(z: np.ndarray, *, has_slopes: bool) -> tuple[np.ndarray, np.ndarray]:
            key = (z.tobytes(), has_slopes or not has_differences)
            if key not in cached:
                cached.clear()
                cached[key] = self._smooth(z, poses, d, has_slopes=has_slopes)
            return cached[key]

        u = np.clip((x - self._lower) / self._width, 0.0, 1.0)
        violation = max(self._violation_at(x, poses), 0.0)
        start = self._bounds_of(x, poses)
        z = np.concatenate([u, start, [violation if is_relaxed else 0.0]])
        slack = (0.0, max(2.0 * violation, 1.0)) if is_relaxed else (0.0, 0.0)
        upper = [limit if np.isfinite(limit) else None for limit in (limits / size).tolist()]
        near = [(max(v - radius, 0.0), min(v + radius, 1.0)) for v in u]
        iterations = EXPENSIVE_ITERATIONS if has_differences else MAX_ITERATIONS
        bounds: list[Any] = [*near, *[(None, end) for end in upper], slack]
        solved = minimize(
            lambda z: float(gradient @ z),
            z,
            jac=lambda z: gradient,
            method="SLSQP",
            bounds=bounds,
            constraints=[
                {
                    "type": "ineq",
                    "fun": lambda z: constraints(z, has_slopes=False)[0],
                    "jac": lambda z: constraints(z, has_slopes=True)[1],
                }
            ],
            options={"maxiter": iterations, "ftol": 1e-12},
        )
        point = np.clip(solved.x[:d], 0.0, 1.0)
        if not np.isfinite(point).all():
            return x
        return np.asarray(self._lower + point * self._width)

    def _smooth(
        self, z: np.ndarray, poses: np.ndarray, d: int, *, has_slopes: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return margins (n,) of the smooth problem and their derivatives (n, d + k + 1).

        Args:
            z: d variables on the unit box, k bounds of objectives, and the largest violation.
            poses: poses of the constraints.
            d: number of variables.
            has_slopes: whether derivatives of expensive quantities are needed; zero otherwise.
        """
        size = self._size
        x = self._lower + z[:d] * self._width
        values, slopes = self._constraints(x, poses, has_slopes=has_slopes)
        objectives, d_objectives, of = self._objectives(x, poses, has_slopes=has_slopes)
        n = len(values)
        jacobian = np.zeros((n + len(objectives), len(z)))
        relaxed = self._relaxation(len(poses), n)
        jacobian[:n, :d], jacobian[:n, -1] = slopes * self._width, relaxed
        jacobian[n:, :d] = -d_objectives * self._width / size[of, None]
        jacobian[np.arange(n, len(jacobian)), d + of] = 1.0
        bound = z[d + of] - objectives / size[of]
        return np.concatenate([values + relaxed * z[-1], bound]), jacobian

    def _bounds_of(self, x: np.ndarray, poses: np.ndarray) -> np.ndarray:
        """Return the largest objectives (k,) at the poses, over their sizes."""
        objectives, _, of = self._objectives(x, poses)
        largest = np.full(len(self._size), -np.inf)
        np.maximum.at(largest, of, objectives / self._size[of])
        return np.where(np.isfinite(largest), largest, 0.0)

    def _expensive_rows(
        self, x: np.ndarray, *, has_slopes: bool
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return rows (r,) of expensive quantities and their derivatives (r, d) by variables."""
        return {} if self._expensive is None else self._expensive(x, has_slopes=has_slopes)

    def _constraints(
        self, x: np.ndarray, poses: np.ndarray, *, has_slopes: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return margins (n,), minus the violations, and derivatives (n, d) by variable."""
        evaluator = self._evaluator
        raw, slopes = self._measured(x, poses)
        margins, gradients = [], []
        for j, item in enumerate(evaluator.columns):
            for requirement in self._limits(evaluator.quantities[j]):
                sign = 1.0 if requirement.is_upper else -1.0
                margin = -requirement.violation(item.natural(raw[:, j]))
                slope = -sign / requirement.scale * item.slope(raw[:, j])
                margins.append(np.where(np.isfinite(margin), margin, _NOT_KNOWN))
                gradient = slope[:, None] * slopes[:, j]
                gradients.append(np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0))
        for quantity, requirements in self._by_quantity.items():
            if quantity not in ("mass", "footprint"):
                continue
            value, gradient = self._aggregate(quantity, x, raw, slopes)
            for requirement in requirements:
                sign = 1.0 if requirement.is_upper else -1.0
                margin = -requirement.violation(np.array([value]))
                margins.append(np.where(np.isfinite(margin), margin, _NOT_KNOWN))
                gradients.append(-sign / requirement.scale * gradient[None])
        rows = self._expensive_rows(x, has_slopes=has_slopes)
        for requirement in self._task.requirements:
            if requirement.quantity in rows:
                number, by_x = rows[requirement.quantity]
                sign = 1.0 if requirement.is_upper else -1.0
                margin = -requirement.violation(number)
                margins.append(np.where(np.isfinite(margin), margin, _NOT_KNOWN))
                gradient = -sign / requirement.scale * by_x
                gradients.append(np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0))
        return np.concatenate(margins), np.concatenate(gradients)

    def _aggregate(
        self, quantity: str, x: np.ndarray, raw: np.ndarray, slopes: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return mass or footprint, and its derivatives (d,); NaN if no pose is reached."""
        if quantity == "mass":
            values, by_variables = self._evaluator.parametric(x[None])
            return float(values[0, 0]), by_variables[0, 0]
        sides, gradients = [], []
        for j, item in enumerate(self._evaluator.columns):
            if item.kind != FOOTPRINT:
                continue
            known = np.isfinite(raw[:, j])
            if not known.any():
                return np.nan, np.zeros(len(x))
            index = int(np.argmax(np.where(known, raw[:, j], -np.inf)))
            sides.append(float(raw[index, j]))
            gradients.append(slopes[index, j])
        along, across = sides[0] + sides[1], sides[2] + sides[3]
        d_along, d_across = gradients[0] + gradients[1], gradients[2] + gradients[3]
        return along * across, across * d_along + along * d_across

    def _objectives(
        self, x: np.ndarray, poses: np.ndarray, *, has_slopes: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return values (n,), derivatives (n, d) and numbers (n,) of objectives; less is better."""
        evaluator = self._evaluator
        raw, slopes = self._measured(x, poses)
        parametric, d_parametric = evaluator.parametric(x[None])
        values: list[np.ndarray] = []
        gradients: list[np.ndarray] = []
        of: list[np.ndarray] = []
        place = 1
        expensive = self._expensive_rows(x, has_slopes=has_slopes)
        for k, objective in enumerate(self._task.objectives):
            sign = 1.0 if objective.is_minimized else -1.0
            if objective.expression is not None:
                rows = [(parametric[0, place : place + 1], d_parametric[0, place : place + 1])]
                place += 1
            elif objective.quantity in expensive:
                rows = [expensive[objective.quantity]]
            elif objective.quantity in ("mass", "footprint"):
                total, d_total = self._aggregate(objective.quantity, x, raw, slopes)
                rows = [(np.array([total]), d_total[None])]
            else:
                rows = [
                    (item.natural(raw[:, j]), item.slope(raw[:, j])[:, None] * slopes[:, j])
                    for j, item in enumerate(evaluator.columns)
                    if evaluator.quantities[j] == objective.quantity
                ]
            for value, gradient in rows:
                known = np.isfinite(value) & np.isfinite(gradient).all(axis=1)
                values.append(np.where(known, sign * value, _NO_BOUND))
                gradients.append(np.where(known[:, None], sign * gradient, 0.0))
                of.append(np.full(len(value), k))
        d = len(self._task.variables)
        return (
            np.concatenate([np.zeros(0), *values]),
            np.concatenate([np.zeros((0, d)), *gradients]),
            np.concatenate([np.zeros(0, dtype=int), *of]),
        )


class _ExpensiveRows:
    """Rows of expensive quantities at the last designs of a local search, with their derivatives."""

    def __init__(self, expensive: ExpensiveScores) -> None:
        """Store the quantities."""
        self._scores = expensive
        self._rows: dict[bytes, dict[str, np.ndarray]] = {}
        self._slopes: dict[bytes, dict[str, np.ndarray]] = {}

    def __call__(
        self, x: np.ndarray, *, has_slopes: bool
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return rows (r,) and derivatives (r, d), which are zero if they are not needed."""
        rows = _remembered(self._rows, x, lambda: self._of_one(self._scores.local_rows(x[None])))
        if not has_slopes:
            return {name: (row, np.zeros((len(row), len(x)))) for name, row in rows.items()}
        slopes = _remembered(self._slopes, x, lambda: self._scores.local_slopes(x))
        return {name: (row, slopes[name]) for name, row in rows.items()}

    @staticmethod
    def _of_one(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: row[0] for name, row in rows.items()}


def _remembered(
    store: dict[bytes, dict[str, np.ndarray]],
    x: np.ndarray,
    computed: Callable[[], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Return arrays of a design (d,), computed once while it is one of the last designs."""
    key = x.tobytes()
    if key not in store:
        if len(store) >= REMEMBERED:
            store.clear()
        store[key] = computed()
    return store[key]
