"""The settings of a tuning experiment, read from its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tauloop.drives.criteria import Criteria, weighted_sum, weighted_worst
from tauloop.drives.plant_fit import Observation, Unknown
from tauloop.drives.sensitivity import SensitiveAxis
from tauloop.drives.simulation import Axis, Stepping, simulate_axis
from tauloop.drives.tuning_evaluations import BatchCost
from tauloop.drives.tuning_methods import SQP, Genetic, Gradient, Method, NelderMead, PatternSearch
from tauloop.reproduce.experiments import Experiment

#: Of all simulations here: costs that weigh an overshoot of 0.1 mm as one change by some 1e-4 with tighter ones.
STEPPING = Stepping(max_steps=100_000)
#: Runs of a batch are shared out over this many cores.
THREADS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A printed optimum: its cost and where it is."""

    cost: float
    best: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start with its printed cost and the printed optimum of each method."""

    at: tuple[float, ...]
    cost: float
    printed: Mapping[str, Printed]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One table of the paper.

    Attributes:
        name, about: of the table.
        bounds: by name of the tuned parameter.
        fixed: other parameters of the drive line.
        step: of the reference, m.
        weights: by criterion.
        combine: "sum" or "worst".
        grid: points along each tuned parameter.
        starts: where the searches began.
    """

    name: str
    about: str
    bounds: Mapping[str, tuple[float, float]]
    fixed: Mapping[str, float]
    step: float
    weights: Mapping[str, float]
    combine: str
    grid: tuple[int, ...]
    starts: tuple[Start, ...]

    def criteria(
        self,
        axis: Axis,
        points: np.ndarray,
        plant: Mapping[str, np.ndarray] | None = None,
        stepping: Stepping = STEPPING,
    ) -> Criteria:
        """Criteria of tuned parameters (N, n), on the file's plant or on others (N,) by parameter."""
        tuned = dict(zip(self.bounds, points.T, strict=True))
        return simulate_axis(axis, {**self.fixed, **tuned, **(plant or {})}, step=self.step, stepping=stepping)

    def combined(self, criteria: Criteria) -> np.ndarray:
        """Costs (N,); NaN where a run failed."""
        combine = {"sum": weighted_sum, "worst": weighted_worst}[self.combine]
        return np.where(criteria.failed, np.nan, combine(criteria, self.weights))

    def gradient(self, axis: SensitiveAxis) -> Gradient:
        """Gradient of the cost by the tuned parameters (which `axis` was made for), of one point (n,)."""

        def at(point: np.ndarray) -> np.ndarray:
            given = {**self.fixed, **dict(zip(self.bounds, map(float, point), strict=True))}
            found = axis.gradients(given, step=self.step, stepping=STEPPING)
            return found.weighted_worst(self.weights) if self.combine == "worst" else found.weighted_sum(self.weights)

        return at

    def cost(self, axis: Axis, stepping: Stepping = STEPPING) -> BatchCost:
        """The cost of tuned parameters."""
        return lambda points: self.combined(self.criteria(axis, points, stepping=stepping))


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSettings:
    """Everything that the paper says or leaves open.

    Attributes:
        line: the drive line.
        seed: of all random numbers.
        studies: the paper's tables.
        before, after: switching parameters and printed energies of the paper's conclusion.
        budget: most evaluations of one search.
        genetic: population and generations of the genetic algorithm.
        front: population and generations of the Pareto front.
        scatter: relative scatter by parameter of the plant.
        scatter_samples: random plants.
        choices: what the paper leaves open.
        unknowns: what the fit of the plant was to find.
        found: values of those that the drive line does not hold.
        observations: what it was fitted to, and what was held out.
    """

    line: str
    seed: int
    studies: tuple[Study, ...]
    before: Printed
    after: Printed
    budget: int
    genetic: tuple[int, int]
    front: tuple[int, int]
    scatter: Mapping[str, float]
    scatter_samples: int
    choices: tuple[str, ...]
    unknowns: tuple[Unknown, ...]
    found: Mapping[str, float]
    observations: tuple[Observation, ...]

    def shares(self, axis: Axis) -> np.ndarray:
        """Where the shipped plant lies in the ranges of the unknowns (n,)."""
        held = dict(zip(axis.names, axis.nominal, strict=True)) | dict(self.found)
        return np.array([unknown.share(float(held[unknown.name])) for unknown in self.unknowns])

    def methods(self) -> Mapping[str, Method]:
        """The methods by their names in the experiment's file."""
        return {
            "pattern search": PatternSearch(),
            "SQP": SQP(),
            "simplex": NelderMead(),
            "genetic": Genetic(seed=self.seed, population=self.genetic[0], generations=self.genetic[1]),
        }


def drive_settings(experiment: Experiment) -> DriveSettings:
    """The settings of an experiment's file."""
    given = experiment.settings
    unknowns = given["unknowns"]
    found = {name: float(item["found"]) for name, item in unknowns.items() if "found" in item}
    return DriveSettings(
        line=given["line"],
        seed=given["seed"],
        studies=tuple(_study(item, found) for item in given["studies"]),
        before=_energy(given["saving"]["before"]),
        after=_energy(given["saving"]["after"]),
        budget=given["budget"],
        genetic=(given["genetic"]["population"], given["genetic"]["generations"]),
        front=(given["pareto"]["population"], given["pareto"]["generations"]),
        scatter=given["scatter"],
        scatter_samples=given["scatter_samples"],
        choices=tuple(given["choices"]),
        unknowns=tuple(
            Unknown(
                name=name,
                lower=float(item["range"][0]),
                upper=float(item["range"][1]),
                logarithmic=item["logarithmic"],
            )
            for name, item in unknowns.items()
        ),
        found=found,
        observations=(_nominal(given), *_switching(given), *_optima(given)),
    )


def _nominal(given: Mapping[str, Any]) -> Observation:
    printed = {name: float(value) for name, value in given["nominal"]["printed"].items()}
    return Observation(
        name="nominal gains",
        parameters=given["nominal"]["parameters"],
        step=given["nominal"]["step"],
        printed=printed,
        tolerances={name: given["tolerances"][name] * value for name, value in printed.items()},
        weights={},
    )


def _switching(given: Mapping[str, Any]) -> list[Observation]:
    """Energies and overshoots of the switching study; the last study's weights turn them into SI."""
    weights, rows = given["studies"][-1]["weights"], given["switching"]["rows"]
    found = []
    for row in rows:
        printed = {name: float(row[name]) * weights[name] for name in ("energy", "overshoot")}
        found.append(
            Observation(
                name=f"switching at {tuple(row['at'])}",
                parameters={
                    **given["switching"]["parameters"],
                    **dict(zip(("switch_max", "switch_min"), row["at"], strict=True)),
                },
                step=given["switching"]["step"],
                printed=printed,
                tolerances={name: given["tolerances"][name] * value for name, value in printed.items()},
                weights={},
                held_out=row["held_out"],
            )
        )
    return found


def _optima(given: Mapping[str, Any]) -> list[Observation]:
    """Costs of the first study at its printed optima: the paper's own, not ours."""
    study = given["studies"][0]
    return [
        Observation(
            name=f"{study['name']}, {method}",
            parameters={**study["fixed"], **dict(zip(study["bounds"], item["best"], strict=True))},
            step=study["step"],
            printed={"cost": float(item["cost"])},
            tolerances={"cost": given["tolerances"]["cost"]},
            weights=study["weights"],
            held_out=method not in given["nominal"]["optima_fitted"],
        )
        for start in study["starts"]
        for method, item in start["printed"].items()
    ]


def _energy(given: Mapping[str, Any]) -> Printed:
    return Printed(cost=float(given["energy"]), best=tuple(map(float, given["at"])))


def _study(given: Mapping[str, Any], found: Mapping[str, float]) -> Study:
    def value(entry: float | str) -> float:
        return found[entry] if isinstance(entry, str) else float(entry)

    starts = []
    for start in given["starts"]:
        printed = {
            name: Printed(cost=float(item["cost"]), best=tuple(map(float, item["best"])))
            for name, item in start["printed"].items()
        }
        starts.append(Start(at=tuple(map(float, start["at"])), cost=float(start["cost"]), printed=printed))
    return Study(
        name=given["name"],
        about=given["about"],
        bounds={name: (float(low), float(high)) for name, (low, high) in given["bounds"].items()},
        fixed={name: value(entry) for name, entry in given["fixed"].items()},
        step=value(given["step"]),
        weights={name: float(weight) for name, weight in given["weights"].items()},
        combine=given["combine"],
        grid=tuple(given["grid"]),
        starts=tuple(starts),
    )
