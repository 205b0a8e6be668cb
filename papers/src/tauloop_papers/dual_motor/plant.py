"""The plant behind a drive line's printed tables: candidate structures, the search, and what it leaves open.

The axis with rigid racks runs some ten times faster than the one with play, and its figures are near; so it is searched
first, and structures are compared on it. Each structure's search begins with the best plant that all figures free gave
among random ones, and so does the search with play.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tauloop.drives import DETERMINED, Axis, DriveLine, PlantFit, PlantUnknown, assess_plant, load_drive, search_plant
from tauloop.result import Evidence, plain, provenance
from tauloop_papers.dual_motor import settings as tuned
from tauloop_papers.dual_motor.settings import STEPPING, THREADS, DriveSettings
from tauloop_papers.dual_motor.table import plant_rows
from tauloop_papers.reproduction import EXPERIMENTS, Comparison, Progress, Reproduction

#: What the search has to reach: times and energies within this share, held-out ones too.
AIM = 0.02
TIMES_AND_ENERGIES = ("rise_time", "settling_time", "energy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Of one search: the global one's population and generations, and the local one's most evaluations."""

    population: int
    generations: int
    polish: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantSettings:
    """Everything that is chosen; SI.

    Attributes:
        of: the experiment whose tables are explained.
        seed: of all random numbers.
        not_rigid: what the axis with rigid racks does not show: fixed there, and where the search with play begins.
        structures: what candidates assume, by what it is called.
        rigid, each, play: effort of the search with rigid racks, of each structure's, and of the one with play.
        spread: of the first population with play about the best plant without, in shares of the ranges.
        choices: what the paper leaves open.
    """

    of: DriveSettings
    seed: int
    not_rigid: Mapping[str, float]
    structures: Mapping[str, Mapping[str, float]]
    rigid: Effort
    each: Effort
    play: Effort
    spread: float
    choices: tuple[str, ...]


SETTINGS = PlantSettings(
    of=tuned.SETTINGS,
    seed=1,
    not_rigid={"gap": 5e-4, "motor_inertia": 0.005, "motor_viscous": 0.01},
    structures={
        "nominal gains in the switching study": {"switching_kp": 200, "switching_ti": 1.5, "switching_td": 0.05},
        "pattern search's gains in it": {"switching_kp": 292.01, "switching_ti": 1.24, "switching_td": 0.01},
        "no dry friction": {"cart_coulomb": 0},
        "whole preload fed forward": {"feed_forward_share": 1},
        "no preload fed forward": {"feed_forward_share": 0},
        "motors share equally": {"torque_share": 0.5},
        "first step of 0.1 m": {"first_step": 0.1},
        "first step of 0.1 m, band of 2 %": {"first_step": 0.1, "band": 0.002},
    },
    rigid=Effort(population=60, generations=200, polish=30),
    each=Effort(population=40, generations=50, polish=30),
    play=Effort(population=30, generations=40, polish=20),
    spread=0.06,
    choices=(
        "pinion radius, contact stiffness and damping of the plant: chosen",
        "tolerances of the rows: 1 % of times, 0.5 % of energies, 50 % of overshoots, 0.2 of Table 1's costs",
        "ranges of the unknowns, and the effort of the searches",
    ),
)


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
        settings: of the experiment.
        structures: candidates, in the order of the settings.
        rigid: the best plant with rigid racks.
        found: the best plant with play, of this search.
        shipped: the plant that comes with Tauloop, judged by the same rows.
    """

    settings: PlantSettings
    structures: tuple[Structure, ...]
    rigid: PlantFit
    found: PlantFit
    shipped: PlantFit


def run(progress: Progress, settings: PlantSettings = SETTINGS) -> DrivePlant:
    """Search the plant.

    Raises:
        EngineError: no C compiler.
    """
    given = settings.of
    line = load_drive(given.line)
    progress("compiling the axis with and without play")
    axis, rigid_axis = Axis(line, threads=THREADS), Axis(with_rigid_racks(line), threads=THREADS)
    held = settings.not_rigid
    unknowns = tuple(item for item in given.unknowns if item.name not in held)
    search = _Search(settings=given, seed=settings.seed)
    progress("searching with rigid racks")
    rigid = search.fit(rigid_axis, unknowns, settings.rigid, known=held)
    structures = []
    for name, known in settings.structures.items():
        progress(f"structure: {name}")
        free = tuple(unknown for unknown in unknowns if unknown.name not in known)
        start = np.array([unknown.share(rigid.values[unknown.name]) for unknown in free])
        fit = search.fit(rigid_axis, free, settings.each, known={**known, **held}, start=start)
        structures.append(Structure(name=name, known=known, fit=fit))
    progress("searching with play")
    start = np.array([item.share({**rigid.values, **held}[item.name]) for item in given.unknowns])
    found = search.fit(axis, given.unknowns, settings.play, start=start, spread=settings.spread)
    shipped = assess_plant(axis, given.unknowns, given.observations, given.shares(axis), integrator=STEPPING)
    return DrivePlant(
        experiment=EXPERIMENTS["dual-motor-plant"],
        settings=settings,
        comparisons=_comparisons(structures, rigid, found, shipped),
        choices=settings.choices,
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
        provenance=provenance(packages=("numpy", "scipy", "casadi"), options=plain(settings), inputs={}),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What all fits here share."""

    settings: DriveSettings
    seed: int

    def fit(
        self,
        axis: Axis,
        unknowns: Sequence[PlantUnknown],
        effort: Effort,
        *,
        known: Mapping[str, float] | None = None,
        start: np.ndarray | None = None,
        spread: float | None = None,
    ) -> PlantFit:
        """The best plant with some effort."""
        return search_plant(
            axis,
            unknowns,
            self.settings.observations,
            seed=self.seed,
            generations=effort.generations,
            population=effort.population,
            polish=effort.polish,
            start=start,
            spread=spread,
            integrator=STEPPING,
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
