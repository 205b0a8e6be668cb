"""Section 4.2 of the paper with a plant that fits its tables, and our choices; SI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np

from tauloop.drives import (
    SQP,
    Axis,
    BatchCost,
    Criteria,
    Genetic,
    Gradient,
    NelderMead,
    PatternSearch,
    SearchMethod,
    SensitiveAxis,
    scaled_sum,
    scaled_worst,
    simulate_axis,
)
from tauloop.integrate import Integrator
from tauloop_papers.dual_motor import printed
from tauloop_papers.dual_motor.family import RUNS, STEP, STEPPING

#: Number of cores for the runs of a batch.
THREADS = 2
#: Results of the search (`tauloop_papers.dual_motor.search`).
FOUND: Mapping[str, Any] = json.loads(
    files("tauloop_papers.dual_motor").joinpath("found.json").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A printed optimum: its cost (for Table 3 both parts), and its point."""

    cost: float
    best: tuple[float, ...]
    parts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A start with its printed cost (Table 3: both parts), and printed optima by method."""

    at: tuple[float, ...]
    cost: float
    printed: Mapping[str, Printed]
    parts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """One table of the paper.

    Attributes:
        name, about: name and description of the table.
        bounds: bounds by name of the tuned parameter.
        fixed: other parameters of the drive line.
        motors: use of the motors.
        step: step of the reference, m.
        weights: weights by criterion.
        combine: "sum" or "worst".
        grid: number of points along each tuned parameter.
        starts: starts of the searches.
    """

    name: str
    about: str
    bounds: Mapping[str, tuple[float, float]]
    fixed: Mapping[str, float]
    motors: str
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
        integrator: Integrator = STEPPING,
    ) -> Criteria:
        """Return criteria of tuned parameters (N, n), for the line's plant or others (N,)."""
        values = {**self.fixed, **dict(zip(self.bounds, points.T, strict=True)), **(plant or {})}
        return simulate_axis(
            axis.with_motors(self.motors), values, step=self.step, integrator=integrator
        )

    def combined(self, criteria: Criteria) -> np.ndarray:
        """Return costs (N,); NaN if a run failed."""
        combine = {"sum": scaled_sum, "worst": scaled_worst}[self.combine]
        return np.where(criteria.failed, np.nan, combine(criteria, self.weights))

    def parts(self, axis: Axis, points: np.ndarray) -> np.ndarray:
        """Return the parts of the costs of points (N, n): each criterion over its weight (N, k)."""
        criteria = self.criteria(axis, points)
        return np.stack(
            [getattr(criteria, name) / weight for name, weight in self.weights.items()], axis=1
        )

    def gradient(self, axis: Axis) -> Gradient:
        """Return the gradient of the cost by the tuned parameters at a point (n,)."""
        sensitive = SensitiveAxis(axis.with_motors(self.motors).line, tuple(self.bounds), runs=RUNS)

        def at(point: np.ndarray) -> np.ndarray:
            values = {**self.fixed, **dict(zip(self.bounds, map(float, point), strict=True))}
            gradients = sensitive.gradients(values, step=self.step, integrator=STEPPING)
            return (gradients.scaled_worst if self.combine == "worst" else gradients.scaled_sum)(
                self.weights
            )

        return at

    def cost(self, axis: Axis, integrator: Integrator = STEPPING) -> BatchCost:
        """Return the cost of tuned parameters."""
        return lambda points: self.combined(self.criteria(axis, points, integrator=integrator))


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveSettings:
    """Values of the paper, and our choices.

    Attributes:
        line: the drive line.
        seed: seed of all random numbers.
        studies: the paper's tables.
        before, after: switching parameters and printed energies of the paper's conclusion.
        budget: maximum number of evaluations of one search.
        genetic: population and generations of the genetic algorithm.
        front: population and generations of the Pareto front.
        scatter: relative scatter by parameter of the plant.
        scatter_samples: number of random plants.
        choices: our choices that the paper leaves open.
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

    def methods(self) -> Mapping[str, SearchMethod]:
        """Return the methods by the paper's names."""
        return {
            "pattern search": PatternSearch(),
            "SQP": SQP(),
            "simplex": NelderMead(),
            "genetic": Genetic(
                seed=self.seed, population=self.genetic[0], generations=self.genetic[1]
            ),
        }


METHODS = ("pattern search", "SQP", "simplex", "genetic")
TABLE_1 = Study(
    name="Table 1",
    about="rise time, overshoot and settling time by (K_p, T_i, T_d), v = -1",
    bounds={"kp": (100, 300), "ti": (0.5, 2), "td": (0.01, 0.1)},
    fixed={"feed_forward_share": FOUND["best"]["first_share"]},
    motors="preloaded",
    step=FOUND["best"]["first_step"],
    weights=printed.WEIGHTS,
    combine="sum",
    grid=(13, 11, 9),
    starts=(
        Start(
            at=(200, 1.5, 0.05),
            cost=3.00354,
            printed={
                name: Printed(cost=cost, best=at) for name, (cost, at) in printed.TABLE_1.items()
            },
        ),
    ),
)


def _start(
    at: tuple[float, float], cost: float, rows: tuple[tuple[float, tuple[float, float]], ...]
) -> Start:
    pairs = zip(METHODS, rows, strict=True)
    return Start(
        at=at,
        cost=cost,
        printed={name: Printed(cost=value, best=best) for name, (value, best) in pairs},
    )


def _both(
    start: tuple[tuple[float, float], tuple[float, float]],
    rows: tuple[tuple[tuple[float, float], tuple[float, float]], ...],
) -> Start:
    optima = [Printed(cost=max(parts), best=best, parts=parts) for parts, best in rows]
    parts, at = start
    return Start(
        at=at, cost=max(parts), printed=dict(zip(METHODS, optima, strict=True)), parts=parts
    )


TABLE_2 = Study(
    name="Table 2",
    about="energy and overshoot added (eq. 2), by (e_max, e_min)",
    bounds={"switch_max": (0.1, 1), "switch_min": (0.01, 1)},
    fixed={name: FOUND["best"][f"switching_{name}"] for name in ("kp", "ti", "td")},
    motors="as-written",
    step=STEP,
    weights=printed.SWITCHING_WEIGHTS,
    combine="sum",
    grid=(31, 34),
    starts=(
        _start((0.5, 0.25), 9.54322, printed.TABLE_2[:4]),
        _start((0.25, 0.01), 10.9464, printed.TABLE_2[4:]),
    ),
)
TABLE_3 = replace(
    TABLE_2,
    name="Table 3",
    about="the worse of energy and overshoot (eq. 3), by (e_max, e_min)",
    combine="worst",
    starts=(
        _both(printed.TABLE_3[0], printed.TABLE_3[2:6]),
        _both(printed.TABLE_3[1], printed.TABLE_3[6:]),
    ),
)
SETTINGS = DriveSettings(
    line="dual_motor_inferred",
    seed=0,
    studies=(TABLE_1, TABLE_2, TABLE_3),
    before=Printed(cost=printed.CONCLUSION[0][0], best=printed.CONCLUSION[0][1]),
    after=Printed(cost=printed.CONCLUSION[1][0], best=printed.CONCLUSION[1][1]),
    budget=20_000,
    genetic=(30, 20),
    front=(40, 20),
    # standard deviation of the logarithms
    scatter={"gap": 0.3, "motor_viscous": 0.2, "preload": 0.1},
    scatter_samples=100,
    choices=(
        f"structure of the plant: {FOUND['structure']}; fitted to Table 1 first, then to the switching study, then to "
        "both with play",
        "gains of the switching study and of Figure 8: fitted with the plant. With the nominal gains no plant of the "
        "family has the printed energies",
        "share of the preload in the feed-forward of Table 1: fitted with the plant, because the paper does not print "
        "it",
        "half of the mass and all friction are at the motors; play, pinion radius, stiffness and damping of the "
        "contacts: chosen, because no printed number depends on them; with this choice one motor has a limit cycle",
    ),
)
