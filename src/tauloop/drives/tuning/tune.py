"""Tuning of a drive line's control: smallest cost of step responses, and Pareto fronts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, fields, replace
from typing import Any, cast

import numpy as np

from tauloop.common.datasets import Variable, rows
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.keywords import keywords
from tauloop.common.options import Options, option
from tauloop.common.plain import OMITTED, in_json, json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result, plain, provenance
from tauloop.drives.axis.sensitivity import DIFFERENTIABLE, SensitiveAxis
from tauloop.drives.axis.simulation import LINE_INTEGRATOR, Axis, simulate_axis
from tauloop.drives.criteria import (
    NAMES,
    Criteria,
    criteria_units,
    scaled,
    scaled_sum,
    scaled_worst,
    scales_in_si,
)
from tauloop.drives.machine.lines import MOTORS, with_motors
from tauloop.drives.parameter_values import (
    ParameterRange,
    ranges_in_si,
    ranges_reader,
    values_in_si,
)
from tauloop.drives.tuning.evaluations import Watcher
from tauloop.drives.tuning.methods import (
    SQP,
    Genetic,
    Gradient,
    NelderMead,
    PatternSearch,
    SearchMethod,
)
from tauloop.drives.tuning.pareto import ParetoFront, pareto_front
from tauloop.drives.tuning.search import BUDGET, Minimum, box_problems, minimize_from
from tauloop.mechanism.description import units
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.drive_line import DriveLine
from tauloop.mechanism.suggestions import unknown_names

#: Functions that combine the criteria, each divided by its scale, into one cost.
COMBINATIONS = {"sum": scaled_sum, "worst": scaled_worst}
#: Methods by name.
METHODS: Mapping[str, SearchMethod] = {
    "pattern": PatternSearch(),
    "sqp": SQP(),
    "simplex": NelderMead(),
    "genetic": Genetic(),
}
#: A tuned parameter closer to a bound than this fraction of its range is reported as on the bound.
ON_BOUND = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningOptions(Options):
    """Tuned parameters, cost, and options of the search.

    Attributes:
        bounds: range of each tuned parameter of the drive line, such as 'kp=100:300' (SI) or
            'gap=0.1mm:2mm'.
        scales: criteria of the cost, each with its scale, the value that counts as acceptable,
            such as 'rise_time=1.7' (SI) or 'overshoot=0.5mm'.
        combine: how the scaled criteria are combined into one cost.
        search: method of the search.
        exact_gradients: use exact gradients (sensitivities) in SQP instead of finite differences.
        initial: initial guess of the search, such as 'kp=200'; default: the values of the drive
            line.
        starts: number of searches; all but the first start at random points within the bounds.
        values: change parameters for this run, such as 'gap=1mm,kp=250' (SI, or with units).
        motor_setup: how the motors are used: `as-written` (as in the file), `preloaded` (the slave
            always pulls against the master) or `one` (without the slave).
        step: size of the reference step, such as 0.1 (m or rad) or 5mm.
        duration: duration of the simulated step, such as 10 or 10s.
        load: load on the controlled body, N or N m.
        load_time: start time of the load, such as 0.5s.
        budget: maximum number of evaluations of one search.
        pareto: also compute the Pareto front of the scaled criteria (NSGA-II).
        population: number of members of a generation.
        generations: number of generations of the Pareto front.
        seed: seed of all random numbers.
        tolerance: relative tolerance of an integration step.
        workers: number of parallel workers; no result depends on it.

    Examples:
        >>> import tauloop as tl
        >>> tl.TuningOptions(bounds={"kp": (100.0, 300.0)}, scales={"rise_time": 1.7}, budget=80).scales
        {'rise_time': 1.7}
    """

    bounds: Mapping[str, ParameterRange] = option(
        factory=dict,
        read=ranges_reader("bounds", "kp=100:300"),
        repeated=True,
        metavar="NAME=LOW:HIGH",
    )
    scales: Mapping[str, float | str] = option(factory=dict)
    combine: str = option("sum", choices=tuple(COMBINATIONS))
    search: SearchMethod = option(METHODS["pattern"], named=METHODS)
    exact_gradients: bool = False
    initial: Mapping[str, float | str] = option(factory=dict)
    starts: int = option(1, least=1)
    values: Mapping[str, float | str] = option(factory=dict, flag="--set")
    motor_setup: str = option(MOTORS[0], choices=MOTORS)
    step: float = option(0.1, metavar="QUANTITY", unit=units.POSITIONS)
    duration: float = option(10.0, metavar="TIME", unit=units.TIME)
    load: float = option(0.0, metavar="QUANTITY", unit=units.FORCES)
    load_time: float = option(0.0, metavar="TIME", unit=units.TIME)
    budget: int = option(BUDGET, least=1)
    pareto: bool = False
    population: int = option(40, least=4)
    generations: int = option(20, least=1)
    seed: int = option(0, least=0)
    tolerance: float = option(1e-7)
    workers: int = option(1, least=1, flag="--workers -j", metavar="N")

    def _note_mismatches(self, problems: Problems) -> None:
        """Add a problem for each combination of options that is not possible."""
        if not self.scales:
            problems.add(
                "scales",
                "no criterion has a scale",
                f"give a scale for at least one of {', '.join(NAMES)}",
            )
        problems += unknown_names(self.scales, NAMES, "no criterion {!r}", "scales")
        if self.pareto and len(self.scales) < 2:
            problems.add(
                "pareto",
                f"needs two or more scaled criteria, got {len(self.scales)}",
                "give scales for two or more",
            )
        if self.exact_gradients and not isinstance(self.search, SQP):
            problems.add(
                "exact_gradients",
                "only the method sqp uses gradients",
                "choose sqp, or leave out `exact_gradients`",
            )
        if self.exact_gradients and self.load:
            problems.add(
                "exact_gradients",
                "are not available for a step with a load",
                "leave out `load` or `exact_gradients`",
            )
        if self.exact_gradients and (
            others := [name for name in self.scales if name not in DIFFERENTIABLE]
        ):
            problems.add(
                "exact_gradients",
                f"{', '.join(others)} cannot be differentiated",
                f"remove {', '.join(others)} from the scales, or leave out `exact_gradients`",
            )
        for name in sorted({*self.bounds} & {*self.values}):
            problems.add(
                "values",
                f"{name} is tuned, because it has bounds",
                "remove its bounds, or give the value in `initial`",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning(Result):
    """Tuned parameters of a drive line, the searches that found them, and the criteria.

    Attributes:
        drive_line: name of the drive line.
        start, best: tuned parameters at the first start and at the best point, SI.
        cost, start_cost: cost at the best point and at the first start; the latter is NaN if the
            loop is unstable there.
        before, after: criteria at the first start and at the best point, by name, SI.
        searches: searches from all starts, the one with the smallest cost first.
        front: Pareto front; None if it was not requested.
        findings: parameters that end on a bound, and a front that was interrupted.
        units: units of the tuned parameters and of the criteria, SI.
    """

    drive_line: str
    start: Mapping[str, float]
    best: Mapping[str, float]
    cost: float
    start_cost: float = field(metadata=json_keys(nullable=True))
    before: Mapping[str, float] = field(metadata=OMITTED)
    after: Mapping[str, float] = field(metadata=OMITTED)
    searches: tuple[Minimum, ...] = field(metadata=OMITTED)
    front: ParetoFront | None = field(metadata=OMITTED)
    findings: tuple[Problem, ...]
    units: Mapping[str, str]

    def variables(self) -> Iterator[Variable]:
        """Yield parameters and criteria before and after, and the costs of all searches."""
        start, best = list(self.start.values()), list(self.best.values())
        yield from rows(
            "parameter",
            self.best,
            [self.units[name] for name in self.best],
            start=start,
            best=best,
        )
        before, after = list(self.before.values()), list(self.after.values())
        yield from rows(
            "criterion",
            self.before,
            [self.units[name] for name in self.before],
            before=before,
            after=after,
        )
        yield Variable(
            name="cost", values=[search.cost for search in self.searches], over=("search",)
        )

    @property
    @in_json()
    def criteria(self) -> dict[str, Mapping[str, float]]:
        """Criteria at the first start and at the best point."""
        return {"start": self.before, "best": self.after}

    @property
    @in_json("searches")
    def search_rows(self) -> list[dict[str, Any]]:
        """Start, best point, costs and termination reason of every search."""
        return [search.summary for search in self.searches]

    @property
    @in_json("front")
    def front_rows(self) -> list[dict[str, Any]] | None:
        """Points (tuned parameters) of the front with their criteria; None without a front."""
        front, names = self.front, tuple(self.best)
        if front is None:
            return None
        return [
            {
                "at": dict(zip(names, point, strict=True)),
                "criteria": dict(zip(front.criteria_names, criteria, strict=True)),
            }
            for point, criteria in zip(front.points, front.criteria, strict=True)
        ]


@keywords(TuningOptions)
def tune_drive_line(
    line: DriveLine, options: TuningOptions, *, watcher: Watcher | None = None
) -> Tuning:
    """Tune a drive line's control: minimize the cost of its step responses.

    The cost is the sum or the largest of the criteria, each divided by its scale. A point of the
    search holds one value of each tuned parameter. At each point, the response to a step of the
    reference is simulated; if the control loop diverges, the cost is undefined (NaN). Ctrl-C ends
    the search at once with the best point so far.

    Args:
        line: the drive line.
        options: tuned parameters, cost and search.
        watcher: receives the number of evaluations and the smallest cost after every batch.

    Returns:
        The best values and their criteria, the history of the search, and the Pareto front if
        requested.

    Raises:
        InputError: invalid bounds, starts or parameters, or no point with a defined cost; all
            problems at once.
        EngineError: the genetic search or the front needs pymoo, which is not installed.

    Source: Dressler, Schiffer and Robertsson, Modeling and Control of a Parallel Robot Using
        Modelica, section 4.2.

    Examples:
        >>> import tauloop as tl
        >>> options = tl.TuningOptions(bounds={"kp": (190.0, 210.0)}, scales={"rise_time": 1.0}, budget=20)
        >>> tuned = tl.tune_drive_line(tl.drives.load_drive("dual_motor_axis"), options)
        >>> tuned.cost < tuned.start_cost
        True
    """
    options = replace(
        options,
        values=values_in_si(line.parameters, options.values, "values"),
        initial=values_in_si(line.parameters, options.initial, "initial"),
        bounds=ranges_in_si(line.parameters, options.bounds, "bounds"),
        scales=scales_in_si(line, options.scales),
    )
    line = with_motors(line, options.motor_setup)
    starts = _starts(line, options)
    method = options.search
    responses = _StepResponses(line, options)
    if options.exact_gradients:
        method = SQP(gradient=responses.gradient())
    searches = minimize_from(
        responses.cost, _bounds(options), starts, method, budget=options.budget, watcher=watcher
    )
    front = None
    with suppress(KeyboardInterrupt):  # keep the completed searches
        if options.pareto and not searches[-1].interrupted:
            front = pareto_front(
                responses.front_criteria,
                _bounds(options),
                of=tuple(options.scales),
                seed=options.seed,
                population=options.population,
                generations=options.generations,
            )
    best = min(searches, key=lambda search: search.cost)
    return Tuning(
        diagnostics=best.diagnostics,
        provenance=provenance(
            packages=("numpy", "scipy", "casadi", "pymoo"),
            options={item.name: _plain(getattr(options, item.name)) for item in fields(options)},
            inputs={"drive_line": line.name},
        ),
        drive_line=line.name,
        start=dict(zip(options.bounds, starts[0].tolist(), strict=True)),
        best=dict(zip(options.bounds, best.best.tolist(), strict=True)),
        cost=best.cost,
        start_cost=searches[0].start_cost,
        before=responses.recorded_criteria(searches[0].points[0]),
        after=responses.recorded_criteria(best.best),
        searches=tuple(sorted(searches, key=lambda search: search.cost)),
        front=front,
        findings=_findings(options, best, has_front=front is not None),
        units={name: si_unit(line.parameters[name].unit) for name in options.bounds}
        | criteria_units(line),
    )


class _StepResponses:
    """Simulates step responses at the points of a search; returns their costs and criteria.

    The options must already be in SI units.
    """

    def __init__(self, line: DriveLine, options: TuningOptions) -> None:
        self._line = line
        self._options = options
        runs = max(options.budget, options.generations * options.population)
        self._axis = Axis(line, threads=options.workers, runs=runs)
        self._values = _values(options)
        self._integrator = replace(
            LINE_INTEGRATOR, rtol=options.tolerance, atol=1e-2 * options.tolerance
        )
        self._smallest_cost = np.inf
        #: Criteria of the first point and of each point that was the best so far. Arrays are not
        #: hashable, so the keys are the bytes of the points.
        self._recorded_criteria: dict[bytes, Mapping[str, float]] = {}

    def recorded_criteria(self, point: np.ndarray) -> Mapping[str, float]:
        """Return the criteria, SI, of the first or the best point (n,) of a search."""
        return self._recorded_criteria[point.tobytes()]

    def criteria(self, points: np.ndarray) -> Criteria:
        """Return the criteria of the step responses at N points (N, n)."""
        options = self._options
        return simulate_axis(
            self._axis,
            {**self._values, **dict(zip(options.bounds, points.T, strict=True))},
            step=options.step,
            duration=options.duration,
            load=options.load,
            load_time=options.load_time,
            integrator=self._integrator,
        )

    def cost(self, points: np.ndarray) -> np.ndarray:
        """Return the costs (N,) of points (N, n); NaN where the control loop diverges."""
        criteria = self.criteria(points)
        costs = np.where(
            criteria.failed,
            np.nan,
            COMBINATIONS[self._options.combine](criteria, _scales(self._options)),
        )
        for k in range(len(points)):
            is_best = costs[k] < self._smallest_cost
            if is_best:
                self._smallest_cost = costs[k]
            if is_best or not self._recorded_criteria:
                self._recorded_criteria[points[k].tobytes()] = {
                    name: float(getattr(criteria, name)[k]) for name in NAMES
                }
        return costs

    def front_criteria(self, points: np.ndarray) -> np.ndarray:
        """Return the criteria that have a scale (N, k), in SI units (not divided by the scale)."""
        criteria = self.criteria(points)
        return np.where(
            criteria.failed[:, None],
            np.nan,
            scaled(criteria, dict.fromkeys(self._options.scales, 1.0)),
        )

    def gradient(self) -> Gradient:
        """Return a function that computes the gradient of the cost from sensitivities."""
        options = self._options
        sensitivity_model = SensitiveAxis(self._line, tuple(options.bounds), runs=options.budget)

        def gradient_at(point: np.ndarray) -> np.ndarray:
            values = {**self._values, **dict(zip(options.bounds, map(float, point), strict=True))}
            gradients = sensitivity_model.gradients(
                values, step=options.step, duration=options.duration, integrator=self._integrator
            )
            if options.combine == "worst":
                return gradients.scaled_worst(_scales(options))
            return gradients.scaled_sum(_scales(options))

        return gradient_at


def _bounds(options: TuningOptions) -> dict[str, tuple[float, float]]:
    """Return the bounds of options that are already in SI units."""
    return cast("dict[str, tuple[float, float]]", options.bounds)


def _values(options: TuningOptions) -> dict[str, float]:
    """Return the changed parameters of options that are already in SI units."""
    return cast("dict[str, float]", options.values)


def _scales(options: TuningOptions) -> dict[str, float]:
    """Return the scales of options that are already in SI units."""
    return cast("dict[str, float]", options.scales)


def _plain(value: object) -> object:
    """Return the value of an option for the provenance."""
    return repr(value) if isinstance(value, SearchMethod) else plain(value)


def _starts(line: DriveLine, options: TuningOptions) -> np.ndarray:
    """Return the start points (S, n) of the searches, for options that are already in SI units.

    Raises:
        InputError: unknown parameters, empty ranges, or a start outside its range.
    """
    known = line.parameters.values
    problems = Problems()
    remedy = f"use one of {', '.join(known)}"
    for where, names in (
        ("bounds", options.bounds),
        ("initial", options.initial),
        ("values", options.values),
    ):
        problems += unknown_names(names, known, "no parameter {!r}", where, remedy)
    for name in sorted(options.initial.keys() & known.keys() - options.bounds.keys()):
        problems.add("initial", f"{name} is not tuned", f"give bounds of {name}, or leave it out")
    InputError.raise_if_any(problems)
    initial = cast("dict[str, float]", options.initial)
    first = np.array([initial.get(name, known[name]) for name in options.bounds])
    InputError.raise_if_any(box_problems(_bounds(options), first, "initial"))
    lower, upper = np.array(list(_bounds(options).values())).T
    others = np.random.default_rng(options.seed).uniform(
        lower, upper, (options.starts - 1, len(first))
    )
    return np.concatenate([first[None], others])


def _findings(options: TuningOptions, best: Minimum, *, has_front: bool) -> tuple[Problem, ...]:
    """Return a finding for each parameter on a bound, and one for an interrupted front.

    The optimum may lie beyond the bound.
    """
    problems = Problems()
    if options.pareto and not has_front:
        problems.add(
            "pareto",
            "the search was interrupted before it had computed the front",
            "run again and let the search finish",
        )
    for (name, (low, high)), value in zip(_bounds(options).items(), best.best, strict=True):
        for end, distance in ((low, value - low), (high, high - value)):
            if distance <= ON_BOUND * (high - low):
                problems.add(
                    name,
                    f"ends on its bound {end:g}",
                    "widen the bound where the drive line allows it",
                )
    return tuple(problems)
