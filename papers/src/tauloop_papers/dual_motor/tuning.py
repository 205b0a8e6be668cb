"""Tuning of a drive line's control as in the paper's tables, by every method from every start.

A dense grid is computed for comparison. Beyond the paper: the Pareto front of energy and overshoot,
and the effect of random plants on the optimum of the switching.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tauloop.common.result import diagnostic, plain, provenance
from tauloop.drives import (
    SQP,
    Axis,
    Grid,
    Minimum,
    ParetoFront,
    PlantFit,
    Robustness,
    dense_grid,
    load_drive,
    minimize,
    pareto_front,
    record_axis,
    robustness,
)
from tauloop_papers.dual_motor.family import RUNS, STEPPING, STRUCTURES
from tauloop_papers.dual_motor.results import Cycling, Scatter, Search, Table
from tauloop_papers.dual_motor.search import CYCLE, LASTING, LONG, STILL, assessed, swings
from tauloop_papers.dual_motor.settings import FOUND, SETTINGS, THREADS, DriveSettings, Start, Study
from tauloop_papers.dual_motor.table import choices, comparisons, printed_tables
from tauloop_papers.reproduction import EXPERIMENTS, Progress, Reproduction

#: Largest relative excess of the best method of a study over the best point of the grid.
ABOVE_GRID = 0.01
#: Duration of the step in Figure 8, and time of the later part, s.
STEP_DURATION, LATER = 10.0, 300.0
#: Allowed error of costs; the observed one is 5e-8.
COST_ERROR = 1e-6
#: Factor of the integrator's tolerances for the costs of the diagnostics.
TIGHTER = 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveTuning(Reproduction):
    """The experiment's results.

    Attributes:
        settings: of the experiment.
        plant: agreement of the plant with the printed values, and determined directions; None for
            another line.
        cycling: steps with one motor and with both.
        tables: the paper's tables.
        energies: energies before and after the tuning of the switching, as in the paper.
        front, front_criteria: switching parameters (m, 2) on the Pareto front, and energy and
            overshoot there (m, 2).
        scatters: designs over random plants.
        exact: SQP along exact gradients (forward sensitivities), from the first start of every
            study.
    """

    settings: DriveSettings
    plant: PlantFit | None
    cycling: Cycling
    tables: tuple[Table, ...]
    energies: tuple[float, float]
    front: np.ndarray
    front_criteria: np.ndarray
    scatters: tuple[Scatter, ...]
    exact: tuple[Search, ...]


def run(progress: Progress, settings: DriveSettings = SETTINGS) -> DriveTuning:
    """Tune by every method from every start, and compare.

    Raises:
        EngineError: no C compiler, or no pymoo.
    """
    progress("compiling the drive line")
    axis = Axis(load_drive(settings.line), threads=THREADS, runs=RUNS)
    plant = None
    if settings.line == SETTINGS.line:  # the printed values are for this line
        progress("comparing the plant with the printed values")
        chosen = next(item for item in STRUCTURES if item.name == FOUND["structure"])
        plant = assessed(Axis(chosen.line, threads=THREADS, runs=RUNS), chosen, FOUND["best"])
    progress("one motor and two")
    cycling = _cycling(axis)
    tables = tuple(_table(axis, study, settings, progress) for study in settings.studies)
    exact = tuple(_exact(axis, table, settings, progress) for table in tables)
    switching = tables[1]
    points = np.array([settings.before.best, settings.after.best])
    energies = switching.study.criteria(axis, points).energy
    progress("finding the Pareto front")
    front = _front(axis, switching.study, settings)
    progress("trying random plants")
    designs = {
        "as first chosen": settings.before.best,
        "the paper's choice": settings.after.best,
        "our optimum": switching.best.best,
    }
    scatters = _scatters(axis, switching.study, designs, settings)
    diagnostics = [
        diagnostic(
            "oscillation of one motor's limit cycle over the smallest one that counts",
            cycling.swings["one"] / CYCLE,
            at_least=1.0,
            advice="choose other play or friction: one motor has no limit cycle with this plant",
        ),
        diagnostic(
            "oscillation with two motors, m",
            cycling.swings["as-written"],
            at_most=STILL,
            advice="choose other play or friction: two motors also have a limit cycle",
        ),
    ]
    for table in tables:
        diagnostics += [
            diagnostic(
                f"{table.study.name}: best cost over the best of the grid, less 1",
                table.best.cost / table.grid_cost - 1.0,
                at_most=ABOVE_GRID,
                advice="use more starts: all methods are stuck",
            ),
            diagnostic(
                f"{table.study.name}: change of the best cost with tolerances a hundred times tighter",
                table.refined,
                at_most=COST_ERROR,
                advice="tighten the integrator's tolerances",
            ),
        ]
    return DriveTuning(
        experiment=EXPERIMENTS["dual-motor"],
        settings=settings,
        comparisons=comparisons(
            settings,
            plant,
            cycling,
            tables,
            (float(energies[0]), float(energies[1])),
            front,
            scatters,
            exact,
        ),
        choices=choices(settings, axis),
        printed=printed_tables(tables),
        plant=plant,
        cycling=cycling,
        tables=tables,
        energies=(float(energies[0]), float(energies[1])),
        front=front.points,
        front_criteria=front.criteria,
        scatters=scatters,
        exact=exact,
        diagnostics=tuple(diagnostics),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi", "pymoo"), options=plain(settings), inputs={}
        ),
    )


def _cycling(axis: Axis) -> Cycling:
    """Return the steps of one plant with one motor and with both, with the gains of its file."""
    records = {
        motors: record_axis(
            axis.with_motors(motors), duration=STEP_DURATION, samples=4001, integrator=STEPPING
        )
        for motors in ("one", "as-written")
    }
    both = records["as-written"]
    late = {
        motors: record_axis(axis.with_motors(motors), duration=LATER, samples=3001, integrator=LONG)
        for motors in records
    }
    return Cycling(
        records=records,
        later=(
            late["one"].time,
            {
                motors: record.signal("cart.position") - record.reference
                for motors, record in late.items()
            },
        ),
        swings=swings(axis, dict(zip(axis.names, axis.nominal, strict=True)), both=True),
        duration=LASTING,
        gap=float(axis.line.parameters.values["gap"]),
        overshoot=float(both.criteria.overshoot[0] / (both.reference - both.before)),
    )


def _table(axis: Axis, study: Study, settings: DriveSettings, progress: Progress) -> Table:
    cost = study.cost(axis)
    progress(f"{study.name}: dense grid")
    grid = dense_grid(cost, study.bounds, study.grid)
    minima: list[tuple[str, Start, Minimum]] = []
    for start in study.starts:
        for name, method in settings.methods().items():
            progress(f"{study.name}: {name} from {start.at}")
            minima.append(
                (
                    name,
                    start,
                    minimize(cost, study.bounds, start.at, method, budget=settings.budget),
                )
            )
    least = min(grid.cost, *(tuning.cost for _, _, tuning in minima))
    printed = cost(np.array([start.printed[name].best for name, start, _ in minima]))
    best = min((tuning for _, _, tuning in minima), key=lambda tuning: tuning.cost)
    tight = replace(
        STEPPING,
        rtol=STEPPING.rtol * TIGHTER,
        atol=STEPPING.atol * TIGHTER,
        max_steps=100 * STEPPING.max_steps,
    )
    refined = float(study.cost(axis, tight)(best.best[None])[0])
    return Table(
        study=study,
        searches=tuple(
            _search(
                axis,
                study,
                name,
                start,
                tuning,
                least,
                float(value) if np.isfinite(value) else None,
            )
            for (name, start, tuning), value in zip(minima, printed, strict=True)
        ),
        grid_axes=grid.axes,
        grid_costs=_plain_costs(grid),
        grid_cost=grid.cost,
        grid_best=tuple(map(float, grid.best)),
        minima=len(grid.minima),
        refined=abs(refined - best.cost),
    )


def _exact(axis: Axis, table: Table, settings: DriveSettings, progress: Progress) -> Search:
    """Run SQP along exact gradients from the first start."""
    study, start = table.study, table.study.starts[0]
    progress(f"{study.name}: exact gradients from {start.at}")
    gradient = study.gradient(axis)
    tuning = minimize(
        study.cost(axis), study.bounds, start.at, SQP(gradient=gradient), budget=settings.budget
    )
    least = min(table.grid_cost, table.best.cost, tuning.cost)
    return _search(axis, study, "SQP, exact gradients", start, tuning, least, None)


def _search(
    axis: Axis,
    study: Study,
    method: str,
    start: Start,
    tuning: Minimum,
    least: float,
    printed_here: float | None,
) -> Search:
    """Return the results of one search; `least` is the best known cost."""
    begun, ended = study.parts(axis, np.array([start.at, tuning.best]))
    return Search(
        method=method,
        start=start,
        start_cost=tuning.start_cost,
        cost=tuning.cost,
        start_parts=tuple(map(float, begun)),
        parts=tuple(map(float, ended)),
        best=tuple(map(float, tuning.best)),
        evaluations=len(tuning.costs),
        descent=tuple(map(float, tuning.descent)),
        ending=tuning.ending,
        above=tuning.cost / least - 1.0,
        printed_here=printed_here,
    )


def _plain_costs(grid: Grid) -> tuple[float | None, ...]:
    return tuple(float(value) if np.isfinite(value) else None for value in grid.costs.ravel())


def _front(axis: Axis, study: Study, settings: DriveSettings) -> ParetoFront:
    def criteria(points: np.ndarray) -> np.ndarray:
        runs = study.criteria(axis, points)
        both = np.stack([runs.energy, runs.overshoot], axis=1)
        return np.where(runs.failed[:, None], np.nan, both)

    return pareto_front(
        criteria,
        study.bounds,
        of=("energy", "overshoot"),
        seed=settings.seed,
        population=settings.front[0],
        generations=settings.front[1],
    )


def _scatters(
    axis: Axis, study: Study, designs: Mapping[str, tuple[float, ...]], settings: DriveSettings
) -> tuple[Scatter, ...]:
    names = tuple(settings.scatter)

    def cost(points: np.ndarray, plants: np.ndarray) -> np.ndarray:
        return study.combined(study.criteria(axis, points, dict(zip(names, plants.T, strict=True))))

    spread: Robustness = robustness(
        cost,
        np.array(list(designs.values())),
        np.array([axis.nominal[axis.names.index(name)] for name in names]),
        np.array([settings.scatter[name] for name in names]),
        samples=settings.scatter_samples,
        generator=np.random.default_rng(settings.seed),
    )
    scatters = []
    for (name, at), quantiles, failures in zip(
        designs.items(), spread.quantiles(), spread.failures, strict=True
    ):
        finite = [float(value) if np.isfinite(value) else None for value in quantiles]
        scatters.append(
            Scatter(name=name, at=at, quantiles=tuple(finite), failures=float(failures))
        )
    return tuple(scatters)
