"""Minimization of a cost over parameters within bounds, with diagnostics and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.datasets import channels, in_table, numbered, quantity_over, several
from tauloop.common.errors import InputError, Problem, Problems, solving
from tauloop.common.execution.interrupts import interruptible
from tauloop.common.records import dataclass
from tauloop.common.result import Diagnostic, Result, diagnostic, provenance
from tauloop.drives.tuning.evaluations import BatchCost, BudgetSpentError, Evaluations, Watcher
from tauloop.drives.tuning.methods import PatternSearch, SearchMethod

#: Distance of the neighbors that test the best point, along each axis, as a fraction of the range.
NEIGHBOR = 0.01
#: If a neighbor is better by less than this fraction of the range of costs, the point still counts
#: as optimal.
NEIGHBOR_GAIN = 0.01
#: Default of the maximum number of evaluations.
BUDGET = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Minimum(Result):
    """The best parameters of one search and how they were found.

    Attributes:
        names: names of the parameters (n).
        start: start point of the search (n,), in the units of the bounds.
        best: the best point (n,), in the units of the bounds.
        cost: cost of the best parameters.
        start_cost: cost at the start; NaN if the cost is not finite there.
        points, costs: all evaluated points (N, n) in order, and their costs (N,); NaN where the
            cost is not finite.
        ending: reason for the end of the search.
        interrupted: whether the search was interrupted; `best` is then the best point so far.
    """

    quantity_order: ClassVar[tuple[str, ...]] = ("evaluation", "cost", "least", "point")
    names: tuple[str, ...]
    start: np.ndarray
    best: np.ndarray
    cost: float
    start_cost: float
    points: np.ndarray = field(
        metadata=channels("evaluation", names="names", unit=None, name="point")
    )
    costs: np.ndarray = field(
        metadata=several(numbered("evaluation"), quantity_over("evaluation", name="cost"))
    )
    ending: str
    interrupted: bool

    @property
    def summary(self) -> dict[str, Any]:
        """Start and best point by parameter, their costs, and the reason for the end."""
        return {
            "start": dict(zip(self.names, self.start, strict=True)),
            "best": dict(zip(self.names, self.best, strict=True)),
            "cost": self.cost,
            "start_cost": self.start_cost if np.isfinite(self.start_cost) else None,
            "evaluations": len(self.costs),
            "ending": self.ending,
            "interrupted": self.interrupted,
        }

    @property
    @in_table(quantity_over("evaluation", name="least"))
    def finite_descent(self) -> np.ndarray:
        """Smallest cost up to each evaluation (N,); NaN before the first finite cost."""
        return np.where(np.isfinite(self.descent), self.descent, np.nan)

    @property
    def descent(self) -> np.ndarray:
        """Smallest cost up to each evaluation (N,); infinite before the first finite cost."""
        costs = np.where(np.isfinite(self.costs), self.costs, np.inf)
        smallest: np.ndarray = np.minimum.accumulate(costs)
        return smallest


@solving(InputError)
def minimize(
    cost: BatchCost,
    bounds: Mapping[str, tuple[float, float]],
    start: Sequence[float] | np.ndarray,
    method: SearchMethod | None = None,
    *,
    budget: int = BUDGET,
    watcher: Watcher | None = None,
) -> Minimum:
    """Minimize a cost within bounds, from a start.

    The cost is evaluated in batches, so that a compiled simulation runs a whole generation, poll or
    gradient in one call. A point whose cost is not finite (if a loop diverges, for example) gets a
    cost above all others. Ctrl-C, or a `KeyboardInterrupt` that the watcher raises, ends the search
    at once and keeps the best point so far, without waiting for the running batch.

    Args:
        cost: function of points (N, n) to costs (N,); wrap a function of one point in `Pointwise`.
        bounds: lower and upper bound by name of the parameter; their order is the order of a
            point's numbers.
        start: start point (n,), in the units of the bounds.
        method: method of the search; default: pattern search.
        budget: maximum number of evaluations; the test of the best point needs 2 n + 1 more.
        watcher: receives the number of evaluations and the smallest cost after every batch, for a
            progress bar.

    Returns:
        The best parameters with their cost, and why the search ended.

    Raises:
        InputError: the bounds are empty or exclude the start, or the cost has the wrong shape or no
            finite value.
        EngineError: the method needs pymoo, which is not installed.
    """
    method = PatternSearch() if method is None else method
    lower, upper, first = checked_box(bounds, start, budget)
    evaluations = Evaluations(cost, lower, upper, budget, watcher)
    interrupted = False
    try:
        evaluations.at((first - lower) / (upper - lower))
        ending = method.search(evaluations, (first - lower) / (upper - lower))
    except BudgetSpentError:
        ending = f"all {budget} evaluations are used up"
    except KeyboardInterrupt:
        if not np.isfinite(evaluations.costs).any():
            raise  # nothing to keep
        ending, interrupted = "interrupted", True
    points, costs = evaluations.points, evaluations.costs
    if not np.isfinite(costs).any():
        raise InputError.of(
            "cost",
            f"none of {len(costs)} evaluations gave a finite cost",
            "start where the loop is stable, or narrow the bounds to stable gains",
        )
    k = int(np.nanargmin(costs))
    best, best_cost = points[k], float(costs[k])
    optimality: list[Diagnostic] = []
    if not interrupted:
        try:
            optimality = _optimality_diagnostics(cost, best, best_cost, costs, lower, upper)
        except KeyboardInterrupt:
            ending, interrupted = "interrupted", True
    failed = diagnostic(
        "fraction of evaluations without a cost",
        np.mean(~np.isfinite(costs)),
        at_most=0.5,
        advice="narrow the bounds: in most of them the cost is not finite",
    )
    return Minimum(
        diagnostics=(failed, _interruptions(interrupted), *optimality),
        provenance=provenance(
            packages=("numpy", "scipy", "pymoo"),
            options={"method": type(method).__name__, "options": repr(method), "budget": budget},
            inputs={name: list(map(float, bounds[name])) for name in bounds},
        ),
        names=tuple(bounds),
        start=first,
        best=best,
        cost=best_cost,
        start_cost=float(costs[0]),
        points=points,
        costs=costs,
        ending=ending,
        interrupted=interrupted,
    )


def minimize_from(
    cost: BatchCost,
    bounds: Mapping[str, tuple[float, float]],
    starts: Sequence[Sequence[float]] | np.ndarray,
    method: SearchMethod | None = None,
    *,
    budget: int = BUDGET,
    watcher: Watcher | None = None,
) -> tuple[Minimum, ...]:
    """Minimize a cost from several starts (S, n), one after the other.

    An interruption keeps the results so far.

    Returns:
        The results of the searches from all starts, or of those up to the interruption.

    Raises:
        InputError: as in `minimize`; all starts are checked before the first search. An empty list
            of starts is rejected.
    """
    starts = np.asarray(starts, dtype=float)
    problems = Problems()
    if not len(starts):
        problems.add("starts", "is empty", "give at least one start")
    for k, start in enumerate(starts):
        problems += box_problems(bounds, start, f"starts[{k}]")
    InputError.raise_if_any(problems)
    minima: list[Minimum] = []
    for start in starts:
        try:
            minima.append(minimize(cost, bounds, start, method, budget=budget, watcher=watcher))
        except KeyboardInterrupt:  # before this start had a cost
            if not minima:
                raise
            diagnostics = (*minima[-1].diagnostics, _interruptions(True))
            minima[-1] = replace(minima[-1], interrupted=True, diagnostics=diagnostics)
        if minima[-1].interrupted:
            break
    return tuple(minima)


def _interruptions(interrupted: bool) -> Diagnostic:
    """Return the diagnostic of whether a search was interrupted."""
    return diagnostic(
        "interruptions",
        interrupted,
        at_most=0.0,
        advice="the best point so far is kept: continue the search from it",
    )


def checked_box(
    bounds: Mapping[str, tuple[float, float]], start: Sequence[float] | np.ndarray, budget: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bounds and start as arrays (n,).

    Raises:
        InputError: invalid bounds, start or budget; all problems at once.
    """
    problems = box_problems(bounds, np.asarray(start, dtype=float), "start")
    if budget < 1:
        problems.append(
            Problem(where="budget", what=f"is {budget}", remedy="allow at least one evaluation")
        )
    InputError.raise_if_any(problems)
    lower, upper = np.array([bounds[name] for name in bounds], dtype=float).T
    return lower, upper, np.array(start, dtype=float)


def box_problems(
    bounds: Mapping[str, tuple[float, float]], start: np.ndarray, where: str
) -> list[Problem]:
    """Return the problems of bounds and of a start (n,)."""
    if not bounds:
        return [
            Problem(
                where="bounds",
                what="are empty",
                remedy="give a lower and an upper bound for at least one parameter",
            )
        ]
    problems = Problems(
        Problem(
            where=f"bounds[{name!r}]",
            what=f"{low:g} to {high:g} is not a range",
            remedy="give two finite numbers, the lower one first",
        )
        for name, (low, high) in bounds.items()
        if not (np.isfinite([low, high]).all() and low < high)
    )
    if start.shape != (len(bounds),):
        parameters = counted(len(bounds), "parameter")
        what = f"has shape {start.shape}, but there are bounds of {parameters}"
        problems.add(where, what, f"give one number for each of {', '.join(bounds)}")
    elif not problems:
        problems += [
            Problem(
                where=f"{where}: {name}",
                what=f"{value:g} is outside its bounds {low:g} to {high:g}",
                remedy=f"start within the bounds, or widen them to include {value:g}",
            )
            for value, (name, (low, high)) in zip(start, bounds.items(), strict=True)
            if not low <= value <= high
        ]
    return problems


def _optimality_diagnostics(
    cost: BatchCost,
    best: np.ndarray,
    best_cost: float,
    costs: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> list[Diagnostic]:
    """Evaluate the best point again, and its neighbors along the axes, and return diagnostics."""
    offsets = NEIGHBOR * np.diag(upper - lower)
    neighbors = np.clip(np.concatenate([best + offsets, best - offsets]), lower, upper)
    points = np.concatenate([best[None], neighbors])
    new_costs = np.asarray(interruptible(cost, points), dtype=float)
    gain = best_cost - float(np.nanmin(new_costs))
    span = float(np.nanmax(costs)) - best_cost
    difference = None
    if np.isfinite(new_costs[0]):
        difference = abs(float(new_costs[0]) - best_cost) / max(abs(best_cost), 1e-300)
    return [
        diagnostic(
            "difference when the best point is evaluated again",
            difference,
            at_most=1e-9,
            advice="the cost function is not deterministic: fix the seed of its random numbers",
        ),
        diagnostic(
            f"largest cost decrease by moving one parameter by {NEIGHBOR:.0%} of its range, "
            "relative to the cost range",
            gain / span if span > 0 else 0.0,
            at_most=NEIGHBOR_GAIN,
            advice="this is not a minimum: continue the search from the best point, or use another "
            "method",
        ),
    ]
