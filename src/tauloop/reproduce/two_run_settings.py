"""Settings of an experiment with two runs: the model, what the machine as built has beside it, motions and designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tauloop.identification.excitation.design import ExcitationOptions
from tauloop.identification.excitation.solver import SolverOptions
from tauloop.reproduce.bristles import Bristles
from tauloop.reproduce.experiments import Experiment
from tauloop.reproduce.frame_vibration import FrameMode

#: Lengths (or other positions) at which held actuators stand in one data set; None where all move.
Held = tuple[float, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Simple:
    """A simpler model of the same machine, whose actuators are some of it.

    Attributes:
        machine: name of the machine file.
        values: leaf parameters that are other than in the file.
        dynamic: entries of pi that are other than in the file.
    """

    machine: str
    values: Mapping[str, float]
    dynamic: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandErrors:
    """How far the machine as built is from what was measured by hand (standard deviations).

    Attributes:
        mass: of every body and kind of link, as a share.
        radius: of their radii of gyration, as a share.
        center: of their mass centres in every direction, m.
        spread: of the masses of links of one kind about their mean, as a share.
        geometry: of leaf parameters, by patterns of their names, SI.
    """

    mass: float
    radius: float
    center: float
    spread: float
    geometry: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """What remains on an actuator without the structure: its moved mass (kg), and hysteresis and friction."""

    mass: float
    bristles: Bristles


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSettings:
    """How runs are recorded.

    Attributes:
        rate: Hz.
        period: of all motions, s.
        periods: recorded in each run.
        late: by how much the disconnected run starts later, s.
        resolution: of encoders, m or rad.
        noise: of forces, standard deviation, N or N m.
        highest: highest frequency kept of the motion, Hz.
    """

    rate: float
    period: float
    periods: int
    late: float
    resolution: float
    noise: float
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MultisineSettings:
    """Motions by eq. 2: number of terms, range of frequencies (Hz), and strokes (m) by patterns of actuators.

    `held` are the actuators that stand in some data sets; `moving` their strokes where they move.
    """

    terms: int
    lowest: float
    highest: float
    strokes: Mapping[str, float]
    held: tuple[str, ...]
    moving: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Optimised motions: Fourier series under limits.

    Attributes:
        name: of the design.
        held: one entry for each data set; each is designed beside those before.
        series: coefficients (n, 2 K + 1) of each data set, as `FourierSeries.of` takes them; none where they are to be
            found.
    """

    name: str
    held: tuple[Held, ...]
    series: tuple[tuple[tuple[float, ...], ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignLimits:
    """Limits of all designs beside the machine file's, by patterns of actuators, harmonics and period (SI)."""

    stroke: Mapping[str, float]
    acceleration: Mapping[str, float]
    harmonics: int
    period: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of the table of what can be told: fixed positions or motion, and how many are told, as stated.

    Attributes:
        name: what is done with the held actuators.
        held: their positions, one entry for each data set.
        stated: numbers told, by joint model and measured forces: no spin with some, no spin with all, spin with some,
            spin with all.
    """

    name: str
    held: tuple[Held, ...]
    stated: tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What others say: rows of Table 1 (%), estimates and deviations of Table 2, and by whom the ranks are."""

    rows: Mapping[str, tuple[float, ...]]
    estimates: tuple[float, ...]
    deviations: tuple[float, ...]
    ranks_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoRunSettings:
    """All settings; see the experiment's file.

    Attributes:
        machine: name of the machine file.
        parameters, inertias: unknowns, and which of them are moments of inertia.
        removed: leaf parameters of what stays with the actuators when the structure is taken off.
        measured: actuators whose forces are measured.
        search, search_seed: how designs without series are found.
        told: relative standard deviation below which a parameter counts as told.
        consistency: largest ratio of the consistent fit's hold-out error to that of least squares.
        others, above as in their classes.
    """

    machine: str
    parameters: tuple[str, ...]
    inertias: tuple[str, ...]
    removed: tuple[str, ...]
    measured: tuple[str, ...]
    simple: Simple
    built: HandErrors
    error_scales: tuple[float, ...]
    scale_draws: int
    sign_draws: int
    seed: int
    drive: Drive
    frame: FrameMode
    recording: RecordingSettings
    multisine: MultisineSettings
    first: Held
    training: tuple[Held, ...]
    validation: Held
    designs: tuple[Design, ...]
    limits: DesignLimits
    search: ExcitationOptions
    search_seed: int
    told: float
    consistency: float
    cases: tuple[Case, ...]
    stated: Stated


def two_run_settings(experiment: Experiment) -> TwoRunSettings:
    """The settings of an experiment's file."""
    given = dict(experiment.settings)
    drive, frame, search = given.pop("drive"), given.pop("frame"), given.pop("search")
    multisine, stated = given.pop("multisine"), given.pop("stated")
    lists = ("parameters", "inertias", "removed", "measured", "error_scales", "first", "validation")
    given |= {name: tuple(given[name]) for name in lists}
    return TwoRunSettings(
        simple=Simple(**given.pop("simple")),
        built=HandErrors(**given.pop("built")),
        drive=Drive(mass=drive["mass"], bristles=Bristles(**drive["bristles"])),
        frame=FrameMode(**{**frame, "direction": tuple(frame["direction"])}),
        recording=RecordingSettings(**given.pop("recording")),
        multisine=MultisineSettings(**{**multisine, "held": tuple(multisine["held"])}),
        training=_held(given.pop("training")),
        designs=tuple(
            Design(name=name, held=_held(design["held"]), series=_series(design["series"]))
            for name, design in given.pop("designs").items()
        ),
        limits=DesignLimits(**given.pop("limits")),
        search=ExcitationOptions(
            random=search["random"], starts=search["starts"], solver=SolverOptions(iterations=search["iterations"])
        ),
        search_seed=search["seed"],
        cases=tuple(
            Case(name=name, held=_held(case["held"]), stated=tuple(case["stated"]))
            for name, case in given.pop("cases").items()
        ),
        stated=Stated(
            rows={name: tuple(row) for name, row in stated["rows"].items()},
            estimates=tuple(stated["estimates"]),
            deviations=tuple(stated["deviations"]),
            ranks_by=stated["ranks_by"],
        ),
        **given,
    )


def by_name(patterns: Mapping[str, float], names: tuple[str, ...]) -> dict[str, float]:
    """Values by name: that of the first pattern that a name fits; names that fit none are left out."""
    return {
        name: next(value for pattern, value in patterns.items() if fnmatchcase(name, pattern))
        for name in names
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def _held(given: list[Any]) -> tuple[Held, ...]:
    return tuple(None if entry is None else tuple(entry) for entry in given)


def _series(given: list[list[list[float]]]) -> tuple[tuple[tuple[float, ...], ...], ...]:
    return tuple(tuple(tuple(map(float, row)) for row in one) for one in given)
