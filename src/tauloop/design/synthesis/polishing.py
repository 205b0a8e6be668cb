"""Local search with exact derivatives: from a candidate to an optimum, or to the least violation.

Requirements apply at infinitely many poses. The worst poses of each measure give the constraints of a
smooth problem, which SLSQP solves. Poses at which the solution violates a requirement are added until
there are none (the exchange method: Hettich and Kortanek 1993, Semi-infinite programming, SIAM Review
35). For stiffness, first mode, and forces and speeds of actuators, finite differences replace exact
derivatives. The poses and motions for these quantities do not change during the search.
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

#: Maximum number of rounds of the exchange of poses.
MAX_ROUNDS = 30
#: Maximum number of iterations of SLSQP in a round.
MAX_ITERATIONS = 50
#: Maximum number of rounds if expensive quantities are differentiated by finite differences.
EXPENSIVE_ROUNDS = 20
#: Maximum number of iterations of SLSQP in a round with finite differences.
EXPENSIVE_ITERATIONS = 15
#: Number of worst poses of the grid for each measure that the first round constrains.
FIRST_POSES = 6
#: Margin that replaces a measure that is undefined because the pose is out of reach. The constraint on
#: reach handles such poses.
_UNDEFINED_MARGIN = 10.0
#: Initial trust-region radius, relative to the widths of the bounds.
FIRST_RADIUS = 0.1
#: Trust-region radius below which the search ends, relative to the widths of the bounds.
MIN_RADIUS = 1e-6
#: Distance, relative to the widths of the bounds, within which points count as the same.
SAME_POINT = 1e-9
#: Relative gain of a round below which the search ends.
MIN_GAIN = 1e-8
#: Relative gain below which the search ends if expensive quantities are differentiated by finite
#: differences.
EXPENSIVE_GAIN = 1e-5
#: Value that replaces an undefined objective, so that its upper bound is never active.
_UNDEFINED_OBJECTIVE = -1e9
#: Maximum number of designs whose expensive quantities are stored.
MAX_STORED = 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Polished:
    """Outcome of a local search.

    Attributes:
        x: variables (d,), SI.
        violation: largest relative violation at x over the whole box, not only at the poses of the
            grid; at least `UNKNOWN_VIOLATION` if a pose is out of reach, where other quantities are
            undefined.
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
        """Return by how much another point is better than this point.

        If `is_relaxed`, only the violations are compared. Otherwise violations above `FEASIBLE` are
        compared first; if they are equal, the weighted objectives are compared.
        """
        if is_relaxed:
            return self.violation - other.violation
        self_violation = max(self.violation, FEASIBLE)
        other_violation = max(other.violation, FEASIBLE)
        if self_violation != other_violation:
            return self_violation - other_violation
        return self.value - other.value


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
            evaluator: evaluator of the cheap quantities.
            expensive: expensive quantities, differentiated by finite differences; None to omit them.
            quantities: cheap quantities whose requirements are included; all by default.
        """
        self._evaluator = evaluator
        self._task = evaluator.task
        self._expensive = None
        if expensive is not None and expensive.differenced:
            self._expensive = _ExpensiveValues(expensive)
        self._lower, upper = self._task.bounds
        self._width = upper - self._lower
        by_quantity: dict[str, list[DesignRequirement]] = {}
        for i in evaluator.cheap:
            requirement = self._task.requirements[i]
            if quantities is None or requirement.quantity in quantities:
                by_quantity.setdefault(requirement.quantity, []).append(requirement)
        self._by_quantity = by_quantity
        self._scale = np.ones(len(self._task.objectives))
        self._last_measures: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None

    def _measures_at(self, x: np.ndarray, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return measures and derivatives at poses; the result of the last call is stored."""
        key = x.tobytes() + poses.tobytes()
        if self._last_measures is None or self._last_measures[0] != key:
            self._last_measures = key, self._evaluator.at_poses(x, poses)
        return self._last_measures[1]

    def improve(
        self, x: np.ndarray, weights: Sequence[float], limits: np.ndarray | None = None
    ) -> Polished:
        """Return a design with a lower weighted sum of objectives that meets the requirements.

        Args:
            x: variables (d,), SI.
            weights: weight of each objective.
            limits: upper bounds of the objectives (k,), all of which are minimized; the design at x
                satisfies them. None for no bounds.
        """
        start = self.objectives(x)
        self._scale = np.maximum(np.abs(np.nan_to_num(start, nan=1.0)), 1e-12)
        upper = np.full(len(start), np.inf) if limits is None else limits
        return self._exchange(x, np.asarray(weights, dtype=float), upper, is_relaxed=False)

    def repair(self, x: np.ndarray) -> Polished:
        """Return the design near x (d,) with the smallest maximum of all relative violations.

        The search first brings all poses within reach, because other quantities are undefined at
        poses out of reach. Then it reduces the other violations and keeps all poses within reach.
        """
        if self._violation(x)[0] < UNKNOWN_VIOLATION:
            return self._relaxed(x)
        reach_search = LocalSearch(self._evaluator, quantities=(REACH,))
        point = reach_search._relaxed(x)
        violation = self._violation(point.x)[0]
        if violation >= UNKNOWN_VIOLATION:
            return replace(point, violation=violation)
        return self._relaxed(point.x)

    def _relaxed(self, x: np.ndarray) -> Polished:
        """Return the design near x (d,) with the smallest maximum of all violations."""
        count = len(self._task.objectives)
        self._scale = np.ones(count)
        return self._exchange(x, np.zeros(count), np.full(count, np.inf), is_relaxed=True)

    def _exchange(
        self, x: np.ndarray, weights: np.ndarray, limits: np.ndarray, *, is_relaxed: bool
    ) -> Polished:
        """Return the result of the exchange method, started at x (d,).

        Args:
            x: variables (d,).
            weights: weight of each objective (k,).
            limits: upper bounds of the objectives (k,); infinite for no bound.
            is_relaxed: whether the largest violation is minimized instead of the objectives.
        """
        radius = FIRST_RADIUS
        rounds = 0
        violation, worst = self._violation(x)
        best = _LocalPoint(x=x, violation=violation, value=self._value(x, weights))
        poses = np.concatenate([self._first_poses(x), worst])
        max_rounds = MAX_ROUNDS
        min_gain = MIN_GAIN
        if self._expensive is not None:
            max_rounds = EXPENSIVE_ROUNDS
            min_gain = EXPENSIVE_GAIN
        while rounds < max_rounds:
            rounds += 1
            x = self._solve(best.x, poses, weights, limits, radius, is_relaxed=is_relaxed)
            violation, worst = self._violation(x)
            point = _LocalPoint(x=x, violation=violation, value=self._value(x, weights))
            violation_at_poses = self._violation_at(x, poses)
            gain = best.gain_of(point, is_relaxed=is_relaxed)
            is_same = bool((np.abs(x - best.x) <= SAME_POINT * self._width).all())
            if gain > 0.0:
                best = point
            # Poses are added if the violation or the objectives are larger at the worst poses.
            all_poses = np.concatenate([poses, worst])
            increase = weights @ (self._bounds_of(x, all_poses) - self._bounds_of(x, poses))
            is_worse_elsewhere = violation > max(violation_at_poses, 0.0) + FEASIBLE
            is_exchanged = is_worse_elsewhere or increase > FEASIBLE
            if is_exchanged:
                poses = all_poses
            elif gain <= 0.0:
                radius *= 0.25
            has_converged = is_same or 0.0 < gain < min_gain
            if (has_converged and not is_exchanged) or radius < MIN_RADIUS:
                break
        return Polished(x=best.x, violation=best.violation, rounds=rounds)

    def _value(self, x: np.ndarray, weights: np.ndarray) -> float:
        """Return the weighted sum of the objectives, relative to their scales."""
        objectives = self.objectives(x)
        if not np.isfinite(objectives).all():
            return np.inf
        return float(objectives @ (weights / self._scale))

    def objectives(self, x: np.ndarray) -> np.ndarray:
        """Return the objectives (k,) of a design, all of which are minimized; NaN if undefined."""
        objectives = self._evaluator.scores(x[None]).objectives[0]
        if self._expensive is not None:
            expensive = self._expensive(x, needs_gradient=False)
            for k, objective in enumerate(self._task.objectives):
                if objective.quantity in expensive:
                    values, _ = expensive[objective.quantity]
                    worst = values.min() if objective.quantity in ELASTIC else values.max()
                    objectives[k] = signed(objective, worst)
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
        """Return the largest violation at poses; at least UNKNOWN_VIOLATION if one is out of reach."""
        values, _ = self._constraints(x, poses)
        violation = float(-values.min())
        raw, _ = self._measures_at(x, poses)
        quantities = self._evaluator.quantities
        constrained = [j for j, name in enumerate(quantities) if self._requirements_of(name)]
        if np.isfinite(raw[:, constrained]).all():
            return violation
        return UNKNOWN_VIOLATION + max(violation, 0.0)

    def _requirements_of(self, quantity: str) -> Sequence[DesignRequirement]:
        """Return the requirements of a quantity."""
        return self._by_quantity.get(quantity, ())

    def _relaxation(self, poses: int, count: int) -> np.ndarray:
        """Return 1 for each constraint (count,) that is relaxed, and 0 for the others.

        Constraints on reach are not relaxed, unless there are no other constraints.
        """
        relaxation = np.ones(count)
        if len(self._by_quantity) == 1:
            return relaxation
        first = 0
        for quantity in self._evaluator.quantities:
            n_constraints = poses * len(self._requirements_of(quantity))
            if quantity == REACH:
                relaxation[first : first + n_constraints] = 0.0
            first += n_constraints
        return relaxation

    def _solve(
        self,
        x: np.ndarray,
        poses: np.ndarray,
        weights: np.ndarray,
        limits: np.ndarray,
        radius: float,
        *,
        is_relaxed: bool,
    ) -> np.ndarray:
        """Return the solution of the smooth problem at some poses, within a radius of x.

        The variables of the problem are those of the task on the unit box, an upper bound of every
        objective, and, if relaxed, the largest violation.
        """
        from scipy.optimize import minimize

        d = len(x)
        gradient = np.concatenate([np.zeros(d), weights, [1.0 if is_relaxed else 0.0]])
        cached: dict[tuple[bytes, bool], tuple[np.ndarray, np.ndarray]] = {}
        has_differences = self._expensive is not None

        def constraints(z: np.ndarray, *, needs_gradient: bool) -> tuple[np.ndarray, np.ndarray]:
            key = (z.tobytes(), needs_gradient or not has_differences)
            if key not in cached:
                cached.clear()
                cached[key] = self._smooth(z, poses, d, needs_gradient=needs_gradient)
            return cached[key]

        u = np.clip((x - self._lower) / self._width, 0.0, 1.0)
        violation = max(self._violation_at(x, poses), 0.0)
        start = self._bounds_of(x, poses)
        z = np.concatenate([u, start, [violation if is_relaxed else 0.0]])
        slack = (0.0, max(2.0 * violation, 1.0)) if is_relaxed else (0.0, 0.0)
        trust_region = [(max(v - radius, 0.0), min(v + radius, 1.0)) for v in u]
        objective_bounds = [
            (None, limit if np.isfinite(limit) else None)
            for limit in (limits / self._scale).tolist()
        ]
        iterations = EXPENSIVE_ITERATIONS if has_differences else MAX_ITERATIONS
        bounds: list[Any] = [*trust_region, *objective_bounds, slack]
        solution = minimize(
            lambda z: float(gradient @ z),
            z,
            jac=lambda z: gradient,
            method="SLSQP",
            bounds=bounds,
            constraints=[
                {
                    "type": "ineq",
                    "fun": lambda z: constraints(z, needs_gradient=False)[0],
                    "jac": lambda z: constraints(z, needs_gradient=True)[1],
                }
            ],
            options={"maxiter": iterations, "ftol": 1e-12},
        )
        point = np.clip(solution.x[:d], 0.0, 1.0)
        if not np.isfinite(point).all():
            return x
        return np.asarray(self._lower + point * self._width)

    def _smooth(
        self, z: np.ndarray, poses: np.ndarray, d: int, *, needs_gradient: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return margins (n,) of the smooth problem and their derivatives (n, d + k + 1).

        Args:
            z: d variables on the unit box, k bounds of objectives, and the largest violation.
            poses: poses of the constraints.
            d: number of variables.
            needs_gradient: whether derivatives of expensive quantities are needed; they are zero
                otherwise.
        """
        x = self._lower + z[:d] * self._width
        values, slopes = self._constraints(x, poses, needs_gradient=needs_gradient)
        objectives, d_objectives, indices = self._objectives(
            x, poses, needs_gradient=needs_gradient
        )
        scale = self._scale[indices]
        n = len(values)
        jacobian = np.zeros((n + len(objectives), len(z)))
        relaxation = self._relaxation(len(poses), n)
        jacobian[:n, :d] = slopes * self._width
        jacobian[:n, -1] = relaxation
        jacobian[n:, :d] = -d_objectives * self._width / scale[:, None]
        jacobian[np.arange(n, len(jacobian)), d + indices] = 1.0
        bound = z[d + indices] - objectives / scale
        return np.concatenate([values + relaxation * z[-1], bound]), jacobian

    def _bounds_of(self, x: np.ndarray, poses: np.ndarray) -> np.ndarray:
        """Return the largest values (k,) of the objectives at the poses, relative to their scales."""
        objectives, _, indices = self._objectives(x, poses)
        largest = np.full(len(self._scale), -np.inf)
        np.maximum.at(largest, indices, objectives / self._scale[indices])
        return np.where(np.isfinite(largest), largest, 0.0)

    def _expensive_values(
        self, x: np.ndarray, *, needs_gradient: bool
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return values (r,) of expensive quantities and their derivatives (r, d) by variables."""
        if self._expensive is None:
            return {}
        return self._expensive(x, needs_gradient=needs_gradient)

    def _constraints(
        self, x: np.ndarray, poses: np.ndarray, *, needs_gradient: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return margins (n,), which are minus the violations, and derivatives (n, d) by variables."""
        evaluator = self._evaluator
        raw, slopes = self._measures_at(x, poses)
        margins = []
        gradients = []
        for j, item in enumerate(evaluator.columns):
            for requirement in self._requirements_of(evaluator.quantities[j]):
                sign = 1.0 if requirement.is_upper else -1.0
                margin = -requirement.violation(item.value(raw[:, j]))
                slope = -sign / requirement.scale * item.slope(raw[:, j])
                margins.append(np.where(np.isfinite(margin), margin, _UNDEFINED_MARGIN))
                gradient = slope[:, None] * slopes[:, j]
                gradients.append(np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0))
        for quantity, requirements in self._by_quantity.items():
            if quantity not in ("mass", "footprint"):
                continue
            value, gradient = self._aggregate(quantity, x, raw, slopes)
            for requirement in requirements:
                sign = 1.0 if requirement.is_upper else -1.0
                margin = -requirement.violation(np.array([value]))
                margins.append(np.where(np.isfinite(margin), margin, _UNDEFINED_MARGIN))
                gradients.append(-sign / requirement.scale * gradient[None])
        expensive = self._expensive_values(x, needs_gradient=needs_gradient)
        for requirement in self._task.requirements:
            if requirement.quantity in expensive:
                values, derivatives = expensive[requirement.quantity]
                sign = 1.0 if requirement.is_upper else -1.0
                margin = -requirement.violation(values)
                margins.append(np.where(np.isfinite(margin), margin, _UNDEFINED_MARGIN))
                gradient = -sign / requirement.scale * derivatives
                gradients.append(np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0))
        return np.concatenate(margins), np.concatenate(gradients)

    def _aggregate(
        self, quantity: str, x: np.ndarray, raw: np.ndarray, slopes: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return mass or footprint, and its derivatives (d,); NaN if no pose is within reach."""
        if quantity == "mass":
            values, by_variables = self._evaluator.parametric(x[None])
            return float(values[0, 0]), by_variables[0, 0]
        sides = []
        gradients = []
        for j, item in enumerate(self._evaluator.columns):
            if item.kind != FOOTPRINT:
                continue
            is_defined = np.isfinite(raw[:, j])
            if not is_defined.any():
                return np.nan, np.zeros(len(x))
            index = int(np.argmax(np.where(is_defined, raw[:, j], -np.inf)))
            sides.append(float(raw[index, j]))
            gradients.append(slopes[index, j])
        length = sides[0] + sides[1]
        width = sides[2] + sides[3]
        d_length = gradients[0] + gradients[1]
        d_width = gradients[2] + gradients[3]
        return length * width, width * d_length + length * d_width

    def _objectives(
        self, x: np.ndarray, poses: np.ndarray, *, needs_gradient: bool = False
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return values, derivatives and indices of objectives; all objectives are minimized.

        An objective has a value for each pose or element at which it is evaluated.

        Returns:
            Values (n,), derivatives (n, d) by variables, and indices (n,) of the objectives.
        """
        evaluator = self._evaluator
        raw, slopes = self._measures_at(x, poses)
        parametric, d_parametric = evaluator.parametric(x[None])
        values: list[np.ndarray] = []
        gradients: list[np.ndarray] = []
        indices: list[np.ndarray] = []
        # The first parametric value is the mass; those of expressions follow.
        column = 1
        expensive = self._expensive_values(x, needs_gradient=needs_gradient)
        for k, objective in enumerate(self._task.objectives):
            sign = 1.0 if objective.is_minimized else -1.0
            if objective.expression is not None:
                columns = slice(column, column + 1)
                pairs = [(parametric[0, columns], d_parametric[0, columns])]
                column += 1
            elif objective.quantity in expensive:
                pairs = [expensive[objective.quantity]]
            elif objective.quantity in ("mass", "footprint"):
                total, d_total = self._aggregate(objective.quantity, x, raw, slopes)
                pairs = [(np.array([total]), d_total[None])]
            else:
                pairs = [
                    (item.value(raw[:, j]), item.slope(raw[:, j])[:, None] * slopes[:, j])
                    for j, item in enumerate(evaluator.columns)
                    if evaluator.quantities[j] == objective.quantity
                ]
            for value, gradient in pairs:
                is_defined = np.isfinite(value) & np.isfinite(gradient).all(axis=1)
                values.append(np.where(is_defined, sign * value, _UNDEFINED_OBJECTIVE))
                gradients.append(np.where(is_defined[:, None], sign * gradient, 0.0))
                indices.append(np.full(len(value), k))
        d = len(self._task.variables)
        return (
            np.concatenate([np.zeros(0), *values]),
            np.concatenate([np.zeros((0, d)), *gradients]),
            np.concatenate([np.zeros(0, dtype=int), *indices]),
        )


class _ExpensiveValues:
    """Values of expensive quantities at recent designs of a local search, with their derivatives."""

    def __init__(self, expensive: ExpensiveScores) -> None:
        """Store the expensive quantities."""
        self._scores = expensive
        self._values: dict[bytes, dict[str, np.ndarray]] = {}
        self._slopes: dict[bytes, dict[str, np.ndarray]] = {}

    def __call__(
        self, x: np.ndarray, *, needs_gradient: bool
    ) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return values (r,) and derivatives (r, d) by quantity.

        The derivatives are zero if they are not needed.
        """
        values = _stored(self._values, x, lambda: self._values_at(x))
        if not needs_gradient:
            return {name: (value, np.zeros((len(value), len(x)))) for name, value in values.items()}
        slopes = _stored(self._slopes, x, lambda: self._scores.local_slopes(x))
        return {name: (value, slopes[name]) for name, value in values.items()}

    def _values_at(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return values (r,) by quantity at a design (d,)."""
        return {name: rows[0] for name, rows in self._scores.local_rows(x[None]).items()}


def _stored(
    store: dict[bytes, dict[str, np.ndarray]],
    x: np.ndarray,
    compute: Callable[[], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Return the arrays of a design (d,) from the store, or compute and store them.

    The store contains at most `MAX_STORED` designs; it is cleared when it is full.
    """
    key = x.tobytes()
    if key not in store:
        if len(store) >= MAX_STORED:
            store.clear()
        store[key] = compute()
    return store[key]
