"""The experiments and their results: stated values, our values, and choices."""

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

#: Called with a description of the current step.
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment.

    Attributes:
        name: name for `tauloop paper reproduce`.
        title: one line.
        source: the paper.
        procedure: module of this package with `SETTINGS` and `run`; the module with the suffix
            ``_figures`` draws the result, and describes figures in `CAPTIONS`.
        budget: allowed processor time, s; `reproduce all` omits experiments above `LONG`.
        file: setting with the file of its machine or drive line, which another file can replace;
            "" if there is none.
    """

    name: str
    title: str
    source: str
    procedure: str
    budget: float
    file: str = "machine"

    @property
    def settings(self) -> Any:
        """Machines, numbers and choices; vary this dataclass with `dataclasses.replace`."""
        return self._module().SETTINGS

    def run(self, progress: Progress = lambda _: None, settings: Any = None) -> Reproduction:
        """Reproduce the experiment with given settings; report each step to `progress`."""
        reproduction: Reproduction = self._module().run(progress, settings or self.settings)
        return reproduction

    def machine_of(self, settings: Any) -> str:
        """Return the machine, drive line or file in the settings; "" if there is none."""
        return str(getattr(settings, self.file, "")) if self.file else ""

    def figures(self, reproduction: Reproduction) -> Mapping[str, Figure]:
        """Return the figures of its result, by the suffix of their file names."""
        drawn: Mapping[str, Figure] = self._module("_figures").figures(reproduction)
        return drawn

    @property
    def films_shown(self) -> Mapping[str, str]:
        """Descriptions of its films; empty for most experiments."""
        films: Mapping[str, str] = getattr(self._module("_figures"), "FILMS", {})
        return films

    def films(self, results: Reproduction) -> Mapping[str, View]:
        """Return machines in motion, by the suffix of their file names."""
        shown: Mapping[str, View] = (
            self._module("_figures").films(results) if self.films_shown else {}
        )
        return shown

    @property
    def captions(self) -> Mapping[str, str]:
        """Captions of its figures: the corresponding figure of the paper, and why they differ."""
        captions: Mapping[str, str] = self._module("_figures").CAPTIONS
        return captions

    @property
    def undrawn(self) -> Mapping[str, str]:
        """Figures of the paper that are not drawn: their content, and its replacement."""
        undrawn: Mapping[str, str] = getattr(self._module("_figures"), "UNDRAWN", {})
        return undrawn

    def _module(self, ending: str = "") -> Any:
        return importlib.import_module(f"tauloop_papers.{self.procedure}{ending}")


#: Largest processor time of an experiment of `reproduce all`, s.
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
            title="The RCID by generalized momentum: strokes, operations, and contact with a surface",
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
    """Return the experiment of a name.

    Raises:
        InputError: there is no such experiment.
    """
    if name not in EXPERIMENTS:
        remedy = f"one of {', '.join(EXPERIMENTS)}"
        raise InputError.of(name, "no experiment has this name", remedy)
    return EXPERIMENTS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A row of a comparison: stated value, our value, and why they differ.

    Attributes:
        quantity: the compared quantity.
        unit: its unit, "" if dimensionless.
        stated: the stated value, with its source; "" if there is none.
        ours: our value.
        why: why they differ, or the meaning of the value.
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
        stated: its other cells as printed; "" if the paper has none.
        ours: our values for these cells, in the paper's units.
    """

    name: str
    stated: tuple[str, ...]
    ours: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """A table of the paper in its layout, with stated and our values in every cell.

    Attributes:
        name: name in the paper, such as "Table 2".
        title: its content, with units.
        columns: heads; the first one is that of the rows' names.
        rows: rows, with one cell for each further column.
        why: why the values differ.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[PrintedRow, ...]
    why: str = ""

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the heads, which is a fault of this package."""
        for row in self.rows:
            if not len(row.stated) == len(row.ours) == len(self.columns) - 1:
                raise ValueError(
                    f"{self.name}, row {row.name!r}: {len(self.columns) - 1} cells, stated and ours"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction(Result):
    """The results of a reproduction; procedures add their settings and data for figures.

    Attributes:
        experiment: the experiment.
        comparisons: stated and our values.
        choices: our choices that the paper leaves open, one sentence each.
        printed: the paper's tables, in their layout.
    """

    experiment: Experiment
    comparisons: tuple[Comparison, ...]
    choices: tuple[str, ...]
    printed: tuple[PrintedTable, ...] = ()


def squared(text: str) -> str:
    """Return a unit or formula with superscript squares."""
    return text.replace("^2", "²")


def reproduce(name: str, progress: Progress = lambda _: None) -> Reproduction:
    """Reproduce an experiment.

    Args:
        name: one of `EXPERIMENTS`.
        progress: called with each step that begins.

    Raises:
        InputError: there is no such experiment.
    """
    return experiment(name).run(progress)
