"""Pareto front of two or more criteria, and robustness of an optimum.

Source: Deb, Pratap, Agarwal and Meyarivan 2002, A fast and elitist multiobjective genetic
algorithm: NSGA-II.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.execution.interrupts import interruptible
from tauloop.common.names.deprecated import old_attribute
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.drives.tuning.evaluations import PENALTY_WITHOUT_COST
from tauloop.drives.tuning.methods import pymoo_module, run_generations
from tauloop.drives.tuning.search import checked_box

#: Function that returns the criteria (N, k), to be minimized, of points (N, n).
BatchCriteria: TypeAlias = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParetoFront(ReprMixin):
    """Points for which no criterion can be improved without making another worse.

    Attributes:
        names: names of the parameters (n).
        points: points of the front (m, n), sorted by the first criterion.
        criteria: criteria of these points (m, k).
        criteria_names: names of the criteria (k).
    """

    names: tuple[str, ...]
    criteria_names: tuple[str, ...]
    points: np.ndarray
    criteria: np.ndarray

    of = old_attribute("of", "criteria_names")


def pareto_front(
    criteria: BatchCriteria,
    bounds: Mapping[str, tuple[float, float]],
    *,
    of: tuple[str, ...] = ("first", "second"),
    seed: int = 0,
    population: int = 60,
    generations: int = 40,
) -> ParetoFront:
    """Return the Pareto front by NSGA-II (Deb et al. 2002) as implemented in pymoo.

    A generation is evaluated in one call, and the result is reproducible with the same seed.

    Args:
        criteria: function of points (N, n) to criteria (N, k); a point whose criteria are not
            finite is never on the front.
        bounds: lower and upper bound by name.
        of: names of the criteria (k).
        seed: seed of the random numbers.
        population: number of points in a generation.
        generations: number of generations.

    Raises:
        InputError: the bounds are empty, or no point has finite criteria.
        EngineError: pymoo is not installed.
    """
    middle = [0.5 * (low + high) for low, high in bounds.values()]
    lower, upper, _ = checked_box(bounds, middle, population)

    def with_penalty(unit_points: np.ndarray) -> np.ndarray:
        """Return the criteria at points of the unit box, with a penalty for failures."""
        points = lower + unit_points * (upper - lower)
        values = np.asarray(interruptible(criteria, points), dtype=float)
        is_finite = np.isfinite(values).all(axis=1, keepdims=True)
        return np.where(is_finite, values, PENALTY_WITHOUT_COST)

    first_generation = np.random.default_rng(seed).random((population, len(middle)))
    nsga = pymoo_module("pymoo.algorithms.moo.nsga2").NSGA2(
        pop_size=population, sampling=first_generation
    )
    result = run_generations(nsga, with_penalty, (len(middle), len(of)), seed, generations)
    unit_points, values = np.atleast_2d(result.X), np.atleast_2d(result.F)
    order = np.lexsort(values.T[::-1])
    if values[order[0], 0] >= PENALTY_WITHOUT_COST:
        what = f"no finite criteria in {population * generations} evaluations"
        raise InputError.of("criteria", what, "narrow the bounds to points with finite criteria")
    return ParetoFront(
        names=tuple(bounds),
        criteria_names=of,
        points=lower + unit_points[order] * (upper - lower),
        criteria=values[order],
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Robustness(ReprMixin):
    """Costs of designs over random plants.

    Attributes:
        costs: costs (designs, samples); NaN where a cost is not finite.
    """

    costs: np.ndarray

    @property
    def failures(self) -> np.ndarray:
        """Fraction of the plants with which each design has no finite cost (designs,)."""
        return np.asarray(np.mean(~np.isfinite(self.costs), axis=1))

    def quantiles(self, shares: tuple[float, ...] = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Return the quantiles of the costs over the plants (designs, len(shares)).

        A failure counts as an infinite cost.

        Args:
            shares: fractions (probabilities) of the quantiles.
        """
        costs = np.where(np.isfinite(self.costs), self.costs, np.inf)
        return np.quantile(costs, shares, axis=1, method="higher").T


def robustness(
    cost: Callable[[np.ndarray, np.ndarray], np.ndarray],
    designs: np.ndarray,
    nominal: np.ndarray,
    spread: np.ndarray,
    *,
    samples: int,
    generator: np.random.Generator,
) -> Robustness:
    """Return the costs of designs over plants with scattered parameters.

    The scatter is log-normal, since parameters are positive: p = nominal · exp(spread · z), with z
    standard normal. The plants are the same for all designs.

    Args:
        cost: function of designs (N, n) and plants (N, k) to costs (N,).
        designs: parameters of the designs (D, n).
        nominal: nominal parameters of the plant (k,), positive.
        spread: standard deviations of the logarithms of the parameters (k,): about their relative
            standard deviations.
        samples: number of plants.
        generator: generator of the random numbers.

    Raises:
        InputError: shapes that do not fit, nominal values that are not positive, or negative
            spreads.
    """
    designs = np.atleast_2d(designs)
    nominal = np.asarray(nominal, float)
    spread = np.asarray(spread, float)
    problems = Problems()
    if nominal.ndim != 1 or nominal.shape != spread.shape:
        what = f"have shapes {nominal.shape} and {spread.shape}"
        problems.add("nominal, spread", what, "give one spread for each parameter")
    if not (nominal > 0).all():
        problems.add(
            "nominal", f"contains {nominal.min():g}, which is not positive", "give positive values"
        )
    if not (spread >= 0).all():
        problems.add(
            "spread", f"contains {spread.min():g}, which is negative", "give values of 0 or more"
        )
    if samples < 1:
        problems.add("samples", f"is {samples}", "give 1 or more")
    InputError.raise_if_any(problems)
    plants = nominal * np.exp(spread * generator.standard_normal((samples, len(nominal))))
    costs = cost(np.repeat(designs, samples, axis=0), np.tile(plants, (len(designs), 1)))
    return Robustness(costs=np.asarray(costs, float).reshape(len(designs), samples))
