"""The plant behind the tables: results of the search of its family, evaluated again.

The search is `python -m tauloop_papers.dual_motor.search`; its results are in ``found.json``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tauloop.common.result import diagnostic, plain, provenance
from tauloop.drives import DETERMINED, Axis, PlantFit
from tauloop_papers.dual_motor.conclusions import conclusions
from tauloop_papers.dual_motor.family import RIGID, RUNS, STRUCTURES, Structure
from tauloop_papers.dual_motor.search import BUDGET, STARTS, assessed
from tauloop_papers.dual_motor.settings import FOUND, THREADS
from tauloop_papers.dual_motor.table import bar_of, plant_rows, residual_rows
from tauloop_papers.reproduction import EXPERIMENTS, Comparison, Progress, Reproduction

#: Largest change of a stored row: stored values have eight digits, criteria an accuracy of 1e-6.
ROW_TOLERANCE = 1e-3
#: Loss above which a row is not met (one bar is 0.41), and significant gain of other rows.
SIGNIFICANT_LOSS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantSettings:
    """All choices; SI.

    Attributes:
        kept: results of the search.
        structures: structures of the family.
        choices: our choices that the paper leaves open.
    """

    kept: Mapping[str, Any]
    structures: tuple[Structure, ...]
    choices: tuple[str, ...]


SETTINGS = PlantSettings(
    kept=FOUND,
    structures=STRUCTURES,
    choices=(
        "bars of the rows: 1 % of times, energies and sums of Table 2, 10 % of overshoots and costs of Table 1",
        "the family: three masses, PID with N = 10, a smooth switching, and the settings of its structures",
        "ranges of the unknowns, and the effort of the searches",
        "half of the mass and all friction at the motors, and the play: chosen, because no printed number depends on "
        "them; with this choice one motor has a limit cycle",
        "pinion radius, contact stiffness and damping of the plant",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A structure of the family.

    Attributes:
        structure: the structure.
        starts: losses of all starts, the best first.
        kept: loss of its best plant in the results of the search.
        fit: its best plant, evaluated again.
    """

    structure: Structure
    starts: tuple[float, ...]
    kept: float
    fit: PlantFit


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A fit without one printed figure.

    Attributes:
        loss: loss of all others.
        own: loss of this value in the fit with it.
        gained: reduction of the loss of the others without it.
    """

    loss: float
    own: float
    gained: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivePlant(Reproduction):
    """The experiment's results.

    Attributes:
        settings: of the experiment.
        tried: searched structures of the family.
        shipped: the shipped plant with play, by every row.
        left_out: fits without one printed figure, by its name.
    """

    settings: PlantSettings
    tried: tuple[Tried, ...]
    shipped: PlantFit
    left_out: Mapping[str, LeftOut]


def run(progress: Progress, settings: PlantSettings = SETTINGS) -> DrivePlant:
    """Evaluate the results of the search.

    Raises:
        EngineError: no C compiler.
    """
    kept, tried = settings.kept, []
    for item in settings.structures:
        starts = kept["structures"].get(item.name)
        if starts:
            progress(f"structure: {item.name}")
            axis, held = (
                Axis(item.searched, threads=THREADS, runs=RUNS),
                None if item.after else RIGID,
            )
            fit = assessed(axis, item, item.held | starts["values"], held)
            tried.append(
                Tried(structure=item, starts=tuple(starts["starts"]), kept=starts["loss"], fit=fit)
            )
    progress("the plant with play")
    chosen = next(item for item in settings.structures if item.name == kept["structure"])
    shipped = assessed(
        Axis(chosen.line, threads=THREADS, runs=RUNS),
        chosen,
        kept["best"],
        more=("motor_inertia", "motor_viscous", "gap1"),
    )
    best = min(tried, key=lambda item: item.fit.loss)
    left_out = {name: _left_out(best.fit, name, loss) for name, loss in kept["left_out"].items()}
    return DrivePlant(
        experiment=EXPERIMENTS["dual-motor-plant"],
        settings=settings,
        comparisons=_comparisons(kept, tried, shipped, left_out),
        choices=settings.choices,
        tried=tuple(tried),
        shipped=shipped,
        left_out=left_out,
        diagnostics=(
            diagnostic(
                "largest difference of a row from the results of the search",
                max(
                    abs(row[3] - ours) / max(abs(ours), row[2])
                    for row, ours in zip(shipped.rows, kept["rows"], strict=True)
                ),
                at_most=ROW_TOLERANCE,
                advice="run the search again: the equations have changed since",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"), options={"best": plain(kept["best"])}, inputs={}
        ),
    )


def _left_out(fit: PlantFit, name: str, loss: float) -> LeftOut:
    own = sum(
        float(np.hypot((ours / printed - 1.0) / bar_of(key, row), 1.0)) - 1.0
        for row, key, printed, ours, _ in fit.rows
        if f"{row}: {key}" == name
    )
    return LeftOut(loss=loss, own=own, gained=fit.loss - own - loss)


def missed(fit: PlantFit, criteria: Sequence[str]) -> float:
    """Return the largest relative error of these criteria from the printed values."""
    return max(
        (abs(ours / printed - 1.0) for _, name, printed, ours, _ in fit.rows if name in criteria),
        default=0.0,
    )


def _comparisons(
    kept: Mapping[str, Any],
    tried: Sequence[Tried],
    shipped: PlantFit,
    left_out: Mapping[str, LeftOut],
) -> tuple[Comparison, ...]:
    rows = [
        Comparison(
            quantity=f"search: {len(STRUCTURES)} structures, {STARTS} starts of each, {BUDGET:g} core-hours",
            ours=f"{sum(len(item.starts) for item in tried)} starts of {len(tried)} structures, "
            f"{kept['core_hours']:.2f} core-hours",
            why="results of the search so far; the following holds within this family and these starts",
        )
    ]
    rows += [
        Comparison(
            quantity=f"structure: {item.structure.name}",
            ours=f"loss {item.fit.loss:.4g}",
            why=f"{_met(item.fit)}; {_misses(item.fit)}; {len(item.starts)} starts ended at {item.starts[0]:.4g} to "
            f"{item.starts[-1]:.4g}",
        )
        for item in tried
    ]
    rows.append(
        Comparison(
            quantity=f"the shipped plant, with play: {kept['structure']}",
            ours=f"loss {shipped.loss:.4g}",
            why=f"{_met(shipped)}; {_misses(shipped)}",
        )
    )
    rows += [
        Comparison(
            quantity=f"conclusion: {item.statement}",
            stated=item.stated,
            ours=item.ours,
            why="shown by the shipped plant" if item.holds else "not shown by the shipped plant",
        )
        for item in conclusions()
    ]
    rows += plant_rows(shipped)
    rows += residual_rows([item.fit for item in tried])
    for name, fit in sorted(left_out.items(), key=lambda pair: -pair[1].gained):
        rows.append(
            Comparison(
                quantity=f"all but {name.replace('_', ' ')}: gain of the others",
                ours=f"{fit.gained:.2g}",
                why=f"loss {fit.loss:.4g} of them without it; its own was {fit.own:.3g}: "
                f"{_explained(fit)}",
            )
        )
    for k, (sensitivity, direction) in enumerate(
        zip(shipped.sensitivities, shipped.directions, strict=True)
    ):
        verdict = "not determined" if sensitivity < DETERMINED else "determined"
        rows.append(
            Comparison(
                quantity=f"direction {k + 1}: {shipped.named(direction)}",
                unit="bars",
                ours=f"{sensitivity:.3g}",
                why=f"change of all values over the ranges along it: {verdict}",
            )
        )
    return tuple(rows)


def _explained(fit: LeftOut) -> str:
    """Return why a printed value is met or not, as text."""
    if fit.own < SIGNIFICANT_LOSS:
        return "within reach"
    if fit.gained > SIGNIFICANT_LOSS:
        return "at the expense of others in this plant"
    return "not met by this plant, with the others or without"


def _met(fit: PlantFit) -> str:
    """Return the number of rows within their bars, as text."""
    met = [
        abs(ours / printed - 1.0) <= bar_of(name, row) for row, name, printed, ours, _ in fit.rows
    ]
    return f"{sum(met)} of {len(met)} rows within their bars"


def _misses(fit: PlantFit) -> str:
    """Return the worst rows of a fit, as text."""
    times, energies = missed(fit, ("rise_time", "settling_time")), missed(fit, ("energy",))
    return (
        f"times within {times:.1%}, energies {energies:.1%}, overshoots {missed(fit, ('overshoot',)):.0%}, "
        f"costs {missed(fit, ('cost',)):.0%}"
    )
