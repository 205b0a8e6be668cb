"""The plant behind a drive line's printed tables: candidate structures, the search, and what it leaves open.

The axis with rigid racks runs some ten times faster than the one with play, and its figures are near; so it is searched
first, and structures are compared on it. Each structure's search begins with the best plant that all figures free gave
among random ones, and so does the search with play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tauloop.drives.plant_fit import DETERMINED, PlantFit, Unknown, assess_plant, fit_plant
from tauloop.drives.reader import load_drive
from tauloop.drives.simulation import Axis
from tauloop.mechanism.drive_line import DriveLine
from tauloop.reproduce.drive_settings import STEPPING, THREADS, DriveSettings, drive_settings
from tauloop.reproduce.drive_table import plant_rows
from tauloop.reproduce.experiments import Experiment, experiment
from tauloop.reproduce.reproduction import Comparison, Progress, Reproduction
from tauloop.result import Evidence, provenance

#: What the search has to reach: times and energies within this share, held-out ones too.
AIM = 0.02
TIMES_AND_ENERGIES = ("rise_time", "settling_time", "energy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """One candidate on the axis with rigid racks.

    Attributes:
        name: what is assumed.
        known: figures that the assumption fixes.
        fit: the best plant of it.
    """

    name: str
    known: Mapping[str, float]
    fit: PlantFit


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivePlant(Reproduction):
    """The experiment's results.

    Attributes:
        structures: candidates, in the order of the file.
        rigid: the best plant with rigid racks.
        found: the best plant with play, of this search.
        shipped: the plant that comes with Tauloop, judged by the same rows.
    """

    structures: tuple[Structure, ...]
    rigid: PlantFit
    found: PlantFit
    shipped: PlantFit


def run(experiment_: Experiment, progress: Progress) -> DrivePlant:
    """Search the plant.

    Raises:
        EngineError: no C compiler.
    """
    given = experiment_.settings
    settings = drive_settings(experiment(given["of"]))
    line = load_drive(settings.line)
    progress("compiling the axis with and without play")
    axis, rigid_axis = Axis(line, threads=THREADS), Axis(with_rigid_racks(line), threads=THREADS)
    held = {name: float(value) for name, value in given["not_rigid"].items()}
    unknowns = tuple(item for item in settings.unknowns if item.name not in held)
    search = _Search(settings=settings, seed=given["seed"], effort=given["effort"])
    progress("searching with rigid racks")
    rigid = search.fit(rigid_axis, unknowns, "rigid", known=held)
    structures = []
    for item in given["structures"]:
        progress(f"structure: {item['name']}")
        known = {name: float(value) for name, value in item["known"].items()}
        free = tuple(unknown for unknown in unknowns if unknown.name not in known)
        start = np.array([unknown.share(rigid.values[unknown.name]) for unknown in free])
        fit = search.fit(rigid_axis, free, "structures", known=known | held, start=start)
        structures.append(Structure(name=item["name"], known=known, fit=fit))
    progress("searching with play")
    start = np.array([item.share((dict(rigid.values) | held)[item.name]) for item in settings.unknowns])
    found = search.fit(axis, settings.unknowns, "play", start=start, spread=float(given["spread"]))
    shipped = assess_plant(axis, settings.unknowns, settings.observations, settings.shares(axis), stepping=STEPPING)
    return DrivePlant(
        experiment=experiment_,
        comparisons=_comparisons(structures, rigid, found, shipped),
        choices=tuple(given["choices"]),
        structures=tuple(structures),
        rigid=rigid,
        found=found,
        shipped=shipped,
        evidence=(
            Evidence(
                name="shipped plant: largest difference of a time or an energy from its printed figure",
                value=missed(shipped, TIMES_AND_ENERGIES),
                upper=AIM,
                advice="search with more generations, and ship what it finds",
            ),
        ),
        provenance=provenance(packages=("numpy", "scipy", "casadi"), options=dict(given), inputs={}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What all fits here share."""

    settings: DriveSettings
    seed: int
    effort: Mapping[str, Mapping[str, int]]

    def fit(
        self,
        axis: Axis,
        unknowns: Sequence[Unknown],
        effort: str,
        *,
        known: Mapping[str, float] | None = None,
        start: np.ndarray | None = None,
        spread: float | None = None,
    ) -> PlantFit:
        """The best plant with an effort of the experiment's file."""
        return fit_plant(
            axis,
            unknowns,
            self.settings.observations,
            seed=self.seed,
            generations=self.effort[effort]["generations"],
            population=self.effort[effort]["population"],
            polish=self.effort[effort]["polish"],
            start=start,
            spread=spread,
            stepping=STEPPING,
            known=known,
        )


def with_rigid_racks(line: DriveLine) -> DriveLine:
    """The same line with all connections rigid: no play, no elasticity."""
    return replace(line, connections=tuple(replace(item, compliance=None) for item in line.connections))


def missed(fit: PlantFit, criteria: Sequence[str], *, held_out: bool | None = None) -> float:
    """Largest share by which figures of these criteria miss the printed ones; infinite where a run failed."""
    shares = [
        abs(ours / printed - 1.0)
        for _, name, printed, ours, held in fit.rows
        if name in criteria and held_out in (None, held)
    ]
    return max(shares, default=0.0)


def _comparisons(
    structures: Sequence[Structure], rigid: PlantFit, found: PlantFit, shipped: PlantFit
) -> tuple[Comparison, ...]:
    rows = [
        Comparison(
            quantity=f"structure, racks rigid: {item.name}",
            ours=f"loss {item.fit.loss:.4g}",
            why=_misses(item.fit),
        )
        for item in structures
    ]
    for name, fit in (("racks rigid, all free", rigid), ("with play", found), ("as shipped", shipped)):
        rows.append(
            Comparison(
                quantity=f"plant, {name}",
                ours=f"loss {fit.loss:.4g}",
                why=f"{_misses(fit)}; {fit.evaluations} plants tried",
            )
        )
    rows += plant_rows(shipped)
    for k, (sensitivity, direction) in enumerate(zip(shipped.sensitivities, shipped.directions, strict=True)):
        verdict = "not determined" if sensitivity < DETERMINED else "determined"
        rows.append(
            Comparison(
                quantity=f"direction {k + 1}: {shipped.named(direction)}",
                unit="tolerances",
                ours=f"{sensitivity:.3g}",
                why=f"change of all fitted figures over the ranges along it: {verdict}",
            )
        )
    return tuple(rows)


def _misses(fit: PlantFit) -> str:
    """The worst rows of a fit, in words."""
    times, energies = missed(fit, ("rise_time", "settling_time")), missed(fit, ("energy",))
    return (
        f"times within {times:.1%}, energies {energies:.1%} (held out {missed(fit, ('energy',), held_out=True):.1%}), "
        f"overshoots {missed(fit, ('overshoot',)):.0%}, costs of Table 1 {missed(fit, ('cost',)):.0%}"
    )
