"""The parts of reports: what a command prints of a result, and draws; packages may bring more of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

from tauloop.common.extensions import Offered

if TYPE_CHECKING:  # none need be imported to know which parts there are
    from matplotlib.figure import Figure
    from rich.console import RenderableType

    from tauloop.display.pieces import Piece


class ReportPart(ABC):
    """One part of what is reported of results of some kind.

    Attributes:
        name: what it is called; key of its data in JSON, and in the names of its figures.
        takes: name of the class of results that it takes, such as ``Calibration``; those of derived
            classes too.
    """

    name: str
    takes: str

    @abstractmethod
    def tables(self, result: Any) -> Iterable[RenderableType]:
        """What is printed, one below the other: tables of Rich, texts, lines."""

    def data(self, _: Any) -> Mapping[str, Any]:
        """The same for machines, beside the result's own JSON: plain numbers, texts, lists, mappings."""
        return {}

    def figure(self, _: Any) -> Figure | None:
        """A picture; None where there is nothing to draw."""
        return None

    def pieces(self, result: Any) -> Iterable[Piece]:
        """What stands of it on a page (`tauloop.display.pieces`); what is printed, without a word of the part."""
        from tauloop.display.pieces import printed

        return printed(self.tables(result))


@final
class _OwnPart(ReportPart):
    """A part of Tauloop's: functions of a result, imported when there is one."""

    def __init__(self, takes: str, tables: str, figure: str = "", page: str = "") -> None:
        self.name = self.takes = takes
        self._tables, self._figure, self._page = tables, figure, page

    def tables(self, result: Any) -> Iterable[RenderableType]:
        """See `ReportPart`."""
        return _function(self._tables)(result)

    def figure(self, result: Any) -> Figure | None:
        """See `ReportPart`."""
        return _function(self._figure)(result) if self._figure else None

    def pieces(self, result: Any) -> Iterable[Piece]:
        """See `ReportPart`."""
        if self._page:
            yield from _function(self._page)(result)
        yield from super().pieces(result)


def _function(place: str) -> Any:
    """Return a function of a module: of this package, or of another one after a colon.

    The name of the function may be left out where it is the name of the module.
    """
    package, _, rest = place.rpartition(":")
    module, _, name = rest.partition(".")
    return getattr(import_module(f"tauloop.{package or 'display'}.{module}"), name or module)


_SIMULATIONS = (
    "simulation_table.simulation_tables",
    "simulation_figure.any_figure",
    "simulation_page",
)
_OWN = (
    _OwnPart("AnalyticRegrouping", "regrouping_table.regrouping_tables"),
    _OwnPart("CableSimulation", *_SIMULATIONS),
    _OwnPart(
        "Calibration",
        "calibration_table.calibration_tables",
        "calibration_figure",
        "calibration_page",
    ),
    _OwnPart(
        "CircleTest",
        "drive_table.circle_tables",
        "drive_circle_figure.circle_figure",
        "drive_page.circle_page",
    ),
    _OwnPart("ControlComparison", "control_table.control_tables", "control_figure", "control_page"),
    _OwnPart("Cycle", "cycle_table.cycle_tables", "cycle_figure", "motion_page"),
    _OwnPart("CompiledCache", "cache_table.cache_tables"),
    _OwnPart("Conversion", "conversion_table.conversion_lines", "machine_figure.reference_figure"),
    _OwnPart("Description", "machine_tables.description_tables", "machine_figure.reference_figure"),
    _OwnPart("DriveStep", "drive_table.drive_tables", "drive_figure", "drive_page"),
    _OwnPart(
        "Excitation", "excitation_table.excitation_tables", "excitation_figure", "excitation_page"
    ),
    _OwnPart("Export", "export:tables.export_tables"),
    _OwnPart("ExternalWrench", "wrench_table.wrench_tables", "wrench_figure", "wrench_page"),
    _OwnPart("FastestMotion", "fastest_table.fastest_tables", "fastest_figure", "motion_page"),
    _OwnPart("FoldedLogs", "study:fold_tables"),
    _OwnPart("FmuExport", "export.fmu:tables.fmu_tables"),
    _OwnPart("FittedPlant", "plant_table.plant_tables"),
    _OwnPart("Checkup", "health_table.health_lines"),
    _OwnPart("CollisionDetection", "hit_table.hit_tables", "hit_figure", "hit_page"),
    _OwnPart("Inspection", "machine_tables.check_tables", "machine_figure.reference_figure"),
    _OwnPart("Jacobian", "kinematics_table.jacobian_tables"),
    _OwnPart("LinkParameters", "link_table.link_tables"),
    _OwnPart("ControllerExport", "export:tables.controller_tables"),
    _OwnPart("PlantRun", "hil:tables.plant_run_tables"),
    _OwnPart("LinuxcncExport", "export:tables.linuxcnc_tables"),
    _OwnPart(
        "MachineIdentification",
        "machine_identification_tables",
        "identification_figures.machine_identification_figure",
        "identification_page",
    ),
    _OwnPart("MachineIndex", "index_table.index_tables"),
    _OwnPart("Modes", "modes_table.modes_tables", "modes_figure", "modes_page"),
    _OwnPart("MotionForces", "dynamics_table.dynamics_tables"),
    _OwnPart(
        "NewMachine", "new_machine_table.new_machine_tables", "machine_figure.reference_figure"
    ),
    _OwnPart("OperationCounts", "cost_tables", page="comparison_pages.cost_page"),
    _OwnPart("ParameterTrack", "track_table.track_tables", "track_figure", "track_page"),
    _OwnPart("PlannedMotion", "motion_table.motion_tables", page="motion_page"),
    _OwnPart("PlayMap", "drive_table.play_tables", "play_figure.section_figure"),
    _OwnPart("PosePlan", "poses_table.poses_tables", "poses_figure", "poses_page"),
    _OwnPart("Poses", "kinematics_table.poses_tables"),
    _OwnPart("Reduction", "reduction_table.reduction_tables"),
    _OwnPart("RoundTrip", *_SIMULATIONS),
    _OwnPart("Simulation", *_SIMULATIONS),
    _OwnPart("StudyResult", "study:tables.study_tables"),
    _OwnPart("SwingComparison", *_SIMULATIONS),
    _OwnPart("Transfer", "transfer_table.transfer_tables"),
    _OwnPart("Tuning", "tuning_table.tuning_tables"),
    _OwnPart("TwoRuns", "two_runs_tables"),
    _OwnPart(
        "VerifiedMachine",
        "verification_table.verification_tables",
        page="comparison_pages.verification_page",
    ),
    _OwnPart("View", "view_table.view_tables", "view_table.view_figure"),
    _OwnPart("WrittenEquations", "equations_text.equations_lines"),
    _OwnPart(
        "Workspace",
        "workspace_table.workspace_tables",
        "workspace_figure.section_figure",
        "workspace_page",
    ),
    _OwnPart("WrittenReport", "report_table.report_tables"),
)
#: All parts by name: Tauloop's own, each named after the results that it takes, then those that
#: packages bring.
PARTS: Mapping[str, ReportPart] = Offered(
    "tauloop.parts", ReportPart, {part.name: part for part in _OWN}
)


def parts_of(result: object) -> tuple[ReportPart, ...]:
    """The parts that take a result, Tauloop's own first."""
    kinds = {kind.__name__ for kind in type(result).__mro__}
    return tuple(part for part in PARTS.values() if part.takes in kinds)
