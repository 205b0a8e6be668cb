"""Search methods on the unit box: pattern search, SQP, Nelder–Mead and a genetic algorithm.

Source: Hooke and Jeeves 1961, Direct search solution of numerical and statistical problems; Nelder
and Mead 1965, A simplex method for function minimization.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeAlias, final

import numpy as np
from scipy.optimize import minimize

from tauloop.common.errors import EngineError, Problems
from tauloop.common.execution.interrupts import interruptible
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.drives.tuning.evaluations import Evaluations, box_differences

#: Gradient (n,) of a cost at a point (n,), in the units of the bounds.
Gradient: TypeAlias = Callable[[np.ndarray], np.ndarray]


class SearchMethod(Options, ABC):
    """A method that minimizes a cost within bounds; its attributes are options."""

    __slots__ = ()

    @abstractmethod
    def search(self, evaluations: Evaluations, start: np.ndarray) -> str:
        """Search from `start` (n,) in the unit box; `evaluations` keeps all evaluated points.

        Returns:
            The reason why the search ended, as a sentence without a full stop.

        Raises:
            BudgetSpentError: no evaluation is left.
        """


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PatternSearch(SearchMethod):
    """Direct search by the pattern moves of Hooke and Jeeves, with a full poll of the axes.

    The 2 n neighbors of the best point along all axes are evaluated at once. After a successful
    move the point that repeats this move and its neighbors are evaluated too. The search continues
    from the best of these points; if none is better, the step is halved. For smooth costs the limit
    is stationary as the step tends to zero (Torczon 1997, theorem 3.3). Nothing is random.

    Unlike pymoo's pattern search, which evaluates one point at a time, this search evaluates all
    points of a step in one batch, and its order does not depend on random numbers.

    Attributes:
        step: first step, as a fraction of the range of each parameter.
        tolerance: the search ends when the step is below this fraction of the range.
    """

    step: float = option(0.25, above=0.0, most=1.0)
    tolerance: float = option(1e-4, above=0.0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Add a problem if the tolerance is above the first step."""
        _note_early_end(self.tolerance, "step", self.step, problems)

    def search(self, evaluations: Evaluations, start: np.ndarray) -> str:
        """See `SearchMethod`."""
        axes = np.concatenate([np.eye(len(start)), -np.eye(len(start))])
        best = start
        cost = float(evaluations.at(start)[0])
        step = self.step
        move = np.zeros(len(start))
        while step >= self.tolerance:
            poll = best + step * axes
            if move.any():
                poll = np.concatenate([poll, (best + move)[None], best + move + step * axes])
            poll = np.clip(poll, 0.0, 1.0)
            poll = poll[(poll != best).any(axis=1)]
            costs = evaluations.at(poll)
            least = int(np.argmin(costs))
            if costs[least] < cost:
                move = poll[least] - best
                best = poll[least]
                cost = float(costs[least])
            else:
                move = np.zeros(len(start))
                step /= 2
        return f"the step fell below {self.tolerance:g} of the range"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SQP(SearchMethod):
    """SciPy's SLSQP, with a gradient function or with central differences in one batch.

    Differences are one-sided at a bound. They also replace gradients that are not finite.

    Attributes:
        gradient: function that returns the gradient of the cost, such as one with
            `tauloop.drives.axis.sensitivity`; default: finite differences.
        difference: distance of the evaluated points from the center, as a fraction of the range;
            large enough that the noise of a simulation does not matter.
        tolerance: the search ends when the cost changes by less than this.
        iterations: maximum number of iterations.
    """

    gradient: Gradient | None = field(default=None, repr=False)
    difference: float = option(1e-3, above=0.0, most=0.5)
    tolerance: float = option(1e-7, above=0.0)
    iterations: int = option(100, least=1)

    def search(self, evaluations: Evaluations, start: np.ndarray) -> str:
        """See `SearchMethod`."""

        def unit_box_gradient(x: np.ndarray) -> np.ndarray:
            if self.gradient is not None:
                gradient = interruptible(self.gradient, evaluations.point(x))
                gradient = np.asarray(gradient, dtype=float) * evaluations.span
                if np.isfinite(gradient).all():
                    return gradient
            return box_differences(evaluations.at, x, self.difference)

        solution = minimize(
            lambda x: float(evaluations.at(x)[0]),
            start,
            jac=unit_box_gradient,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * len(start),
            options={"ftol": self.tolerance, "maxiter": self.iterations},
        )
        return str(solution.message) + (", gradients given" if self.gradient is not None else "")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NelderMead(SearchMethod):
    """SciPy's simplex search of Nelder and Mead within bounds, with restarts.

    Points outside the bounds are moved to the bound, which can flatten the simplex and end the
    search too early. A restart with a new simplex continues it.

    Attributes:
        simplex: edge of the first simplex, as a fraction of the range.
        tolerance: edge of the simplex at which a search ends, as a fraction of the range.
        restarts: maximum number of restarts; the search ends earlier if a restart does not reduce
            the cost.
    """

    simplex: float = option(0.05, above=0.0, most=0.5)
    tolerance: float = option(1e-4, above=0.0)
    restarts: int = option(5, least=0)

    def _note_mismatches(self, problems: Problems) -> None:
        """Add a problem if the tolerance is above the first simplex."""
        _note_early_end(self.tolerance, "simplex", self.simplex, problems)

    def search(self, evaluations: Evaluations, start: np.ndarray) -> str:
        """See `SearchMethod`."""
        solution = self._simplex(evaluations, start)
        for _ in range(self.restarts):
            before, solution = solution, self._simplex(evaluations, solution.x)
            if not solution.fun < before.fun:
                break
        return str(solution.message).rstrip(".")

    def _simplex(self, evaluations: Evaluations, start: np.ndarray) -> Any:
        """Return SciPy's result of one search."""
        # the edges of the simplex point away from a bound that is too close
        edges = np.where(start + self.simplex <= 1.0, self.simplex, -self.simplex)
        return minimize(
            lambda x: float(evaluations.at(x)[0]),
            start,
            method="Nelder-Mead",
            bounds=[(0.0, 1.0)] * len(start),
            options={
                "initial_simplex": np.concatenate([start[None], start + np.diag(edges)]),
                "xatol": self.tolerance,
                "fatol": np.inf,
                "maxiter": 1000 * len(start),
                "maxfev": np.inf,
            },
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Genetic(SearchMethod):
    """pymoo's genetic algorithm: tournaments, simulated binary crossover, polynomial mutation.

    The start is a member of the first generation; the others are uniformly random within the
    bounds.

    Attributes:
        seed: seed of the random numbers.
        population: number of points in a generation, which are evaluated at once.
        generations: number of generations.
    """

    seed: int = option(0, least=0)
    population: int = option(32, least=4)
    generations: int = option(25, least=1)

    def search(self, evaluations: Evaluations, start: np.ndarray) -> str:
        """See `SearchMethod`."""
        first = np.random.default_rng(self.seed).random((self.population, len(start)))
        first[0] = start
        genetic = pymoo_module("pymoo.algorithms.soo.nonconvex.ga").GA(
            pop_size=self.population, sampling=first
        )
        run_generations(genetic, evaluations.at, (len(start), 1), self.seed, self.generations)
        return f"{self.generations} generations of {self.population} are done"


def run_generations(
    algorithm: Any, costs: Any, sizes: tuple[int, int], seed: int, generations: int
) -> Any:
    """Run an algorithm of pymoo on the unit box, with one call of `costs` for each generation.

    Args:
        algorithm: algorithm of pymoo.
        costs: function of points (N, n) of the unit box to costs (N,) or (N, k).
        sizes: n and k.
        seed: seed of the random numbers.
        generations: number of generations.

    Returns:
        pymoo's result, with the best points X and their costs F.
    """
    unit_box = pymoo_module("pymoo.core.problem").Problem(
        n_var=sizes[0], n_obj=sizes[1], xl=0.0, xu=1.0
    )
    algorithm.setup(unit_box, termination=("n_gen", generations), seed=seed, verbose=False)
    static = pymoo_module("pymoo.problems.static").StaticProblem
    evaluator = pymoo_module("pymoo.core.evaluator").Evaluator()
    while algorithm.has_next():
        offspring = algorithm.ask()
        values = np.asarray(costs(offspring.get("X"))).reshape(len(offspring), sizes[1])
        evaluator.eval(static(unit_box, F=values), offspring)
        algorithm.tell(infills=offspring)
    return algorithm.result()


def pymoo_module(name: str) -> Any:
    """Return a module of pymoo, which is optional.

    Raises:
        EngineError: pymoo is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EngineError.of(
            "pymoo", f"cannot be imported ({error})", "pip install 'tauloop[tuning]'"
        ) from error


def _note_early_end(tolerance: float, length: str, value: float, problems: Problems) -> None:
    """Add a problem if the tolerance exceeds the first value of a length of the search."""
    if tolerance > value:
        problems.add(
            "tolerance",
            f"{tolerance:g} is larger than the first {length}, {value:g}",
            "give a smaller tolerance",
        )
