"""Tauloop: kinematics, dynamics and identification of parallel robots from one description of a machine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tauloop.common.errors import (
    AssemblyError as AssemblyError,
    DescriptionError as DescriptionError,
    EngineError as EngineError,
    IdentificationError as IdentificationError,
    InputError as InputError,
    LogError as LogError,
    PoseError as PoseError,
    Problem as Problem,
    TauloopError as TauloopError,
)
from tauloop.common.names.deprecated import MovedModules
from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop import (
        authoring as authoring,
        calibration as calibration,
        common as common,
        compiler as compiler,
        design as design,
        display as display,
        drives as drives,
        dynamics as dynamics,
        elasticity as elasticity,
        equations as equations,
        export as export,
        formats as formats,
        geometry as geometry,
        identification as identification,
        integrate as integrate,
        kinematics as kinematics,
        logs as logs,
        mechanism as mechanism,
        model as model,
        motion as motion,
        simulation as simulation,
        study as study,
        testing as testing,
        verification as verification,
        viewer as viewer,
    )
    from tauloop.authoring import (
        ConvertOptions as ConvertOptions,
        NewMachineOptions as NewMachineOptions,
        convert as convert,
        new_machine as new_machine,
    )
    from tauloop.calibration import (
        CalibrationOptions as CalibrationOptions,
        Frame as Frame,
        PosePlanOptions as PosePlanOptions,
        calibrate as calibrate,
        plan_poses as plan_poses,
    )
    from tauloop.compiler import (
        Accelerations as Accelerations,
        Forces as Forces,
        State as State,
    )
    from tauloop.design import (
        ToleranceAllocationOptions as ToleranceAllocationOptions,
        ToleranceMapOptions as ToleranceMapOptions,
        allocate_tolerances as allocate_tolerances,
        tolerance_map as tolerance_map,
    )
    from tauloop.design.certification import (
        certify as certify,
        check_certificate as check_certificate,
    )
    from tauloop.design.certify_options import CertifyOptions as CertifyOptions
    from tauloop.design.synthesis.workflow import (
        SynthesisOptions as SynthesisOptions,
        synthesize as synthesize,
    )
    from tauloop.display import plot as plot
    from tauloop.drives import (
        BacklashOptions as BacklashOptions,
        BallbarOptions as BallbarOptions,
        DriveLineFitOptions as DriveLineFitOptions,
        DriveOptions as DriveOptions,
        TuningOptions as TuningOptions,
        backlash_map as backlash_map,
        ballbar as ballbar,
        fit_drive_line as fit_drive_line,
        simulate_drive_line as simulate_drive_line,
        tune_drive_line as tune_drive_line,
    )
    from tauloop.dynamics import (
        ActuatorMap as ActuatorMap,
        DynamicsOptions as DynamicsOptions,
        MotorSizingOptions as MotorSizingOptions,
        forward_dynamics as forward_dynamics,
        inverse_dynamics as inverse_dynamics,
        load_motors as load_motors,
        size_motors as size_motors,
    )
    from tauloop.elasticity import (
        CompensationOptions as CompensationOptions,
        CompensationTableOptions as CompensationTableOptions,
        ElasticMapOptions as ElasticMapOptions,
        StaticComplianceOptions as StaticComplianceOptions,
        StiffnessOptions as StiffnessOptions,
        ThermalExpansionOptions as ThermalExpansionOptions,
        VibrationOptions as VibrationOptions,
        compensate as compensate,
        compensation_table as compensation_table,
        elastic_map as elastic_map,
        static_compliance as static_compliance,
        stiffness as stiffness,
        thermal_expansion as thermal_expansion,
        vibration as vibration,
    )
    from tauloop.equations.assembly import Assembly as Assembly
    from tauloop.export.c import (
        CompensationExportOptions as CompensationExportOptions,
        ExportOptions as ExportOptions,
        export_c as export_c,
        export_compensation as export_compensation,
    )
    from tauloop.export.controller import (
        ControllerOptions as ControllerOptions,
        export_controller as export_controller,
        follow_path_with_exported_code as follow_path_with_exported_code,
    )
    from tauloop.export.fmu import (
        FmuCoupling as FmuCoupling,
        FmuOptions as FmuOptions,
        co_simulate as co_simulate,
        export_fmu as export_fmu,
    )
    from tauloop.export.hil import PlantOptions as PlantOptions, run_plant as run_plant
    from tauloop.export.linuxcnc import (
        LinuxcncOptions as LinuxcncOptions,
        export_linuxcnc as export_linuxcnc,
    )
    from tauloop.export.ros2 import Ros2Options as Ros2Options, export_ros2 as export_ros2
    from tauloop.export.transmission import (
        TransmissionOptions as TransmissionOptions,
        export_transmission as export_transmission,
    )
    from tauloop.formats import (
        ImportOptions as ImportOptions,
        RodRecognition as RodRecognition,
        dumps as dumps,
        load as load,
        loads as loads,
    )
    from tauloop.identification import (
        DriveStiffnessOptions as DriveStiffnessOptions,
        ExcitationOptions as ExcitationOptions,
        IdentificationOptions as IdentificationOptions,
        LinkOptions as LinkOptions,
        LogDescriptionOptions as LogDescriptionOptions,
        PreparationOptions as PreparationOptions,
        SubtractionOptions as SubtractionOptions,
        SymbolicBaseOptions as SymbolicBaseOptions,
        TermOptions as TermOptions,
        describe_log as describe_log,
        identify as identify,
        identify_drive_stiffness as identify_drive_stiffness,
        link_parameters as link_parameters,
        plan_excitation as plan_excitation,
        subtract_actuator_forces as subtract_actuator_forces,
        symbolic_base_parameters as symbolic_base_parameters,
    )
    from tauloop.identification.online import (
        ExternalWrenchOptions as ExternalWrenchOptions,
        TrackOptions as TrackOptions,
        estimate_external_wrench as estimate_external_wrench,
        track_parameters as track_parameters,
    )
    from tauloop.kinematics import (
        CheckOptions as CheckOptions,
        DescribeOptions as DescribeOptions,
        JacobianOptions as JacobianOptions,
        KinematicsOptions as KinematicsOptions,
        ModeOptions as ModeOptions,
        ReductionOptions as ReductionOptions,
        WorkspaceOptions as WorkspaceOptions,
        assembly_modes as assembly_modes,
        check as check,
        describe as describe,
        forward_kinematics as forward_kinematics,
        inverse_kinematics as inverse_kinematics,
        jacobian as jacobian,
        reduce_model as reduce_model,
        working_modes as working_modes,
        workspace as workspace,
    )
    from tauloop.logs import Sensors as Sensors
    from tauloop.mechanism import Mechanism as Mechanism, shipped_machines as shipped_machines
    from tauloop.model import (
        CountOptions as CountOptions,
        EquationOptions as EquationOptions,
        FunctionOptions as FunctionOptions,
        Model as Model,
        Payload as Payload,
        count_operations as count_operations,
        load_function as load_function,
        write_equations as write_equations,
    )
    from tauloop.motion import StrokeOptions as StrokeOptions, plan_stroke as plan_stroke
    from tauloop.simulation import (
        ControlOptions as ControlOptions,
        CycleOptions as CycleOptions,
        ElasticSimulationOptions as ElasticSimulationOptions,
        FreeMotionOptions as FreeMotionOptions,
        PathOptions as PathOptions,
        RoundTripOptions as RoundTripOptions,
        SimulationOptions as SimulationOptions,
        TransferOptions as TransferOptions,
        follow_path as follow_path,
        plan_cycle as plan_cycle,
        plan_path as plan_path,
        plan_transfer as plan_transfer,
        simulate as simulate,
        simulate_elastic as simulate_elastic,
    )
    from tauloop.simulation.observers import (
        CollisionDetectionOptions as CollisionDetectionOptions,
        simulate_collision_detection as simulate_collision_detection,
    )
    from tauloop.study import (
        FoldOptions as FoldOptions,
        StudyOptions as StudyOptions,
        fold_logs as fold_logs,
        load_study as load_study,
        run_study as run_study,
    )
    from tauloop.verification import doctor as doctor
    from tauloop.verification.engines.verification import (
        VerifyOptions as VerifyOptions,
        verify as verify,
    )
    from tauloop.viewer import (
        StreamOptions as StreamOptions,
        ViewOptions as ViewOptions,
        run_stream as run_stream,
        view as view,
    )
    from tauloop.viewer.pages import (
        ReportOptions as ReportOptions,
        demo as demo,
        write_report as write_report,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__, "__version__")

#: Version of the distribution.
__version__ = "0.2.0"

# Old import paths work for one more release.
sys.meta_path.append(MovedModules())
