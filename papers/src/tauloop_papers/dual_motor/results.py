"""Results of a tuning experiment: searches, tables, and designs over random plants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tauloop.drives import Record
from tauloop_papers.dual_motor.settings import Start, Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One cell of a table: a method from a start.

    Attributes:
        method: name of the method.
        start: start point.
        start_cost, cost: costs at the start and at the best point.
        start_parts, parts: parts of the cost at the start and at the best point: each criterion
            over its weight.
        best: the best point.
        evaluations: number of evaluations of the cost.
        descent: smallest cost after each evaluation.
        ending: why it ended.
        above: relative excess of its cost over the best known one (grid and all methods).
        printed_here: our cost at the printed optimum; None if it fails.
    """

    method: str
    start: Start
    start_cost: float
    cost: float
    start_parts: tuple[float, ...]
    parts: tuple[float, ...]
    best: tuple[float, ...]
    evaluations: int
    descent: tuple[float, ...]
    ending: str
    above: float
    printed_here: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The results of one study.

    Attributes:
        study: the study.
        searches: every method from every start.
        grid_axes: values of the tuned parameters.
        grid_costs: costs on the grid, flat, the last parameter fastest; None where a run failed.
        grid_cost, grid_best: the smallest cost, and its point.
        minima: number of grid points without a better neighbor.
        refined: difference of the best cost with a hundred times tighter tolerances.
    """

    study: Study
    searches: tuple[Search, ...]
    grid_axes: tuple[np.ndarray, ...]
    grid_costs: tuple[float | None, ...]
    grid_cost: float
    grid_best: tuple[float, ...]
    minima: int
    refined: float

    @property
    def best(self) -> Search:
        """The search with the least cost."""
        return min(self.searches, key=lambda search: search.cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Costs of a design over random plants.

    Attributes:
        name: name of the design.
        at: tuned parameters.
        quantiles: 5, 50 and 95 % quantiles of the cost; None if too many plants fail.
        failures: share of plants without a cost.
    """

    name: str
    at: tuple[float, ...]
    quantiles: tuple[float | None, ...]
    failures: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycling:
    """Figure 8: steps of one plant with one motor and with both.

    Attributes:
        records: the steps by the use of the motors.
        later: times (T,), s, of a longer run, and errors (T,) of the cart by the use of the motors,
            m.
        swings: oscillation of the cart in the last quarter of an even longer run, m, likewise.
        duration: duration of that run, s.
        gap: play of a rack, m.
        overshoot: overshoot with both motors, as a share of the step.
    """

    records: Mapping[str, Record]
    later: tuple[np.ndarray, Mapping[str, np.ndarray]]
    swings: Mapping[str, float]
    duration: float
    gap: float
    overshoot: float


def slave_share(record: Record) -> float:
    """Return the share of the slave in the energy of both motors up to the rise time."""
    early = record.time <= record.criteria.rise_time[0]
    master, slave = (
        np.trapezoid(record.signal(f"drive{k}.torque")[early] ** 2, record.time[early])
        for k in (1, 2)
    )
    return float(slave / (master + slave))
