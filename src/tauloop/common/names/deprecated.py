"""Deprecated names, which work for one more release with a DeprecationWarning.

Old names are defined only in the tables below. Imports, attributes of packages, keywords of
functions, fields of options and the page on migration follow from them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, wraps
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tauloop.common.names.suggestions import names_elsewhere, peer_names

if TYPE_CHECKING:
    from tauloop.common.errors import Problem

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: Release in which the old names are removed.
REMOVED_IN = "0.3"
#: Old packages and modules, each with the packages that now contain its public names.
MODULES: Mapping[str, tuple[str, ...]] = {
    "tauloop.assembly": ("tauloop.equations.assembly", "tauloop.equations"),
    "tauloop.calibration.problem.stations": ("tauloop.calibration.problem.measured_poses",),
    "tauloop.codegen": ("tauloop.compiler.c",),
    "tauloop.conversion": ("tauloop.authoring", "tauloop.export.ros2"),
    "tauloop.datasets": ("tauloop.common.datasets",),
    "tauloop.engines": ("tauloop.verification.engines", "tauloop.verification"),
    "tauloop.errors": ("tauloop.common.errors",),
    "tauloop.estimation": (
        "tauloop.simulation.observers",
        "tauloop.identification.online",
        "tauloop.export.microcontroller",
    ),
    "tauloop.extensions": ("tauloop.common.extensions",),
    "tauloop.fmu": ("tauloop.export.fmu",),
    "tauloop.gpu": ("tauloop.export.gpu",),
    "tauloop.health": ("tauloop.verification",),
    "tauloop.hil": ("tauloop.export.hil",),
    "tauloop.linuxcnc": ("tauloop.export.linuxcnc",),
    "tauloop.options": ("tauloop.common.options",),
    "tauloop.pages": ("tauloop.viewer.pages",),
    "tauloop.programs": ("tauloop.compiler",),
    "tauloop.progress": ("tauloop.common.progress",),
    "tauloop.realtime": ("tauloop.export.controller",),
    "tauloop.reduction": ("tauloop.mechanism.reduction",),
    "tauloop.report": ("tauloop.display",),
    "tauloop.result": ("tauloop.common.result",),
    "tauloop.solids": ("tauloop.geometry",),
    "tauloop.templates": ("tauloop.authoring",),
}
#: Packages from which public names moved to other packages, each with the packages that now contain
#: these names.
SPLIT_PACKAGES: Mapping[str, tuple[str, ...]] = {
    "tauloop.drives": ("tauloop.export.drive_control",),
    "tauloop.kinematics": ("tauloop.dynamics", "tauloop.geometry"),
    "tauloop.mechanism": ("tauloop.formats",),
    "tauloop.model": ("tauloop.export.c",),
}
#: Public names that were renamed, each with its new name in the same package. A key with a package
#: applies to this package only.
NAMES: Mapping[str, str] = {
    "Evidence": "Diagnostic",
    "FastestOptions": "PathOptions",
    "Health": "SolveDiagnostics",
    "HitDetection": "CollisionDetection",
    "HitOptions": "CollisionDetectionOptions",
    "PlantFitOptions": "DriveLineFitOptions",
    "PlayOptions": "BacklashOptions",
    "RegroupingOptions": "SymbolicBaseOptions",
    "SwingComparison": "FreeMotionComparison",
    "SwingOptions": "FreeMotionOptions",
    "Rows": "Table",
    "Station": "MeasuredPose",
    "StationFunctions": "MeasuredPoseFunctions",
    "StationState": "MeasuredPoseState",
    "Words": "Paragraph",
    "control": "follow_path",
    "cycle": "plan_cycle",
    "detect_hit": "simulate_collision_detection",
    "drive": "simulate_drive_line",
    "excite": "plan_excitation",
    "fastest_motion": "plan_path",
    "fit_plant": "fit_drive_line",
    "plan_motion": "plan_stroke",
    "play": "backlash_map",
    "control_compiled": "follow_path_with_exported_code",
    "reduce": "reduce_model",
    "regroup": "symbolic_base_parameters",
    "subtract": "subtract_actuator_forces",
    "tauloop.motion.plan_cycle": "cycle_trajectory",
    "transfer": "plan_transfer",
    "tauloop.viewer.save_film": "save_animation",
    "tune": "tune_drive_line",
    "tauloop.motion.Aim": "Objective",
    "tauloop.motion.Progress": "LawSample",
    "tauloop.motion.Together": "CombinedPath",
    "tauloop.drives.minimise": "minimize",
    "tauloop.drives.weighted_sum": "scaled_sum",
    "tauloop.drives.weighted_worst": "scaled_worst",
    "tauloop.identification.dynamic_leaves": "dynamic_parameters",
    "tauloop.identification.fit": "fit_regression",
    "tauloop.identification.leaf_ties": "parameter_ties",
    "tauloop.identification.split": "split_data",
    "tauloop.identification.merge": "merge_data",
    "tauloop.identification.fold": "merge_triangles",
    "tauloop.identification.ties": "named_ties",
    "tauloop.identification.cones": "consistency_cones",
    "tauloop.identification.clipped": "clipped_channels",
    "tauloop.identification.spikes": "channels_with_spikes",
    "tauloop.identification.unexcited": "unexcited_directions",
    "tauloop.identification.Regularisation": "Regularization",
    "tauloop.identification.RegularisedBody": "RegularizedBody",
    "tauloop.identification.Term": "ParameterTerm",
    "tauloop.identification.OWN": "OWN_FORCE",
    "tauloop.identification.CONNECTED": "CONNECTED_FORCE",
    "tauloop.calibration.inspect": "measurement_problems",
    "tauloop.calibration.solve": "solve_calibration",
    "tauloop.calibration.Direction": "ParameterDirection",
    "tauloop.calibration.Comparison": "UnknownsComparison",
}
#: Old names of attributes and methods of classes, each with its new name. The classes define them
#: with `old_attribute`.
ATTRIBUTES: Mapping[str, str] = {
    "Actuator.copper": "Actuator.copper_loss",
    "Actuator.turns": "Actuator.is_rotary",
    "ActuatorLoad.turns": "ActuatorLoad.is_rotary",
    "ActuatorFit.alone": "ActuatorFit.single_error",
    "ActuatorFit.standardised": "ActuatorFit.standardized",
    "CalibrationProblem.stations": "CalibrationProblem.measured_poses",
    "Controller.correction": "Controller.force_callback",
    "CriteriaGradients.by": "CriteriaGradients.gradients",
    "CriteriaGradients.weighted_sum": "CriteriaGradients.scaled_sum",
    "CriteriaGradients.weighted_worst": "CriteriaGradients.scaled_worst",
    "CombinedFriction.turns": "CombinedFriction.is_angular",
    "Coupling.turns": "Coupling.is_angular",
    "ErrorStatistics.poses": "ErrorStatistics.n_poses",
    "ErrorStatistics.series": "ErrorStatistics.instrument",
    "ElementMotion.turns": "ElementMotion.is_rotational",
    "LinkParameters.unseen": "LinkParameters.unidentifiable",
    "LineInertia.turns": "LineInertia.is_rotary",
    "MeasuredLog.how": "MeasuredLog.effective_preparation",
    "Precision.returned": "Precision.projection_tolerance",
    "Condensed.beside": "Condensed.joined_with",
    "ConsistentIdentification.regularised": "ConsistentIdentification.regularized",
    "Ellipse.first": "Ellipse.semi_axis_a",
    "Ellipse.second": "Ellipse.semi_axis_b",
    "EncoderFit.standardised": "EncoderFit.standardized",
    "HybridFunctions.preload": "HybridFunctions.preload_directions",
    "Instrument.assumed": "Instrument.default_reading",
    "Instrument.gathered": "Instrument.readings_from_rows",
    "Instrument.touches": "Instrument.is_contact",
    "Loop.differences": "Loop.uses_velocity_differences",
    "Loop.first": "Loop.initial_force",
    "Loop.forward": "Loop.feedforward",
    "Model.determined": "Model.measurable_output",
    "Model.freed": "Model.with_free_parameters",
    "Model.motion": "Model.functions",
    "Exchanges.of": "Exchanges.total",
    "Lap.figures": "Lap.deviations",
    "ControlledMotion.figures": "ControlledMotion.summary",
    "PlayMap.figures": "PlayMap.displacements",
    "PlayMap.play": "PlayMap.backlash",
    "PlayMap.space": "PlayMap.workspace",
    "Workspace.figures": "Workspace.arrays",
    "FreePlanner.again": "FreePlanner.replan",
    "FreePlanner.aim": "FreePlanner.objective",
    "CalibrationProblem.reach": "CalibrationProblem.context",
    "MachineJoint.turns": "MachineJoint.is_angular",
    "MachineLayout.turns": "MachineLayout.rotation_mode",
    "Model.ties": "Model.parameter_map",
    "Motion.counted": "Motion.with_continuous_angles",
    "NewMachine.cures": "NewMachine.remedies",
    "Observability.silent": "Observability.n_unobservable",
    "Obstacle.nearest": "Obstacle.projection_target",
    "Outlier.pose": "Outlier.pose_index",
    "PoseErrors.turn": "PoseErrors.rotation",
    "ParetoFront.of": "ParetoFront.criteria_names",
    "RandomStates.different": "RandomStates.distinct_states",
    "Path.looks": "Path.n_shape_points",
    "Result.evidence": "Result.diagnostics",
    "Selection.silent": "Selection.n_unobservable",
    "Transfer.optimise": "Transfer.objective",
    "Solid.colour": "Solid.color",
    "Tolerances.of": "Tolerances.tolerance",
    "SampledMotion.rates": "SampledMotion.states",
    "TwoRuns.apart": "TwoRuns.motion_mismatch",
    "View.save_film": "View.save_animation",
    "Verification.different": "Verification.distinct_states",
    "VerifiedMachine.different": "VerifiedMachine.distinct_states",
    "Viewer.moment": "Viewer.time",
}
#: Old keywords of functions and old fields of classes of options, each with its new name, by the
#: function or class. A function also accepts the old fields of its options. A current name of a
#: class or function takes precedence over an old name.
KEYWORDS: Mapping[str, Mapping[str, str]] = {
    "Actuator": {"copper": "copper_loss", "turns": "is_rotary"},
    "BacklashOptions": {"play": "backlash", "section": "pose"},
    "BallbarOptions": {
        "center": "pose",
        "parameters": "values",
        "presliding": "presliding_distance",
        "rtol": "tolerance",
        "watch": "record",
    },
    "CalibrationOptions": {
        "against": "compare_with",
        "draws": "random_splits",
        "processes": "workers",
    },
    "CertifyOptions": {"largest": "maximize_box"},
    "CollisionDetectionOptions": {
        "at": "collision_time",
        "draws": "error_samples",
        "frequency": "rate",
        "friction": "friction_error",
        "hit": "wrench",
        "lasting": "collision_duration",
        "machines": "error_samples",
        "masses": "mass_error",
        "resolution": "quantization",
        "stiffness": "controller_bandwidth",
    },
    "CriteriaGradients.scaled_sum": {"weights": "scales"},
    "CriteriaGradients.scaled_worst": {"weights": "scales"},
    "ControlOptions": {
        "differences": "velocity_differences",
        "frequency": "rate",
        "resolution": "quantization",
        "watch": "record",
    },
    "ControllerOptions": {
        "astray": "max_pose_jump",
        "differences": "velocity_differences",
        "frequency": "rate",
        "hold": "hold_samples",
        "late": "max_lateness",
        "law": "controller",
    },
    "ConvertOptions": {"to": "format"},
    "CycleOptions": {"time": "duration"},
    "CountOptions": {"entry": "coordinates"},
    "Curve": {"first": "derivative", "second": "second_derivative"},
    "DescribeOptions": {"parameters": "table"},
    "DriveLineFitOptions": {
        "motors": "motor_setup",
        "polish": "local_evaluations",
        "rtol": "tolerance",
        "threads": "workers",
        "tolerance": "value_tolerance",
        "unknowns": "bounds",
    },
    "DriveOptions": {
        "motors": "motor_setup",
        "parameters": "values",
        "rtol": "tolerance",
        "watch": "record",
    },
    "DynamicsOptions": {"entry": "coordinates", "position": "pose"},
    "Ellipse": {"first": "semi_axis_a", "second": "semi_axis_b"},
    "ExcitationLimits": {
        "acceleration": "max_acceleration",
        "force": "force_share",
        "speed": "max_velocity",
    },
    "ExcitationOptions": {
        "after": "previous_motions",
        "beside": "stated_condition",
        "drive": "direct_drives",
        "polished": "polish",
        "processes": "workers",
    },
    "FreePlanner.__init__": {"aim": "objective"},
    "ExcitationTask": {"first": "preferred_parameters", "held": "hold", "space": "channels"},
    "EquationOptions": {"entry": "coordinates"},
    "ExportOptions": {"entry": "coordinates"},
    "ExtendedSpace": {"stabilisation": "stabilization"},
    "ExternalWrenchOptions": {"free": "contact_free", "free_log": "contact_free_log"},
    "FitOptions": {"exchanges": "swap_search_time", "refuse": "reject_implausible"},
    "FunctionOptions": {"entry": "coordinates"},
    "FmuOptions": {"free": "free_parameters", "version": "fmi_version"},
    "IdentificationOptions": {"parameters": "unknowns"},
    "ImportOptions": {"platform": "platform_body", "model": "model_name"},
    "Integration": {
        "own": "integrator",
        "atol": "absolute_tolerance",
        "rtol": "tolerance",
        "step": "fixed_step",
    },
    "LawSample": {"first": "derivative", "second": "second_derivative"},
    "LimitOptions": {"frequency": "rate"},
    "LinuxcncOptions": {"acceleration": "max_acceleration", "period": "servo_period"},
    "MotorSizing.for_all": {"turns": "is_rotary"},
    "MotorSizingOptions": {"entry": "coordinates"},
    "ModeOptions": {"most_modes": "max_modes"},
    "MonodromyOptions": {"most_rounds": "max_rounds", "most_solutions": "max_solutions"},
    "Model.functions": {"entry": "coordinates"},
    "Motion.derivatives": {"last": "acceleration_or_force"},
    "Motion.products": {"last": "acceleration_or_force", "steps": "directions"},
    "Multipliers": {"stabilisation": "stabilization"},
    "Objective": {
        "condition": "max_condition",
        "copper": "copper_loss",
        "longest": "max_duration",
        "optimise": "optimize",
    },
    "Observation": {"printed": "measured", "weights": "scales"},
    "PhysicallyConsistent": {"regularisation": "regularization"},
    "PlantOptions": {"alone": "without_controller", "frequency": "rate"},
    "PoseLimits": {"turn": "max_rotation"},
    "PosePlanOptions": {
        "center": "ball_center",
        "priors": "tolerance_priors",
        "tolerance": "usual_correction",
        "turn_noise": "angle_noise",
    },
    "PreparationOptions": {"highest": "max_frequency", "velocity": "velocity_source"},
    "ReductionOptions": {"shares_parameters": "share_parameters", "speed": "velocity_spread"},
    "ReportOptions": {"film": "animation"},
    "Sampling": {"differences": "velocity_differences"},
    "SimulationOptions": {"position": "pose", "watch": "record"},
    "SolverOptions": {"seconds": "start_time_limit", "tolerance": "optimality"},
    "StrokeOptions": {
        "entry": "coordinates",
        "acceleration": "max_acceleration",
        "from_heading": "start_heading",
        "speed": "max_velocity",
        "time": "duration",
        "to_heading": "end_heading",
        "turn": "rotation",
    },
    "SubtractionOptions": {"largest_delay": "max_delay"},
    "TermOptions": {"payload": "payload_body"},
    "TrackOptions": {"friction": "friction_change", "payload": "max_payload"},
    "TransferOptions": {
        "condition": "max_condition",
        "copper": "copper_loss",
        "longest": "max_duration",
        "optimise": "optimize",
        "turn": "rotation",
    },
    "TuningOptions": {
        "method": "search",
        "motors": "motor_setup",
        "rtol": "tolerance",
        "start": "initial",
        "threads": "workers",
        "weights": "scales",
    },
    "VerifyOptions": {"condition": "max_condition"},
    "ViewOptions": {
        "beside": "compare",
        "colouring": "color",
        "entry": "coordinates",
        "position": "pose",
    },
    "WorkspaceOptions": {"section": "pose"},
    "assembly_modes": {"position": "actuators"},
    "calibrate": {"mechanism": "machine"},
    "convert": {"source": "machine"},
    "inverse_kinematics": {"platform": "pose"},
    "jacobian": {"platform": "pose"},
    "link_parameters": {"mechanism": "machine"},
    "plan_excitation": {"mechanism": "machine"},
    "reduce_model": {"mechanism": "machine"},
    "scaled_sum": {"weights": "scales"},
    "scaled_worst": {"weights": "scales"},
    "solve_calibration": {"most": "max_evaluations"},
    "symbolic_base_parameters": {"mechanism": "machine"},
    "working_modes": {"position": "pose"},
}
#: Old names of members of enumerations, each with its new name.
MEMBERS: Mapping[str, str] = {
    "Ending.END": "Ending.SUCCESS",
    "Ending.LOOPS": "Ending.LOOPS_LOST",
    "Ending.STEP": "Ending.STEP_TOO_SMALL",
    "Ending.STEPS": "Ending.MAX_STEPS",
    "Outcome.ENDED": "Outcome.EVENT",
    "Outcome.INVALID": "Outcome.INVALID_PARAMETERS",
    "Outcome.OK": "Outcome.SUCCESS",
    "Outcome.TOO_LONG": "Outcome.MAX_STEPS",
}
#: Old keys of JSON, each with its new key. Results contain the new keys; paths in study files
#: (`keep`) may contain old or new keys. Keys inside other keys are paths; "*" is any item.
JSON_KEYS: Mapping[str, str] = {
    "apart": "motion_mismatch",
    "cures": "remedies",
    "errors_after/*/poses": "errors_after/*/n_poses",
    "errors_after/*/series": "errors_after/*/instrument",
    "errors_before/*/poses": "errors_before/*/n_poses",
    "errors_before/*/series": "errors_before/*/instrument",
    "evidence": "diagnostics",
    "actuators/*/drive_line/inertias/*/turns": "actuators/*/drive_line/inertias/*/is_rotary",
    "loads/*/turns": "loads/*/is_rotary",
    "optimise": "objective",
    "outliers/*/pose": "outliers/*/pose_index",
    "play": "backlash",
    "regularised": "regularized",
    "silent": "n_unobservable",
    "turn": "rotation",
    "unseen": "unidentifiable",
}
#: Old keys of machine files and of files of measurements, each with its new key.
MACHINE_KEYS: Mapping[str, str] = {
    "colour": "color",
    "copper": "copper_loss",
    "together": "reading_number",
}
#: Old commands of `tauloop`, each with the words that replace it. Three of them are now groups of
#: commands; such a name is the old command if the next word is not a command of the group.
COMMANDS: Mapping[str, str] = {
    "machines": "list",
    "schema": "env schema",
    "doctor": "env doctor",
    "cache": "env cache",
    "play": "accuracy backlash",
    "ballbar": "accuracy ballbar",
    "equations": "model equations",
    "cost": "model cost",
    "reduce": "model reduce",
    "regroup": "model base-parameters",
    "link-parameters": "model link-parameters",
    "motion": "plan stroke",
    "fastest": "plan path",
    "transfer": "plan transfer",
    "cycle": "plan cycle",
    "excite": "plan excitation",
    "poses": "plan poses",
    "forces": "log forces",
    "track": "log track",
    "subtract": "log subtract",
    "study": "study run",
    "fold": "identify --folded folded",
    "control": "control follow",
    "detect-hit": "control collision",
    "drive": "drive step",
    "tune": "drive tune",
    "fit-plant": "drive fit",
    "reproduce": "paper reproduce",
}
#: Old options of planned strokes.
_STROKE = {
    "--path": "--shape",
    "--from": "--start",
    "--to": "--end",
    "--turn": "--rotation",
    "--from-heading": "--start-heading",
    "--to-heading": "--end-heading",
    "--time": "--duration",
    "--speed": "--max-velocity",
    "--acceleration": "--max-acceleration",
}
#: Old options of commands, each with its replacement: another option (with "*FACTOR" if a bare
#: number had another unit), or an argument in capitals. The key is the current command, or the old
#: command if the option now has another meaning. After the command, the key may contain options
#: that must be on the command line. The key "" applies to every command.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "": {
        "--differences": "--velocity-differences",
        "--entry": "--coordinates",
        "--figure": "--out",
        "--json-file": "--out",
        "--threads": "--workers",
        "--processes": "--workers",
        "--model": "--model-name",
        "--platform": "--platform-body",
        "--rtol": "--tolerance",
        "--quantisation": "--quantization",
        "--range": "--ranges",
        "--sensitivity": "--sensitivities",
        "--watch": "--record",
    },
    "new": {"--from": "--template"},
    "show": {"--parameters": "--table"},
    "view": {
        "--png": "--out",
        "--film": "--out",
        "--beside": "--compare",
        "--colouring": "--color",
        "--position": "--pose",
        "--watch": "--watch",
    },
    "view --entry actuators": {"--position": "--actuators"},
    "convert": {"--out": "OUT", "--to": "--format"},
    "ik": {"--platform": "--pose"},
    "jacobian": {"--platform": "--pose"},
    "modes": {"--position": "--actuators"},
    "modes --working": {"--position": "--pose"},
    "workspace": {"--section": "--pose", "--colour": "--color"},
    "dynamics": {"--position": "--pose"},
    "dynamics --entry actuators": {"--position": "--actuators"},
    "simulate": {
        "--position": "--pose",
        "--swing": "--free",
        "--frequency": "--spring-frequency",
        "--step": "--fixed-step",
        "--atol": "--absolute-tolerance",
    },
    "plan stroke": {**_STROKE, "--frequency": "--rate"},
    "plan path": {**_STROKE, "--c-array": "--out", "--samples": "--table-rate"},
    "plan transfer": {
        "--c-array": "--out",
        "--samples": "--table-rate",
        "--from": "--start",
        "--to": "--end",
        "--turn": "--rotation",
        "--box": "--boxes",
        "--sphere": "--spheres",
        "--condition": "--max-condition",
        "--copper": "--copper-loss",
        "--longest": "--max-duration",
        "--optimise": "--optimize",
    },
    "plan cycle": {"--c-array": "--out", "--samples": "--table-rate", "--time": "--duration"},
    "plan excitation": {
        "--frequency": "--rate",
        "--speed": "--max-velocity",
        "--acceleration": "--max-acceleration",
        "--force": "--force-share",
        "--drive": "--direct-drives",
        "--space": "--channels",
        "--tolerance": "--optimality",
        "--beside": "--stated-condition",
        "--moving": "--no-rests",
        "--after": "--previous-motions",
        "--first": "--preferred-parameters",
        "--seconds": "--start-time-limit",
    },
    "plan poses": {
        "--center": "--ball-center",
        "--turn": "--max-rotation",
        "--turn-noise": "--angle-noise",
        "--tolerance": "--usual-correction",
        "--priors": "--tolerance-priors",
        "--no-priors": "--no-tolerance-priors",
    },
    "identify": {
        "--write": "--out",
        "--folder": "--folded",
        "--scheduler": "--workers",
        "--parameters": "--unknowns",
        "--velocity": "--velocity-source",
        "--highest": "--max-frequency",
        "--payload": "--payload-body",
    },
    "calibrate": {
        "--against": "--compare-with",
        "--draws": "--random-splits",
        "--exchanges": "--swap-search-time",
        "--hal": "--out",
        "--ini": "--out",
        "-p": "--parameters",
        "--prior": "--priors",
        "--bootstrap": "--replicates",
    },
    "verify": {"--condition": "--max-condition"},
    "export controller": {
        "--late": "--max-lateness",
        "--law": "--controller",
        "--hold": "--hold-samples",
        "--astray": "--max-pose-jump",
    },
    "export fmu": {
        "--law": "--controller",
        "--hold": "--hold-samples",
        "--astray": "--max-pose-jump",
        "--free": "--free-parameters",
        "--version": "--fmi-version",
    },
    "export linuxcnc": {"--acceleration": "--max-acceleration", "--period": "--servo-period"},
    "control follow": {
        **_STROKE,
    },
    "control collision": {
        **_STROKE,
        "--hit": "--wrench",
        "--masses": "--mass-error",
        "--stiffness": "--controller-bandwidth",
        "--friction": "--friction-error",
        "--draws": "--error-samples",
        "--machines": "--error-samples",
        "--lasting": "--collision-duration",
        "--at": "--collision-time",
    },
    "drive step": {"--control-c": "--out", "--motors": "--motor-setup", "--beside": "--compare"},
    "drive tune": {
        "--weight": "--scales",
        "--weights": "--scales",
        "--method": "--search",
        "--start": "--initial",
        "--motors": "--motor-setup",
    },
    "drive fit": {
        "--unknown": "--bounds",
        "--motors": "--motor-setup",
        "--polish": "--local-evaluations",
    },
    "fit-plant": {"--tolerance": "--value-tolerance"},
    "accuracy backlash": {"--section": "--pose", "--play": "--backlash *1e-6"},
    "accuracy ballbar": {"--center": "--pose", "--presliding": "--presliding-distance *1e-6"},
    "model equations": {
        "--text": "--out",
        "--latex": "--out",
        "--python": "--out",
        "--name": "--names",
    },
    "model reduce": {
        "--massless": "--massless-rods",
        "--lumped": "--lumped-rods",
        "--speed": "--velocity-spread",
    },
    "model base-parameters": {"--product": "--products", "--length": "--lengths"},
    "log forces": {"--free": "--contact-free", "--free-log": "--contact-free-log"},
    "log track": {
        "--tracker-c": "--out",
        "--fit": "FIT",
        "--payload": "--max-payload",
        "--friction": "--friction-change",
    },
    "log subtract": {"--largest-delay": "--max-delay"},
    "run plant": {"--alone": "--without-controller"},
    "report": {"--film": "--animation", "--no-film": "--no-animation"},
    "design certify": {"--largest": "--maximize-box"},
    "study run": {"--scheduler": "--workers"},
    "env schema": {"--drive": "--drive-line"},
}


def warn(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a name is deprecated, at the line of the caller that uses it.

    Args:
        old: the deprecated name.
        new: the name that replaces it.
        stacklevel: frames between that line and this function, as in `warnings.warn`.
    """
    # `from package import name` first asks whether the name exists, and then gets it.
    if sys._getframe(stacklevel).f_code.co_name == "_handle_fromlist":
        return
    warnings.warn(
        f"{old} is deprecated and will be removed in Tauloop {REMOVED_IN}: use {new}",
        DeprecationWarning,
        stacklevel=stacklevel + 1,
    )


def warn_old_key(old: str, new: str, file: str, line: int) -> None:
    """Warn that a key of a machine file is deprecated, at its line in the file.

    The file is the user's, so the default filters of Python, which show deprecations in ``__main__``
    only, must not hide the warning.

    Args:
        old: the deprecated key.
        new: the key that replaces it.
        file: name of the file.
        line: line of the key.
    """
    text = f"{old} is deprecated and will be removed in Tauloop {REMOVED_IN}: use {new}"
    warnings.warn_explicit(text, DeprecationWarning, file, line, module="__main__")


def old_name(package: str, name: str) -> Any:
    """Return the object that a package had under an old name, with a warning.

    Raises:
        AttributeError: the name is unknown.
    """
    # imports and tools that inspect modules request names such as `__path__` and `__file__`
    if name.startswith("__"):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if f"{package}.{name}" in MODULES:
        return import_module(f"{package}.{name}")
    module = sys.modules.get(package)
    renamed = _renamed(package, name)
    if module is not None and renamed in vars(module).get("__all__", vars(module)):
        warn(f"{package}.{name}", f"{package}.{renamed}")
        return getattr(module, renamed)
    return _resolve_moved(package, name, MODULES.get(package) or SPLIT_PACKAGES.get(package, ()))


def _renamed(package: str, name: str) -> str:
    """Return the new name of a public name; an empty text if the name is not an old one."""
    return NAMES.get(f"{package}.{name}") or NAMES.get(name, "")


def _resolve_moved(package: str, name: str, candidates: Sequence[str]) -> Any:
    """Return the object of a name of an old package from the packages that replace it.

    Raises:
        AttributeError: none of them has the name.
    """
    for candidate in candidates:
        module = import_module(candidate)
        for current in (name, _renamed(candidate, name)):
            if current in getattr(module, "__all__", vars(module)):
                warn(f"{package}.{name}", f"{candidate}.{current}", stacklevel=4)
                return getattr(module, current)
    text = f"module {package!r} has no attribute {name!r}"
    parent = sys.modules.get(package)
    known = [] if parent is None else vars(parent).get("__all__", ())
    names = peer_names(name, known) or names_elsewhere(name)
    if names:
        text += f": did you mean {' or '.join(names)}?"
    raise AttributeError(text, name=name, obj=sys.modules.get(package))


def old_attribute(old: str, new: str) -> Any:
    """Return a property that provides an attribute under its old name, with a warning.

    Args:
        old: the deprecated name.
        new: the name that replaces it.
    """

    def renamed(self: object) -> Any:
        owner = type(self).__name__
        warn(f"{owner}.{old}", f"{owner}.{new}", stacklevel=2)
        return getattr(self, new)

    renamed.__doc__ = f"Deprecated: see `{new}`."
    return property(renamed)


def renew_overrides(owner: type) -> None:
    """Move the attributes that a derived class defines under old names to the new names.

    Each of them gives a warning. Call this function in `__init_subclass__` of a class that others
    derive from.

    Args:
        owner: the derived class.
    """
    bases = {base.__name__ for base in owner.__mro__[1:]}
    for old, new in ATTRIBUTES.items():
        base, _, old_attribute_name = old.partition(".")
        if base in bases and old_attribute_name in vars(owner):
            new_name = new.rpartition(".")[2]
            warn(f"{owner.__name__}.{old_attribute_name}", new_name, stacklevel=4)
            setattr(owner, new_name, vars(owner)[old_attribute_name])
            delattr(owner, old_attribute_name)


@cache
def old_fields(owner: type) -> Mapping[str, str]:
    """Return the old names of the fields of a class and its bases, each with its new name."""
    names: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        names |= KEYWORDS.get(base.__name__, {})
    return {old: new for old, new in names.items() if old not in _field_names(owner)}


def old_keywords(function: str, *options: type) -> Mapping[str, str]:
    """Return the old keywords of a function and of the classes of its options, with new names."""
    names = dict(KEYWORDS.get(function, {}))
    for owner in options:
        names |= old_fields(owner)
    return names


def _field_names(owner: type) -> Collection[str]:
    """Return the names of the fields of a dataclass."""
    return getattr(owner, "__dataclass_fields__", {}).keys()


def renew_keywords(
    owner: str, old_names: Mapping[str, str], values: Mapping[str, Any], stacklevel: int = 3
) -> dict[str, Any]:
    """Return keyword arguments by their current names, with a warning for each old name.

    An old name is kept if its new name, or another old name of it, is given too: the caller rejects
    it with `duplicate_problem`.

    Args:
        owner: name of the function or class that is called.
        old_names: its old keywords, each with its new name.
        values: the keyword arguments.
        stacklevel: frames between the caller's line and this function, as in `warnings.warn`.
    """
    renewed: dict[str, Any] = {}
    for name, value in values.items():
        new = old_names.get(name, name)
        if new != name and new not in values and new not in renewed:
            warn(f"{owner}({name}=...)", f"{new}=...", stacklevel=stacklevel + 1)
            renewed[new] = value
        else:
            renewed[name] = value
    return renewed


def duplicate_problem(old: str, new: str) -> Problem:
    """Return the problem of an old name that is given together with its new name."""
    from tauloop.common.errors import Problem

    what = f"is the old name of {new}, which is also given"
    return Problem(old, what, f"give only {new}")


def with_old_keywords(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return a method that also accepts its old keywords in `KEYWORDS`, with a warning."""
    name = method.__qualname__
    old_names = KEYWORDS[name]

    @wraps(method)
    def renewing(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        if old_names.keys().isdisjoint(keywords):
            return method(*arguments, **keywords)
        renewed = renew_keywords(name, old_names, keywords, stacklevel=2)
        repeated = [old for old in old_names if old in renewed]
        if repeated:
            from tauloop.common.errors import InputError

            raise InputError([duplicate_problem(old, old_names[old]) for old in repeated])
        return method(*arguments, **renewed)

    return renewing


class _MovedModule:
    """A loader of an old module, whose names are looked up in the packages that replace it."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return a module with the old name."""
        module = ModuleType(spec.name, f"Deprecated: see {', '.join(MODULES[spec.name])}.")
        module.__getattr__ = lambda name: old_name(spec.name, name)  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are resolved when they are used."""


class MovedModules:
    """A finder of modules under their old names; Python calls it after all other finders."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the specification of an old module; None for all other names."""
        return ModuleSpec(fullname, _MovedModule()) if fullname in MODULES else None  # type: ignore[arg-type]
