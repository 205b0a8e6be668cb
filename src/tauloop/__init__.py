"""Tauloop: kinematics, dynamics and identification of parallel robots from one description of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.errors import (
    AssemblyError,
    DescriptionError,
    EngineError,
    IdentificationError,
    InputError,
    LogError,
    PoseError,
    Problem,
    TauloopError,
)
from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.assembly import Assembly
    from tauloop.calibration import CalibrationOptions, PosePlanOptions, calibrate, plan_poses
    from tauloop.drives import (
        BallbarOptions,
        DriveOptions,
        PlantFitOptions,
        PlayOptions,
        TuningOptions,
        ballbar,
        drive,
        fit_plant,
        play,
        tune,
    )
    from tauloop.engines.verification import VerifyOptions, verify
    from tauloop.formats import ConvertOptions, convert, load, loads
    from tauloop.identification import (
        ExcitationOptions,
        IdentificationOptions,
        RegroupingOptions,
        SubtractionOptions,
        excite,
        identify,
        regroup,
        subtract,
    )
    from tauloop.kinematics import (
        CheckOptions,
        DescribeOptions,
        JacobianOptions,
        KinematicsOptions,
        ModeOptions,
        ReductionOptions,
        WorkspaceOptions,
        assembly_modes,
        check,
        describe,
        forward_kinematics,
        inverse_kinematics,
        jacobian,
        reduce,
        working_modes,
        workspace,
    )
    from tauloop.mechanism import Mechanism, shipped_machines
    from tauloop.model import CountOptions, FunctionOptions, Model, count_operations, load_function
    from tauloop.motion import StrokeOptions, plan_motion
    from tauloop.programs import Forces, State
    from tauloop.simulation import ControlOptions, SimulationOptions, control, simulate
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Assembly": "assembly",
            **dict.fromkeys(("CalibrationOptions", "PosePlanOptions", "calibrate", "plan_poses"), "calibration"),
            **dict.fromkeys(
                (
                    "BallbarOptions",
                    "DriveOptions",
                    "PlantFitOptions",
                    "PlayOptions",
                    "TuningOptions",
                    "ballbar",
                    "drive",
                    "fit_plant",
                    "play",
                    "tune",
                ),
                "drives",
            ),
            **dict.fromkeys(("VerifyOptions", "verify"), "engines.verification"),
            **dict.fromkeys(("ConvertOptions", "convert", "load", "loads"), "formats"),
            **dict.fromkeys(
                (
                    "ExcitationOptions",
                    "IdentificationOptions",
                    "RegroupingOptions",
                    "SubtractionOptions",
                    "excite",
                    "identify",
                    "regroup",
                    "subtract",
                ),
                "identification",
            ),
            **dict.fromkeys(
                (
                    "CheckOptions",
                    "DescribeOptions",
                    "JacobianOptions",
                    "KinematicsOptions",
                    "ModeOptions",
                    "ReductionOptions",
                    "WorkspaceOptions",
                    "assembly_modes",
                    "check",
                    "describe",
                    "forward_kinematics",
                    "inverse_kinematics",
                    "jacobian",
                    "reduce",
                    "working_modes",
                    "workspace",
                ),
                "kinematics",
            ),
            **dict.fromkeys(("Mechanism", "shipped_machines"), "mechanism"),
            **dict.fromkeys(
                (
                    "CountOptions",
                    "FunctionOptions",
                    "Model",
                    "count_operations",
                    "load_function",
                ),
                "model",
            ),
            **dict.fromkeys(("StrokeOptions", "plan_motion"), "motion"),
            **dict.fromkeys(("Forces", "State"), "programs"),
            **dict.fromkeys(("ControlOptions", "SimulationOptions", "control", "simulate"), "simulation"),
        },
    )

__version__ = "0.1.0"

__all__ = [
    "Assembly",
    "AssemblyError",
    "BallbarOptions",
    "CalibrationOptions",
    "CheckOptions",
    "ControlOptions",
    "ConvertOptions",
    "CountOptions",
    "DescribeOptions",
    "DescriptionError",
    "DriveOptions",
    "EngineError",
    "ExcitationOptions",
    "Forces",
    "FunctionOptions",
    "IdentificationError",
    "IdentificationOptions",
    "InputError",
    "JacobianOptions",
    "KinematicsOptions",
    "LogError",
    "Mechanism",
    "ModeOptions",
    "Model",
    "PlantFitOptions",
    "PlayOptions",
    "PoseError",
    "PosePlanOptions",
    "Problem",
    "ReductionOptions",
    "RegroupingOptions",
    "SimulationOptions",
    "State",
    "StrokeOptions",
    "SubtractionOptions",
    "TauloopError",
    "TuningOptions",
    "VerifyOptions",
    "WorkspaceOptions",
    "__version__",
    "assembly_modes",
    "ballbar",
    "calibrate",
    "check",
    "control",
    "convert",
    "count_operations",
    "describe",
    "drive",
    "excite",
    "fit_plant",
    "forward_kinematics",
    "identify",
    "inverse_kinematics",
    "jacobian",
    "load",
    "load_function",
    "loads",
    "plan_motion",
    "plan_poses",
    "play",
    "reduce",
    "regroup",
    "shipped_machines",
    "simulate",
    "subtract",
    "tune",
    "verify",
    "working_modes",
    "workspace",
]
