"""The experiments, and what every one gives: stated beside own figures, and the choices that a paper leaves open."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tauloop.common.errors import InputError
from tauloop.common.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tauloop.viewer import View

#: Called with what is being done.
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment.

    Attributes:
        name: as `tauloop paper reproduce` takes it.
        title: one line.
        source: the paper.
        procedure: module of this package with `SETTINGS` and `run`; the one with ``_figures`` draws
            its result, and says in `CAPTIONS` what is seen.
        budget: processor time that it may take, s; `reproduce all` leaves out what has more than
            `LONG`.
        file: the setting that names the file of its machine or drive line, for one's own in its
            place; "" for none.
    """

    name: str
    title: str
    source: str
    procedure: str
    budget: float
    file: str = "machine"

    @property
    def settings(self) -> Any:
        """Machines, numbers and choices, as a frozen dataclass: a variation is `dataclasses.replace`."""
        return self._module().SETTINGS

    def run(self, progress: Progress = lambda _: None, settings: Any = None) -> Reproduction:
        """Do it again, with other settings where they are named; `progress` hears of every step that begins."""
        reproduction: Reproduction = self._module().run(progress, settings or self.settings)
        return reproduction

    def machine_of(self, settings: Any) -> str:
        """Machine, drive line or file that settings name; "" where there is none."""
        return str(getattr(settings, self.file, "")) if self.file else ""

    def figures(self, reproduction: Reproduction) -> Mapping[str, Figure]:
        """The figures of its result, by the ending of their files' names."""
        drawn: Mapping[str, Figure] = self._module("_figures").figures(reproduction)
        return drawn

    @property
    def films_shown(self) -> Mapping[str, str]:
        """What each of its films shows; most have none."""
        films: Mapping[str, str] = getattr(self._module("_figures"), "FILMS", {})
        return films

    def films(self, results: Reproduction) -> Mapping[str, View]:
        """Machines in motion, by the ending of their files' names."""
        shown: Mapping[str, View] = (
            self._module("_figures").films(results) if self.films_shown else {}
        )
        return shown

    @property
    def captions(self) -> Mapping[str, str]:
        """What each of its figures shows, beside which one of the paper, and why they differ."""
        captions: Mapping[str, str] = self._module("_figures").CAPTIONS
        return captions

    @property
    def undrawn(self) -> Mapping[str, str]:
        """Figures of the paper that hold no data and are not drawn again: what they show, and what stands here."""
        undrawn: Mapping[str, str] = getattr(self._module("_figures"), "UNDRAWN", {})
        return undrawn

    def _module(self, ending: str = "") -> Any:
        return importlib.import_module(f"tauloop_papers.{self.procedure}{ending}")


#: What `reproduce all` runs takes at most this long, s of processor time.
LONG = 150.0
_DRESSLER = (
    "Dressler, Schiffer and Robertsson: Modeling and Control of a Parallel Robot Using Modelica"
)

#: All experiments by name.
EXPERIMENTS = {
    item.name: item
    for item in (
        Experiment(
            name="dual-motor",
            title="Tuning of a dual-motor axis",
            source=f"{_DRESSLER}, section 4.2",
            procedure="dual_motor.tuning",
            file="line",
            budget=60,
        ),
        Experiment(
            name="dual-motor-plant",
            title="The plant behind the dual-motor tables",
            source=f"{_DRESSLER}, section 4.2",
            procedure="dual_motor.plant",
            file="",
            budget=120,
        ),
        Experiment(
            name="gantry-tau",
            title="Identification of the 5-dof Gantry-Tau's dynamics by the two-run method",
            source="Lyzell and Hovland: Verification of the Dynamics of the 5-DOF Gantry-Tau Parallel Kinematic "
            "Machine, sections 3 and 4",
            procedure="gantry_tau.identification",
            budget=60,
        ),
        Experiment(
            name="gantry-tau-calibration",
            title="Kinematic calibration of the Gantry-Tau with a laser tracker",
            source=f"{_DRESSLER}, section 3",
            procedure="tracker.calibration",
            budget=75,
        ),
        Experiment(
            name="nuwar",
            title="Dynamics of NUWAR by Hamilton's equations",
            source="Miller: Dynamics of the New UWA Robot, section 6",
            procedure="nuwar.strokes",
            budget=60,
        ),
        Experiment(
            name="rcid",
            title="The RCID by generalized momentum: strokes, operations, and a surface that it touches",
            source="Lopes and Almeida: Dynamic Model of a 6-dof Parallel Manipulator Using the Generalized Momentum "
            "Approach, sections 2 and 4",
            procedure="rcid.momentum",
            budget=60,
        ),
        Experiment(
            name="spidermill",
            title="Identification of the SpiderMill's reduced model",
            source="Kroneis, Müller and Liu: Dynamic Modeling and Identification of a Complex-structured Parallel "
            "Robot, sections 4 and 5",
            procedure="spidermill.identification",
            budget=90,
        ),
    )
}


def experiment(name: str) -> Experiment:
    """The experiment of that name.

    Raises:
        InputError: there is none.
    """
    if name not in EXPERIMENTS:
        remedy = f"one of {', '.join(EXPERIMENTS)}"
        raise InputError.of(name, "no experiment has this name", remedy)
    return EXPERIMENTS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One row of "stated, ours, why they differ".

    Attributes:
        quantity: what is compared.
        unit: its unit, "" for a pure number.
        stated: the figure as stated, with by whom; "" where nobody states one.
        ours: the figure that comes out here.
        why: why they differ, or what the figure means.
    """

    quantity: str
    unit: str = ""
    stated: str = ""
    ours: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedRow:
    """A row of a printed table.

    Attributes:
        name: its first cell.
        stated: its other cells as printed; "" where the paper has none.
        ours: the same cells as they come out here, in the paper's units.
    """

    name: str
    stated: tuple[str, ...]
    ours: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """A table of the paper in its own layout, every cell stated and ours.

    Attributes:
        name: as the paper calls it, "Table 2".
        title: what it holds, with units.
        columns: heads, the first that of the rows' names.
        rows: with as many cells as there are further columns.
        why: why the figures differ.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[PrintedRow, ...]
    why: str = ""

    def __post_init__(self) -> None:
        """A row that does not fit its heads is a fault of ours."""
        for row in self.rows:
            if not len(row.stated) == len(row.ours) == len(self.columns) - 1:
                raise ValueError(
                    f"{self.name}, row {row.name!r}: {len(self.columns) - 1} cells, stated and ours"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction(Result):
    """A paper's experiment done again; procedures add their settings and their own data for figures.

    Attributes:
        experiment: what was done.
        comparisons: stated beside ours.
        choices: what the paper leaves open and we chose, one sentence each.
        printed: the paper's tables, in their layout.
    """

    experiment: Experiment
    comparisons: tuple[Comparison, ...]
    choices: tuple[str, ...]
    printed: tuple[PrintedTable, ...] = ()


def squared(text: str) -> str:
    """A unit or formula with its squares as pages print them."""
    return text.replace("^2", "²")


def reproduce(name: str, progress: Progress = lambda _: None) -> Reproduction:
    """Do an experiment again.

    Args:
        name: one of `EXPERIMENTS`.
        progress: called with every step that begins.

    Raises:
        InputError: there is no such experiment.
    """
    return experiment(name).run(progress)
