"""Parts of reports: tables, plots and scenes by class of the result; packages may add parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

from tauloop.common.extensions import Registry

if TYPE_CHECKING:  # the list of parts needs none of these imports
    from matplotlib.figure import Figure

    from tauloop.display.pieces import Paragraph, Piece, Plot, Printed


class ReportPart(ABC):
    """The report of the results of one class, as data.

    Tables are printed in the terminal and shown on pages. Plots are drawn into figures and shown on
    pages. The data classes are those of `tauloop.display.pieces`.

    Attributes:
        name: key of the part's data in JSON; file names of its figures contain it.
        takes: name of the class of results, such as ``Calibration``; the part also reports
            derived classes.
    """

    name: str
    takes: str

    @abstractmethod
    def tables(self, result: Any) -> Iterable[Printed]:
        """Return tables, paragraphs and texts, in order."""

    def plots(self, _: Any) -> Iterable[Paragraph | Plot]:
        """Return plots, and paragraphs that summarize them."""
        return ()

    def scene(self, _: Any) -> Iterable[Piece]:
        """Return the machine in motion, for pages."""
        return ()

    def data(self, _: Any) -> Mapping[str, Any]:
        """Return data for JSON in addition to the result's own: numbers, strings, lists, mappings."""
        return {}

    def figure(self, result: Any) -> Figure | None:
        """Return a figure of the plots, or None if there are no plots."""
        from tauloop.display.pieces import Plot

        pieces = list(self.plots(result))
        if not any(isinstance(piece, Plot) for piece in pieces):
            return None
        from tauloop.display.renderers.matplotlib_renderer import plots_figure
        from tauloop.display.titles import result_title

        return plots_figure(result_title(result), pieces)

    def pieces(self, result: Any) -> Iterable[Piece]:
        """Return the contents of a page: the machine in motion, plots, and tables."""
        from tauloop.display.pieces import Plot

        scene = list(self.scene(result))
        motion_plots = [piece for piece in scene if isinstance(piece, Plot)]
        yield from (piece for piece in scene if piece not in motion_plots)
        yield from self.plots(result)
        yield from motion_plots
        yield from _page_pieces(self.tables(result))


def _page_pieces(items: Iterable[object]) -> Iterator[Piece]:
    """Yield tables and paragraphs, without empty ones; texts become paragraphs.

    Rich tables, which parts of other packages could yield before 0.2, are omitted with a warning.
    """
    from tauloop.display.pieces import Paragraph, Table

    for item in items:
        piece = Paragraph(text=item.strip()) if isinstance(item, str) else item
        if isinstance(piece, Table) or (isinstance(piece, Paragraph) and piece.text.strip()):
            yield piece
        elif not isinstance(piece, Paragraph):
            from tauloop.common.names.deprecated import warn

            warn(f"{type(piece).__name__} in ReportPart.tables", "tauloop.display.Table")


@final
class _BuiltinPart(ReportPart):
    """A part of Tauloop, whose functions are imported when they are called.

    A function is specified as ``module:function``, or as ``module`` if the function has the name of
    the module. Modules of tables are below `tauloop.display.tables`, those of plots and scenes
    below `tauloop.display.plots`, those of figures below `tauloop`.
    """

    def __init__(
        self, takes: str, tables: str, *, plots: str = "", scene: str = "", figure: str = ""
    ) -> None:
        self.name = self.takes = takes
        self.functions = {
            "tables": tables
            if tables.startswith("tauloop.")
            else f"tauloop.display.tables.{tables}",
            "plots": plots and f"tauloop.display.plots.{plots}",
            "scene": scene and f"tauloop.display.plots.{scene}",
            "figure": figure and f"tauloop.{figure}",
        }

    def tables(self, result: Any) -> Iterable[Printed]:
        """See `ReportPart`."""
        tables: Iterable[Printed] = self._call("tables", result)
        return tables

    def plots(self, result: Any) -> Iterable[Paragraph | Plot]:
        """See `ReportPart`."""
        return self._call("plots", result) if self.functions["plots"] else ()

    def scene(self, result: Any) -> Iterable[Piece]:
        """See `ReportPart`."""
        return self._call("scene", result) if self.functions["scene"] else ()

    def figure(self, result: Any) -> Figure | None:
        """See `ReportPart`."""
        if self.functions["figure"]:
            figure: Figure | None = self._call("figure", result)
            return figure
        return super().figure(result)

    def _call(self, kind: str, result: Any) -> Any:
        """Return the tables, plots, scene or figure of a result."""
        module, _, name = self.functions[kind].partition(":")
        return getattr(import_module(module), name or module.rpartition(".")[2])(result)


_MACHINE_DRAWING = "display.renderers.machine_drawing:reference_figure"
_SIMULATION = {
    "plots": "motion.simulation_plots",
    "scene": "motion.simulation_plots:simulation_scene",
}
_FASTEST = {
    "plots": "motion.motion_plots:fastest_plots",
    "scene": "motion.motion_plots:motion_scene",
}
_BUILTIN_PARTS = (
    _BuiltinPart("AnalyticRegrouping", "identification.regrouping_tables"),
    _BuiltinPart("CableSimulation", "motion.simulation_tables", **_SIMULATION),
    _BuiltinPart(
        "Calibration",
        "identification.calibration_tables",
        plots="identification.calibration_plots",
        scene="identification.calibration_plots:calibration_scene",
    ),
    _BuiltinPart(
        "CircleTest",
        "drives.drive_tables:circle_tables",
        plots="motion.drive_plots:circle_plots",
        scene="motion.drive_plots:circle_scene",
    ),
    _BuiltinPart(
        "ControlComparison",
        "motion.control_tables",
        plots="motion.control_plots",
        scene="motion.control_plots:control_scene",
    ),
    _BuiltinPart(
        "Cycle",
        "motion.cycle_tables",
        plots="motion.motion_plots:cycle_plots",
        scene="motion.motion_plots:motion_scene",
    ),
    _BuiltinPart("CertificateCheck", "design.certificate_tables:certificate_check_tables"),
    _BuiltinPart("Certification", "design.certificate_tables:certificate_tables"),
    _BuiltinPart("CompiledCache", "machines.cache_tables"),
    _BuiltinPart("Conversion", "machines.conversion_tables", figure=_MACHINE_DRAWING),
    _BuiltinPart(
        "Description", "machines.machine_tables:description_tables", figure=_MACHINE_DRAWING
    ),
    _BuiltinPart(
        "DriveStep",
        "drives.drive_tables",
        plots="motion.drive_plots:step_plots",
        scene="motion.drive_plots:step_scene",
    ),
    _BuiltinPart(
        "Excitation",
        "identification.excitation_tables",
        plots="identification.excitation_plots",
        scene="identification.excitation_plots:excitation_scene",
    ),
    _BuiltinPart(
        "ElasticSimulation",
        "elasticity.motion_tables",
        plots="elastic_plots:elastic_simulation_plots",
    ),
    _BuiltinPart("Export", "tauloop.export.tables:export_tables"),
    _BuiltinPart("CompensationExport", "tauloop.export.tables:compensation_export_tables"),
    _BuiltinPart("CompensatedPoses", "elasticity.compensation_tables:compensated_tables"),
    _BuiltinPart("CompensationTable", "elasticity.compensation_tables:lookup_tables"),
    _BuiltinPart("DriveStiffness", "drives.drive_stiffness_tables"),
    _BuiltinPart(
        "ExternalWrench", "identification.wrench_tables", plots="identification.wrench_plots"
    ),
    _BuiltinPart("FastestMotion", "motion.fastest_tables", **_FASTEST),
    _BuiltinPart("FoldedLogs", "tauloop.study.tables:fold_tables"),
    _BuiltinPart("FmuExport", "tauloop.export.fmu.tables:fmu_tables"),
    _BuiltinPart("FittedPlant", "drives.plant_tables"),
    _BuiltinPart("Checkup", "machines.checkup_tables"),
    _BuiltinPart("CollisionDetection", "motion.collision_tables", plots="motion.collision_plots"),
    _BuiltinPart("Inspection", "machines.machine_tables:check_tables", figure=_MACHINE_DRAWING),
    _BuiltinPart("Jacobian", "motion.kinematics_tables:jacobian_tables"),
    _BuiltinPart("LinkParameters", "identification.link_tables"),
    _BuiltinPart("ControllerExport", "tauloop.export.tables:controller_tables"),
    _BuiltinPart("StreamedMotion", "machines.view_tables:stream_tables"),
    _BuiltinPart("PlantRun", "tauloop.export.hil.tables:plant_run_tables"),
    _BuiltinPart("LinuxcncExport", "tauloop.export.tables:linuxcnc_tables"),
    _BuiltinPart("TransmissionExport", "tauloop.export.tables:transmission_tables"),
    _BuiltinPart(
        "MachineIdentification",
        "identification.machine_identification_tables",
        plots="identification.identification_plots",
        scene="identification.identification_plots:identification_scene",
    ),
    _BuiltinPart("MachineIndex", "machines.index_tables"),
    _BuiltinPart(
        "Modes",
        "motion.modes_tables",
        plots="motion.modes_plots",
        scene="motion.modes_plots:modes_scene",
        figure="display.renderers.modes_drawing:modes_figure",
    ),
    _BuiltinPart(
        "MotionForces",
        "motion.dynamics_tables",
        plots="motion.dynamics_plots",
        scene="motion.dynamics_plots:dynamics_scene",
    ),
    _BuiltinPart("MotorSizing", "motion.motor_tables", plots="motion.motor_plots"),
    _BuiltinPart("NewMachine", "machines.new_machine_tables", figure=_MACHINE_DRAWING),
    _BuiltinPart(
        "OperationCounts",
        "machines.cost_tables",
        plots="comparison_plots:cost_plots",
        scene="comparison_plots:cost_scene",
    ),
    _BuiltinPart(
        "ParameterTrack", "identification.track_tables", plots="identification.track_plots"
    ),
    _BuiltinPart(
        "PlannedMotion",
        "motion.motion_tables",
        plots="motion.motion_plots",
        scene="motion.motion_plots:motion_scene",
    ),
    _BuiltinPart(
        "PlayMap", "drives.drive_tables:play_tables", plots="motion.drive_plots:play_plots"
    ),
    _BuiltinPart(
        "PosePlan",
        "identification.poses_tables",
        plots="identification.poses_plots",
        scene="identification.poses_plots:poses_scene",
    ),
    _BuiltinPart("Poses", "motion.kinematics_tables:poses_tables"),
    _BuiltinPart("Reduction", "machines.reduction_tables"),
    _BuiltinPart("RoundTrip", "motion.simulation_tables", **_SIMULATION),
    _BuiltinPart("Simulation", "motion.simulation_tables", **_SIMULATION),
    _BuiltinPart(
        "StaticCompliance",
        "elasticity.elastic_tables:static_compliance_tables",
        plots="elastic_plots:static_compliance_plots",
    ),
    _BuiltinPart(
        "Stiffness",
        "elasticity.elastic_tables:stiffness_tables",
        plots="elastic_plots:stiffness_plots",
    ),
    _BuiltinPart("StudyResult", "tauloop.study.tables:study_tables"),
    _BuiltinPart(
        "Synthesis",
        "design.synthesis_tables",
        plots="synthesis_plots",
        scene="synthesis_plots:synthesis_scene",
    ),
    _BuiltinPart("FreeMotionComparison", "motion.simulation_tables", **_SIMULATION),
    _BuiltinPart(
        "ThermalExpansion",
        "elasticity.elastic_tables:thermal_tables",
        plots="elastic_plots:thermal_plots",
    ),
    _BuiltinPart("Transfer", "motion.transfer_tables"),
    _BuiltinPart("Tuning", "drives.tuning_tables"),
    _BuiltinPart("LogDescription", "identification.log_tables:log_description_tables"),
    _BuiltinPart("TwoRuns", "identification.log_tables:two_runs_tables"),
    _BuiltinPart(
        "VerifiedMachine",
        "machines.verification_tables",
        plots="comparison_plots:verification_plots",
        scene="comparison_plots:verification_scene",
    ),
    _BuiltinPart("ToleranceAllocation", "design.allocation_tables"),
    _BuiltinPart("ToleranceMap", "design.tolerance_tables"),
    _BuiltinPart(
        "Vibration",
        "elasticity.elastic_tables:vibration_tables",
        plots="elastic_plots:vibration_plots",
    ),
    _BuiltinPart(
        "View", "machines.view_tables", figure="display.renderers.machine_drawing:view_figure"
    ),
    _BuiltinPart("WrittenEquations", "machines.equations_text:equations_lines"),
    _BuiltinPart(
        "Workspace",
        "motion.workspace_tables",
        plots="motion.workspace_plots",
        scene="motion.workspace_plots:workspace_scene",
        figure="display.renderers.result_figures:workspace_figure",
    ),
    _BuiltinPart("WrittenReport", "machines.report_tables"),
)
#: All parts by name: Tauloop's parts, named after their results, and the parts of other packages.
PARTS: Mapping[str, ReportPart] = Registry(
    "tauloop.parts", ReportPart, {part.name: part for part in _BUILTIN_PARTS}
)


def parts_of(result: object) -> tuple[ReportPart, ...]:
    """Return the parts that report a result, those of Tauloop first."""
    class_names = {base.__name__ for base in type(result).__mro__}
    return tuple(part for part in PARTS.values() if part.takes in class_names)
