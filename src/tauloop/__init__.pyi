"""Types of the public names of Tauloop. Written by `python tools/write_stubs.py`: do not edit."""

# ruff: noqa: E501

import numpy as np
import xarray as xr
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from matplotlib.axes._axes import (
    Axes,
)
from pathlib import (
    Path,
)
from tauloop.authoring.conversion import (
    Conversion,
    ConvertOptions as ConvertOptions,
)
from tauloop.authoring.creation import (
    NewMachine,
    NewMachineOptions as NewMachineOptions,
)
from tauloop.calibration.fitting import (
    FitOptions,
)
from tauloop.calibration.measurements.instruments import (
    Frame as Frame,
    Instrument,
)
from tauloop.calibration.measurements.surfaces import (
    Vector3,
)
from tauloop.calibration.pose_selection.candidates import (
    PoseLimits,
)
from tauloop.calibration.pose_selection.plan import (
    PosePlan,
    PosePlanOptions as PosePlanOptions,
)
from tauloop.calibration.pose_selection.selection import (
    Criterion,
)
from tauloop.calibration.problem.residuals import (
    ResidualKind,
)
from tauloop.calibration.problem.unknowns import (
    Bounds,
    Tolerances,
)
from tauloop.calibration.result import (
    Calibration,
)
from tauloop.calibration.solving.losses import (
    Loss,
)
from tauloop.calibration.workflow import (
    CalibrationOptions as CalibrationOptions,
    Measurements,
    PhaseProgress,
)
from tauloop.common.datasets import (
    Tabular,
)
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
from tauloop.common.progress import (
    Progress,
)
from tauloop.compiler.c.calling.compiled import (
    CompiledFunction,
)
from tauloop.compiler.state import (
    Accelerations as Accelerations,
    Forces as Forces,
    State as State,
)
from tauloop.design.certification import (
    CertificateCheck,
    Certification,
)
from tauloop.design.certify_options import (
    CertifyOptions as CertifyOptions,
)
from tauloop.design.synthesis.workflow import (
    Synthesis,
    SynthesisOptions as SynthesisOptions,
)
from tauloop.design.tolerances.allocation import (
    ToleranceAllocation,
)
from tauloop.design.tolerances.allocation_problem import (
    ToleranceAllocationOptions as ToleranceAllocationOptions,
)
from tauloop.design.tolerances.sources import (
    AmountLists,
    Amounts,
)
from tauloop.design.tolerances.tolerance_map import (
    ToleranceMap,
    ToleranceMapOptions as ToleranceMapOptions,
)
from tauloop.drives.axis.workflow import (
    DriveOptions as DriveOptions,
    DriveStep,
)
from tauloop.drives.machine.circle import (
    CircleTest,
)
from tauloop.drives.machine.play import (
    PlayMap,
)
from tauloop.drives.machine.workflow import (
    BacklashOptions as BacklashOptions,
    BallbarOptions as BallbarOptions,
)
from tauloop.drives.parameter_values import (
    ParameterRange,
)
from tauloop.drives.plant_fit import (
    DriveLineFitOptions as DriveLineFitOptions,
    FittedPlant,
)
from tauloop.drives.plant_search import (
    Observation,
)
from tauloop.drives.tuning.evaluations import (
    Watcher,
)
from tauloop.drives.tuning.methods import (
    SearchMethod,
)
from tauloop.drives.tuning.tune import (
    Tuning,
    TuningOptions as TuningOptions,
)
from tauloop.dynamics.actuator_maps.actuator_map import (
    ActuatorMap as ActuatorMap,
)
from tauloop.dynamics.machine_dynamics import (
    DynamicsOptions as DynamicsOptions,
    MotionAccelerations,
    MotionForces,
)
from tauloop.dynamics.motor_catalogue import (
    MotorCatalogue,
)
from tauloop.dynamics.motor_sizing import (
    MotorSizing,
    MotorSizingOptions as MotorSizingOptions,
)
from tauloop.elasticity.compensation.compensate import (
    CompensatedPoses,
    CompensationOptions as CompensationOptions,
)
from tauloop.elasticity.compensation.lookup_table import (
    CompensationTable,
    CompensationTableOptions as CompensationTableOptions,
)
from tauloop.elasticity.heat.expansion import (
    ThermalExpansion,
    ThermalExpansionOptions as ThermalExpansionOptions,
)
from tauloop.elasticity.machine.poses import (
    PoseInput,
)
from tauloop.elasticity.static_analysis.maps import (
    ElasticMapOptions as ElasticMapOptions,
)
from tauloop.elasticity.static_analysis.rated_loads import (
    StaticCompliance,
    StaticComplianceOptions as StaticComplianceOptions,
)
from tauloop.elasticity.static_analysis.stiffness import (
    Stiffness,
    StiffnessOptions as StiffnessOptions,
)
from tauloop.elasticity.vibrations.machine_modes import (
    VibrationOptions as VibrationOptions,
)
from tauloop.elasticity.vibrations.vibration import (
    Vibration,
)
from tauloop.equations.assembly.assembly import (
    Assembly as Assembly,
)
from tauloop.equations.assembly.freedoms.locks import (
    Locks,
)
from tauloop.equations.ports import (
    Entry,
)
from tauloop.export.c.compensation_export import (
    CompensationExport,
    CompensationExportOptions as CompensationExportOptions,
)
from tauloop.export.c.export import (
    Export,
    ExportOptions as ExportOptions,
)
from tauloop.export.controller.export import (
    ControllerExport,
)
from tauloop.export.controller.options import (
    ControllerOptions as ControllerOptions,
)
from tauloop.export.fmu.coupling import (
    FmuCoupling as FmuCoupling,
)
from tauloop.export.fmu.export import (
    FmuExport,
    FmuOptions as FmuOptions,
)
from tauloop.export.hil.options import (
    PlantOptions as PlantOptions,
)
from tauloop.export.hil.run import (
    PlantRun,
)
from tauloop.export.linuxcnc.workflow import (
    LinuxcncExport,
    LinuxcncOptions as LinuxcncOptions,
)
from tauloop.export.ros2.ros_package import (
    Ros2Options as Ros2Options,
    Ros2Package,
)
from tauloop.export.transmission.export import (
    TransmissionExport,
    TransmissionOptions as TransmissionOptions,
)
from tauloop.formats.options import (
    ImportOptions as ImportOptions,
    RodRecognition as RodRecognition,
)
from tauloop.formats.xml.meshes import (
    MeshCopies,
)
from tauloop.identification.drive_stiffness import (
    DriveStiffness,
    DriveStiffnessOptions as DriveStiffnessOptions,
)
from tauloop.identification.estimation.error_models import (
    ErrorModel,
)
from tauloop.identification.estimation.estimators import (
    Estimator,
)
from tauloop.identification.estimation.result import (
    Identification,
)
from tauloop.identification.excitation.criteria import (
    ExcitationCriterion,
)
from tauloop.identification.excitation.options import (
    ExcitationOptions as ExcitationOptions,
)
from tauloop.identification.excitation.problem import (
    ExcitationTask,
)
from tauloop.identification.excitation.result import (
    Excitation,
)
from tauloop.identification.excitation.solver import (
    SolverOptions,
)
from tauloop.identification.excitation.starts import (
    Report as Report2,
)
from tauloop.identification.links.link_parameters import (
    LinkOptions as LinkOptions,
    LinkParameters,
)
from tauloop.identification.log_description import (
    LogDescription,
    LogDescriptionOptions as LogDescriptionOptions,
)
from tauloop.identification.machine_result import (
    MachineIdentification,
)
from tauloop.identification.online.external_wrench import (
    ExternalWrench,
    ExternalWrenchOptions as ExternalWrenchOptions,
)
from tauloop.identification.online.parameter_tracking import (
    ParameterTrack,
    TrackOptions as TrackOptions,
)
from tauloop.identification.options import (
    IdentificationOptions as IdentificationOptions,
    LogSource,
    PreparationOptions as PreparationOptions,
    TermOptions as TermOptions,
)
from tauloop.identification.parameters.base_estimates import (
    BaseEstimates,
)
from tauloop.identification.preparation.two_runs import (
    SubtractionOptions as SubtractionOptions,
    TwoRuns,
)
from tauloop.identification.regrouping.regroup import (
    SymbolicBaseOptions as SymbolicBaseOptions,
)
from tauloop.identification.regrouping.regrouping import (
    AnalyticRegrouping,
)
from tauloop.integrate.events import (
    Event,
)
from tauloop.integrate.integrators import (
    Integrator,
)
from tauloop.kinematics.description import (
    DescribeOptions as DescribeOptions,
    Description,
)
from tauloop.kinematics.homotopy.monodromy import (
    MonodromyOptions,
    Report,
)
from tauloop.kinematics.inspection import (
    CheckOptions as CheckOptions,
    Inspection,
)
from tauloop.kinematics.modes.modes import (
    ModeOptions as ModeOptions,
    Modes,
)
from tauloop.kinematics.named_kinematics import (
    Jacobian,
    JacobianOptions as JacobianOptions,
    KinematicsOptions as KinematicsOptions,
    Poses,
)
from tauloop.kinematics.reduction import (
    Reduction,
    ReductionOptions as ReductionOptions,
)
from tauloop.kinematics.workspaces.machine_workspace import (
    WorkspaceOptions as WorkspaceOptions,
)
from tauloop.kinematics.workspaces.map import (
    Workspace,
)
from tauloop.logs.measuring import (
    Sensors as Sensors,
)
from tauloop.mechanism.drive_line import (
    DriveLine,
)
from tauloop.mechanism.model import (
    Mechanism as Mechanism,
)
from tauloop.model.equation_text.operation_counts import (
    CountOptions as CountOptions,
    OperationCounts,
)
from tauloop.model.equation_text.written_equations import (
    EquationOptions as EquationOptions,
    WrittenEquations,
)
from tauloop.model.model import (
    MachineSource,
    Model as Model,
)
from tauloop.model.ready import (
    FunctionOptions as FunctionOptions,
)
from tauloop.model.tool import (
    Payload as Payload,
)
from tauloop.motion.cycles.stations import (
    CycleList,
)
from tauloop.motion.free.obstacles import (
    BoxObstacle,
    SphereObstacle,
)
from tauloop.motion.planning import (
    PlannedMotion,
    StrokeOptions as StrokeOptions,
)
from tauloop.motion.sampled import (
    SampledMotion,
)
from tauloop.simulation.cables.result import (
    CableSimulation,
)
from tauloop.simulation.controllers.laws import (
    Controller,
)
from tauloop.simulation.controllers.workflow import (
    ControlComparison,
    ControlOptions as ControlOptions,
)
from tauloop.simulation.elastic.result import (
    ElasticSimulation,
    ElasticSimulationOptions as ElasticSimulationOptions,
)
from tauloop.simulation.elastic.workflow import (
    MotionSource,
)
from tauloop.simulation.forces import (
    ForceLaw,
    Wrench,
)
from tauloop.simulation.free_motion_comparison import (
    FreeMotionComparison,
)
from tauloop.simulation.observers.collision_detection import (
    CollisionDetection,
    CollisionDetectionOptions as CollisionDetectionOptions,
)
from tauloop.simulation.planned.cycles import (
    Cycle,
    CycleOptions as CycleOptions,
)
from tauloop.simulation.planned.fastest import (
    FastestMotion,
    PathOptions as PathOptions,
)
from tauloop.simulation.planned.transfers import (
    Transfer,
    TransferOptions as TransferOptions,
)
from tauloop.simulation.round_trips import (
    RoundTrip,
)
from tauloop.simulation.routes import (
    Route,
)
from tauloop.simulation.simulation import (
    Simulation,
)
from tauloop.simulation.workflow import (
    AnyOptions,
    FreeMotionOptions as FreeMotionOptions,
    Integration,
    RoundTripOptions as RoundTripOptions,
    SimulationOptions as SimulationOptions,
)
from tauloop.study.file import (
    Study,
)
from tauloop.study.many_logs import (
    FoldOptions as FoldOptions,
    FoldedLogs,
)
from tauloop.study.reductions import (
    StudyResult,
)
from tauloop.study.workflow import (
    StudyOptions as StudyOptions,
)
from tauloop.verification.engines.verification import (
    VerifiedMachine,
    VerifyOptions as VerifyOptions,
)
from tauloop.verification.installation import (
    Checkup,
)
from tauloop.viewer.pages.showing import (
    Demo,
)
from tauloop.viewer.pages.workflow import (
    ReportOptions as ReportOptions,
    WrittenReport,
)
from tauloop.viewer.playback import (
    Playback,
)
from tauloop.viewer.streams.workflow import (
    StreamOptions as StreamOptions,
    StreamedMotion,
)
from tauloop.viewer.workflow import (
    View,
    ViewOptions as ViewOptions,
)
from typing import (
    overload,
)
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

__version__: str

def allocate_tolerances(
    machine: MachineSource,
    poses: PoseInput = None,
    options: ToleranceAllocationOptions | None = None,
    *,
    limits: Amounts | str | None = None,
    grades: Sequence[int] | str = (),
    tolerance_choices: AmountLists | str | None = None,
    costs: Amounts | str | None = None,
    calibrated: Amounts | str | None = None,
    noise: float | str | None = None,
    readings: int = 30,
    sources: ToleranceMapOptions | None = None,
    tolerances: Amounts | str | None = None,
    encoders: Amounts | str | None = None,
    clearances: Amounts | str | None = None,
    temperatures: float | str | Mapping[str, float | str] | None = None,
    wrench: str | Mapping[str, str | float] | Sequence[float] | None = None,
    common: Sequence[str] | str = (),
    samples: int = 200,
    seed: int = 0,
) -> ToleranceAllocation: ...

def assembly_modes(
    machine: MachineSource,
    actuators: object | None = None,
    options: ModeOptions | None = None,
    *,
    seed: int = 0,
    thorough: bool = False,
    monodromy: MonodromyOptions | None = None,
    max_modes: int = 10000,
    quiet_loops: int = 16,
    traced_loops: int = 2,
    traced_angles: int = 3,
    batch: int = 128,
    max_solutions: int = 2000,
    max_rounds: int = 120,
    report: Report | None = None,
) -> Modes: ...

def backlash_map(
    machine: MachineSource,
    options: BacklashOptions | None = None,
    *,
    backlash: str | float | Mapping[str, float] = 1e-05,
    plane: Sequence[str] | str = (),
    pose: Mapping[str, str | float] | str = ...,
    ranges: Mapping[str, tuple[float | str, float | str]] | str | None = None,
    progress: Progress | None = None,
) -> PlayMap: ...

def ballbar(
    machine: MachineSource,
    options: BallbarOptions | None = None,
    *,
    plane: Sequence[str] | str = ('x', 'y'),
    radius: float | str = 0.1,
    speed: float | str = 0.5,
    pose: Mapping[str, str | float] | str | None = None,
    only: Sequence[str] | str = (),
    values: Mapping[str, float | str] | str = ...,
    presliding_distance: float | str | None = None,
    tolerance: float = 1e-08,
    integrator: Integrator | None = None,
    until: Sequence[str | Event] | str = (),
    record: Sequence[str | Event] | str = (),
    progress: Progress | None = None,
) -> CircleTest: ...

def calibrate(
    machine: MachineSource,
    measurements: Measurements | Sequence[Measurements],
    options: CalibrationOptions | None = None,
    *,
    measure: str = 'position',
    noise: str | float | Sequence[str | float] | None = None,
    temperature_noise: str | float = 0.0,
    encoder_noise: str | float | None = None,
    data: Path | str | None = None,
    parameters: Sequence[str] | str = (),
    priors: Sequence[str] | str = (),
    tolerances: Tolerances | None = None,
    residuals: ResidualKind | str = ...,
    fit: FitOptions | None = None,
    equilibrium: bool = False,
    align: bool = False,
    compare_with: Sequence[str] | str = (),
    random_splits: int = 30,
    replicates: int = 0,
    leave_one_out: bool = False,
    seed: int = 0,
    workers: int = 1,
    bounds: Mapping[str, Bounds] | str = ...,
    loss: Loss | str = ...,
    leave_out_weak: bool = False,
    swap_search_time: float | str = 10.0,
    scale_covariance: bool = True,
    reject_implausible: bool = True,
    progress: PhaseProgress | None = None,
) -> Calibration: ...

def certify(
    machine: MachineSource,
    options: CertifyOptions | None = None,
    *,
    ranges: Mapping[str, tuple[float | str, float | str]] | str = ...,
    cylinder: Sequence[str] | str = (),
    pose: Mapping[str, float | str] | str = ...,
    parallel: float = 0.0,
    serial: float = 0.0,
    constraint: float = 0.0,
    moment_length: float | str | None = None,
    clearance: float | str = 0.0,
    rod_radii: Amounts | str | None = None,
    cone: float | str | None = None,
    cones: Amounts | str | None = None,
    static_forces: bool = False,
    wrenches: Mapping[str, tuple[float | str, float | str]] | str = ...,
    limits: Amounts | str | None = None,
    encoders: Amounts | str | None = None,
    drawing_limits: bool = False,
    deviations: Mapping[str, float | str] | str = ...,
    maximize_box: bool = False,
    max_boxes: int = 500000,
    time_limit: float | str = 60.0,
    progress: Progress | None = None,
) -> Certification: ...

def check(
    machine: MachineSource,
    options: CheckOptions | None = None,
    *,
    driven: bool = False,
) -> Inspection: ...

def check_certificate(
    machine: MachineSource,
    path: str | Path,
    *,
    progress: Progress | None = None,
) -> CertificateCheck: ...

@overload
def co_simulate(
    machine: MachineSource,
    options: ControlOptions,
    coupling: FmuCoupling,
    *,
    progress: Progress | None = ...,
) -> ControlComparison: ...
@overload
def co_simulate(
    machine: MachineSource,
    options: AnyOptions,
    coupling: FmuCoupling,
    *,
    progress: Progress | None = ...,
) -> Simulation: ...

def compensate(
    machine: MachineSource,
    poses: PoseInput = None,
    options: CompensationOptions | None = None,
    *,
    wrench: str | Mapping[str, str | float] | Sequence[float] | None = None,
    temperatures: float | str | Mapping[str, float | str] | None = None,
    expansions: float | str | Mapping[str, float | str] | None = None,
    weightless: bool = False,
    motion: Path | str | None = None,
    passes: int = 2,
    velocity: object | None = None,
    acceleration: object | None = None,
    wrenches: object | None = None,
    time: object | None = None,
) -> CompensatedPoses: ...

def compensation_table(
    machine: MachineSource,
    options: CompensationTableOptions | None = None,
    *,
    ranges: Mapping[str, tuple[float | str, float | str]] | str | None = None,
    table_tolerance: float | str = 1e-06,
    wrench: str | Mapping[str, str | float] | Sequence[float] | None = None,
    max_temperature: float | str = 5.0,
    expansions: float | str | Mapping[str, float | str] | None = None,
    weightless: bool = False,
    progress: Progress | None = None,
) -> CompensationTable: ...

def convert(
    machine: MachineSource,
    target: str | Path,
    options: ConvertOptions | None = None,
    *,
    format: str = '',
    solids: bool = True,
    side: Path | str | None = None,
    reading: ImportOptions | None = None,
    gravity: Sequence[float] | None = None,
    platform_body: str = '',
    independent: Sequence[str] | str = (),
    motors: Sequence[str] | str = (),
    rods: RodRecognition | None = None,
    model_name: str = '',
    keyframe: str = '',
    origins: bool = False,
    xacro: Sequence[str] | str = (),
    package_folders: Sequence[str | Path] | str = (),
) -> Conversion: ...

def count_operations(
    machine: MachineSource,
    options: CountOptions | None = None,
    *,
    coordinates: Entry | str = ...,
    derivatives: bool = False,
    on_platform: bool = False,
    lagrange_regressor: bool = False,
    progress: Progress | None = None,
) -> OperationCounts: ...

def demo(
    machine: MachineSource,
    path: str | Path,
    *,
    progress: Progress | None = None,
) -> Demo: ...

def describe(
    machine: MachineSource,
    options: DescribeOptions | None = None,
    *,
    table: bool = False,
    blocks: bool = False,
) -> Description: ...

def describe_log(
    machine: MachineSource,
    logs: str | Path | Sequence[str | Path],
    options: LogDescriptionOptions | None = None,
    *,
    columns: Mapping[str, str] | str = ...,
    units: Mapping[str, str] | str = ...,
    time: str = '',
    sample_rate: float | str | None = None,
    folder: Path | str | None = None,
) -> LogDescription: ...

def doctor(
) -> Checkup: ...

def dumps(
    machine: object,
    meshes: MeshCopies | None = None,
) -> str: ...

def elastic_map(
    workspace: Workspace,
    options: ElasticMapOptions | None = None,
    *,
    quantities: Sequence[str] | str = ('stiffness',),
    temperatures: float | str | Mapping[str, float | str] = 1.0,
    expansions: float | str | Mapping[str, float | str] | None = None,
    shear: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Workspace: ...

def estimate_external_wrench(
    machine: MachineSource,
    log: LogSource,
    options: ExternalWrenchOptions | None = None,
    *,
    contact_free: Sequence[tuple[float | str, float | str]] | str = (),
    contact_free_log: LogSource | None = None,
    components: Sequence[str] | str = (),
    observer: str = 'momentum',
    bandwidth: float | str = 100.0,
    alarms: float = 1.0,
    cutoff: float | str | None = None,
    order: int | None = None,
    trim: int | None = None,
    fill_gaps: int | None = None,
    resample: bool = False,
    within_limits: bool = False,
    progress: Progress | None = None,
) -> ExternalWrench: ...

def export_c(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: ExportOptions | None = None,
    *,
    functions: Sequence[str] | str = ('inverse_dynamics',),
    coordinates: Entry | str = ...,
    outputs: Sequence[str] | str = (),
    name: str | None = None,
    seed: int = 0,
    precision: str = 'double',
    target: str = 'generic',
    library: bool = False,
    progress: Progress | None = None,
) -> Export: ...

def export_compensation(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: CompensationExportOptions | None = None,
    *,
    name: str | None = None,
    precision: str = 'double',
    passes: int = 2,
    expansions: float | str | Mapping[str, float | str] | None = None,
    weightless: bool = False,
    seed: int = 0,
) -> CompensationExport: ...

def export_controller(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: ControllerOptions | None = None,
    *,
    controller: str = 'computed-torque',
    space: str = 'joint',
    bandwidth: float | str = 100.0,
    damping: float = 1.0,
    rate: float | str = 1000.0,
    velocity_differences: bool = False,
    limit: Sequence[float | str] | str = (),
    deceleration: Sequence[float | str] | str = (20.0,),
    hold_samples: int = 3,
    stuck: int = 10,
    stuck_motion: float | str = 0.01,
    max_lateness: float = 0.5,
    max_pose_jump: float | str = 0.05,
    settling: float | str = 0.1,
    name: str | None = None,
    progress: Progress | None = None,
) -> ControllerExport: ...

def export_fmu(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: FmuOptions | None = None,
    *,
    kind: str = 'plant',
    fmi_version: str = '3',
    free_parameters: Sequence[str] | str = (),
    name: str | None = None,
    tolerance: float = 1e-09,
    stiff: bool = False,
    binary: bool = True,
    controller: ControllerOptions | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> FmuExport: ...

def export_linuxcnc(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: LinuxcncOptions | None = None,
    *,
    name: str | None = None,
    max_acceleration: float | str = 1.0,
    servo_period: float | str = 0.001,
    compensation: bool = False,
    progress: Progress | None = None,
) -> LinuxcncExport: ...

def export_ros2(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: Ros2Options | None = None,
    *,
    package: str = '',
    maintainer: str = 'maintainer',
    email: str = 'maintainer@example.com',
    hardware: str = 'mock_components/GenericSystem',
    progress: Progress | None = None,
) -> Ros2Package: ...

def export_transmission(
    machine: MachineSource,
    folder: str | Path | None = None,
    options: TransmissionOptions | None = None,
    *,
    joints: Sequence[str] | str = (),
    formats: Sequence[str] | str = ('double', 'single', 'python', 'ros2'),
    name: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> TransmissionExport: ...

def fit_drive_line(
    line: DriveLine,
    steps: Sequence[Observation] | str | Path,
    options: DriveLineFitOptions | None = None,
    *,
    bounds: Mapping[str, ParameterRange] | str = ...,
    values: Mapping[str, float | str] = ...,
    motor_setup: str = 'as-written',
    value_tolerance: float = 0.01,
    generations: int = 60,
    population: int = 40,
    local_evaluations: int = 50,
    seed: int = 0,
    tolerance: float = 1e-07,
    workers: int = 1,
    progress: Progress | None = None,
) -> FittedPlant: ...

def fold_logs(
    machine: MachineSource,
    logs: Sequence[str | Path],
    folder: str | Path,
    options: FoldOptions | None = None,
    *,
    identification: IdentificationOptions | None = None,
    study: StudyOptions | None = None,
    add: Path | str | None = None,
    data: Path | str | None = None,
    validation: LogSource | str | None = None,
    hold_out: float = 0.3,
    unknowns: str = 'standard',
    output: str = 'actuators',
    estimator: str | Estimator = 'wls',
    column_error: float = 0.01,
    commanded: Sequence[LogSource] | str = (),
    disconnected: Sequence[LogSource] | str = (),
    errors: str | ErrorModel = 'autocorrelated',
    compare_logs: bool = False,
    essential: float | None = None,
    regroup: bool = False,
    consistent: bool = False,
    within_limits: bool = False,
    workers: int | str | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> FoldedLogs: ...

def follow_path(
    machine: MachineSource,
    options: ControlOptions | None = None,
    *,
    stroke: StrokeOptions | None = None,
    controller: Sequence[str | Controller] | str = (),
    horizon: int = 20,
    space: str = 'joint',
    bandwidth: float | str = 150.0,
    damping: float = 1.0,
    rate: float | str = 1000.0,
    delay: float | str = 0.0,
    quantization: str | float | Sequence[float] = 0.0,
    velocity_differences: bool = False,
    saturation: bool = True,
    plant: Mapping[str, str | float] | str | None = None,
    wrench: str | Mapping[str, str | float] | Sequence[str | float] | Wrench | None = None,
    settling: float | str = 0.0,
    method: str = 'rk4',
    integrator: Integrator | None = None,
    substeps: int = 4,
    until: Sequence[str | Event] | str = (),
    record: Sequence[str | Event] | str = (),
    sensitivities: Sequence[str] | str = (),
    shape: str = 'line',
    start: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    via: Sequence[str | Mapping[str, str | float] | Sequence[str | float]] | str = (),
    end: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    points: Path | str | None = None,
    rotation: Sequence[float | str] | str | None = None,
    start_heading: str | float | None = None,
    end_heading: str | float | None = None,
    terms: int = 5,
    frequencies: Sequence[float | str] | str = (0.1, 1.0),
    seed: int = 0,
    blend: float | str = 0.02,
    coordinates: Entry | str = ...,
    law: str = '3-4-5',
    duration: float | str | None = None,
    max_velocity: float | str | None = None,
    max_acceleration: float | str | None = None,
    share: float | None = None,
    returns: bool = False,
    progress: Progress | None = None,
) -> ControlComparison: ...

def follow_path_with_exported_code(
    machine: MachineSource,
    options: ControlOptions | None = None,
    *,
    stroke: StrokeOptions | None = None,
    controller: Sequence[str | Controller] | str = (),
    horizon: int = 20,
    space: str = 'joint',
    bandwidth: float | str = 150.0,
    damping: float = 1.0,
    rate: float | str = 1000.0,
    delay: float | str = 0.0,
    quantization: str | float | Sequence[float] = 0.0,
    velocity_differences: bool = False,
    saturation: bool = True,
    plant: Mapping[str, str | float] | str | None = None,
    wrench: str | Mapping[str, str | float] | Sequence[str | float] | Wrench | None = None,
    settling: float | str = 0.0,
    method: str = 'rk4',
    integrator: Integrator | None = None,
    substeps: int = 4,
    until: Sequence[str | Event] | str = (),
    record: Sequence[str | Event] | str = (),
    sensitivities: Sequence[str] | str = (),
    shape: str = 'line',
    start: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    via: Sequence[str | Mapping[str, str | float] | Sequence[str | float]] | str = (),
    end: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    points: Path | str | None = None,
    rotation: Sequence[float | str] | str | None = None,
    start_heading: str | float | None = None,
    end_heading: str | float | None = None,
    terms: int = 5,
    frequencies: Sequence[float | str] | str = (0.1, 1.0),
    seed: int = 0,
    blend: float | str = 0.02,
    coordinates: Entry | str = ...,
    law: str = '3-4-5',
    duration: float | str | None = None,
    max_velocity: float | str | None = None,
    max_acceleration: float | str | None = None,
    share: float | None = None,
    returns: bool = False,
    progress: Progress | None = None,
) -> ControlComparison: ...

def forward_dynamics(
    machine: MachineSource,
    position: object | None = None,
    velocity: object | None = None,
    force: object | None = None,
    *,
    coordinates: Entry | str = ...,
) -> MotionAccelerations: ...

def forward_kinematics(
    machine: MachineSource,
    actuators: object | None = None,
    options: KinematicsOptions | None = None,
    *,
    all_modes: bool = False,
    seed: int = 0,
    thorough: bool = False,
    within_limits: bool = False,
    encoder_noise: str | float | Mapping[str, str | float] | None = None,
    report: Report | None = None,
) -> Poses: ...

def identify(
    machine: MachineSource,
    logs: LogSource | Sequence[LogSource],
    options: IdentificationOptions | None = None,
    *,
    data: Path | str | None = None,
    validation: LogSource | str | None = None,
    hold_out: float = 0.3,
    unknowns: str = 'standard',
    output: str = 'actuators',
    estimator: str | Estimator = 'wls',
    column_error: float = 0.01,
    commanded: Sequence[LogSource] | str = (),
    disconnected: Sequence[LogSource] | str = (),
    errors: str | ErrorModel = 'autocorrelated',
    compare_logs: bool = False,
    essential: float | None = None,
    regroup: bool = False,
    consistent: bool = False,
    within_limits: bool = False,
    preparation: PreparationOptions | None = None,
    terms: TermOptions | None = None,
    velocity_source: str | None = None,
    cutoff: float | str | None = None,
    order: int | None = None,
    standstill: float | None = None,
    trim: int | None = None,
    decimation: int | None = None,
    scan_cutoffs: Sequence[float | str] | str = (),
    scan_orders: Sequence[int] = (1, 2, 4),
    scan_standstills: Sequence[float] = (),
    period: float | str | None = None,
    max_frequency: float | str | None = None,
    hold: Mapping[str, float | str] | str = ...,
    fill_gaps: int | None = None,
    resample: bool = False,
    known: Mapping[str, float | str] | str = ...,
    payload_body: Mapping[str, str] | str = ...,
    asymmetric: Sequence[str] | str = (),
    stribeck: Mapping[str, float | str] | str = ...,
    presliding: Mapping[str, float | str] | str = ...,
    gains: bool = False,
    progress: Progress | None = None,
) -> MachineIdentification: ...

def identify_drive_stiffness(
    machine: MachineSource,
    logs: LogSource | Sequence[LogSource],
    options: DriveStiffnessOptions | None = None,
    *,
    drives: Sequence[str] | str = (),
    cutoff: float | str | None = None,
    hold_out: float = 0.25,
) -> DriveStiffness: ...

def inverse_dynamics(
    machine: MachineSource,
    position: object | None = None,
    velocity: object | None = None,
    acceleration: object | None = None,
    options: DynamicsOptions | None = None,
    *,
    pose: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    actuators: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    motion: Path | str | None = None,
    from_momenta: bool = False,
    preload: str | float | Mapping[str, str | float] | None = None,
    joint_forces: bool = False,
    payload: float | str | Payload | None = None,
    coordinates: Entry | str | None = None,
    time: object | None = None,
    progress: Progress | None = None,
) -> MotionForces: ...

def inverse_kinematics(
    machine: MachineSource,
    pose: object | None = None,
    options: KinematicsOptions | None = None,
    *,
    all_modes: bool = False,
    seed: int = 0,
    thorough: bool = False,
    within_limits: bool = False,
    encoder_noise: str | float | Mapping[str, str | float] | None = None,
    report: Report | None = None,
) -> Poses: ...

def jacobian(
    machine: MachineSource,
    pose: object | None = None,
    *,
    options: JacobianOptions | None = None,
    of: str = 'tool',
    wrt: str | None = None,
    within_limits: bool = False,
    actuators: object | None = None,
) -> Jacobian: ...

def link_parameters(
    machine: MachineSource,
    estimates: BaseEstimates | Identification | MachineIdentification | str | Path,
    options: LinkOptions | None = None,
    *,
    known: Mapping[str, float | str | tuple[float, float]] | str = ...,
    confidence: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> LinkParameters: ...

def load(
    name_or_path: str | Path,
    side: str | Path | None = None,
    *,
    options: ImportOptions | None = None,
    gravity: Sequence[float] | None = None,
    platform_body: str = '',
    independent: Sequence[str] | str = (),
    motors: Sequence[str] | str = (),
    rods: RodRecognition | None = None,
    model_name: str = '',
    keyframe: str = '',
    origins: bool = False,
    xacro: Sequence[str] | str = (),
    package_folders: Sequence[str | Path] | str = (),
) -> Mechanism: ...

def load_function(
    machine: MachineSource,
    function: str = 'inverse_dynamics',
    outputs: Sequence[str] = (),
    *,
    options: FunctionOptions | None = None,
    coordinates: Entry | str = ...,
    free: Sequence[str] | str = (),
    formulation: str = 'newton-euler',
    locks: Locks = ...,
    side: Path | str | None = None,
    imported: ImportOptions | None = None,
    threads: int = 1,
    gravity: Sequence[float] | None = None,
    platform_body: str = '',
    independent: Sequence[str] | str = (),
    motors: Sequence[str] | str = (),
    rods: RodRecognition | None = None,
    model_name: str = '',
    keyframe: str = '',
    origins: bool = False,
    xacro: Sequence[str] | str = (),
    package_folders: Sequence[str | Path] | str = (),
    folder: Path | None = None,
) -> CompiledFunction: ...

def load_motors(
    path: str | Path,
) -> MotorCatalogue: ...

def load_study(
    path: str | Path,
) -> Study: ...

def loads(
    text: str,
    file: str = '<text>',
) -> Mechanism: ...

def new_machine(
    name: str,
    source: str | Path,
    options: NewMachineOptions | None = None,
    *,
    values: Mapping[str, str | float] | str = ...,
    side: Path | str | None = None,
    reading: ImportOptions | None = None,
    gravity: Sequence[float] | None = None,
    platform_body: str = '',
    independent: Sequence[str] | str = (),
    motors: Sequence[str] | str = (),
    rods: RodRecognition | None = None,
    model_name: str = '',
    keyframe: str = '',
    origins: bool = False,
    xacro: Sequence[str] | str = (),
    package_folders: Sequence[str | Path] | str = (),
    progress: Callable[[int, int], None] | None = None,
) -> NewMachine: ...

def plan_cycle(
    machine: MachineSource,
    stations: CycleList | str | Path,
    options: CycleOptions | None = None,
    *,
    reserve: float = 0.1,
    payload: float | Payload = 0.0,
    motor_curve: Sequence[tuple[float, float]] | str = (),
    tension: float | str = ...,
    compression: float | str = ...,
    tool_acceleration: float | str = ...,
    reversal: float | str = 0.01,
    ends: str = 'held',
    controller: str = 'computed-torque',
    rate: float | str = 4000.0,
    bandwidth: float | str = 150.0,
    tool_jerk: float | str = ...,
    rated: float | None = None,
    duration: float | str | None = None,
    intervals: int = 200,
    progress: Progress | None = None,
) -> Cycle: ...

def plan_excitation(
    machine: MachineSource,
    options: ExcitationOptions | None = None,
    *,
    task: ExcitationTask | None = None,
    criterion: ExcitationCriterion | str = ...,
    previous_motions: Sequence[Path | SampledMotion] | str = (),
    direct_drives: Sequence[str] | str = (),
    random: int = 1000,
    starts: int = 4,
    polish: int = 2,
    workers: int = 1,
    solver: SolverOptions | None = None,
    seed: int = 0,
    stated_condition: float | None = None,
    channels: Entry | str = ...,
    output: str = 'actuators',
    harmonics: int = 5,
    period: float | str = 10.0,
    hold: Mapping[str, float] | str = ...,
    center: Mapping[str, float] | str = ...,
    rests: bool = True,
    preferred_parameters: Sequence[str] | str = (),
    weights: Mapping[str, float] = ...,
    unknowns: Sequence[str] | str = (),
    iterations: int = 200,
    optimality: float = 0.0001,
    start_time_limit: float | str = 60.0,
    rng: np.random.Generator | None = None,
    progress: Report2 | None = None,
) -> Excitation: ...

def plan_path(
    machine: MachineSource,
    options: PathOptions | None = None,
    *,
    reserve: float = 0.1,
    payload: float | str | Payload | None = None,
    motor_curve: Sequence[tuple[float, float]] | str = (),
    tension: float | str = ...,
    compression: float | str = ...,
    tool_acceleration: float | str = ...,
    reversal: float | str = 0.0,
    ends: str = 'held',
    controller: str = 'computed-torque',
    rate: float | str = 4000.0,
    bandwidth: float | str = 150.0,
    stroke: StrokeOptions | None = None,
    tool_jerk: float | str = ...,
    intervals: int = 1000,
    shape: str = 'line',
    start: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    via: Sequence[str | Mapping[str, str | float] | Sequence[str | float]] | str = (),
    end: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    points: Path | str | None = None,
    rotation: Sequence[float | str] | str | None = None,
    start_heading: str | float | None = None,
    end_heading: str | float | None = None,
    terms: int = 5,
    frequencies: Sequence[float | str] | str = (0.1, 1.0),
    seed: int = 0,
    blend: float | str = 0.02,
    coordinates: Entry | str = ...,
    law: str = '3-4-5',
    duration: float | str | None = None,
    max_velocity: float | str | None = None,
    max_acceleration: float | str | None = None,
    share: float | None = None,
    returns: bool = False,
    progress: Progress | None = None,
) -> FastestMotion: ...

def plan_poses(
    machine: MachineSource,
    options: PosePlanOptions | None = None,
    *,
    parameters: Sequence[str] | str = (),
    loads: Sequence[str | Sequence[float]] | str = (),
    max_force: float | str | None = None,
    measure: str = 'position',
    ball_center: Vector3 | str | None = None,
    coordinate: str | None = None,
    instrument: Instrument | Path | str | None = None,
    count: int = 60,
    candidates: int = 2000,
    criterion: Criterion | str = ...,
    noise: float | str = 2e-05,
    angle_noise: float | str = 2e-05,
    usual_correction: float | str = 0.001,
    tolerance_priors: bool = True,
    tolerances: Tolerances | None = None,
    limits: PoseLimits | None = None,
    curve: bool = False,
    counts: Sequence[int] = (),
    goal: float = 0.5,
    seed: int = 0,
    ranges: Mapping[str, tuple[float, float]] | str | None = None,
    singularity: float | None = None,
    clearance: float | str | None = None,
    max_rotation: float | str = 0.15,
    joint_ranges: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
) -> PosePlan: ...

def plan_stroke(
    machine: MachineSource,
    options: StrokeOptions | None = None,
    *,
    shape: str = 'line',
    start: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    via: Sequence[str | Mapping[str, str | float] | Sequence[str | float]] | str = (),
    end: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    points: Path | str | None = None,
    rotation: Sequence[float | str] | str | None = None,
    start_heading: str | float | None = None,
    end_heading: str | float | None = None,
    terms: int = 5,
    frequencies: Sequence[float | str] | str = (0.1, 1.0),
    seed: int = 0,
    blend: float | str = 0.02,
    coordinates: Entry | str = ...,
    law: str = '3-4-5',
    duration: float | str | None = None,
    max_velocity: float | str | None = None,
    max_acceleration: float | str | None = None,
    share: float | None = None,
    returns: bool = False,
) -> PlannedMotion: ...

def plan_transfer(
    machine: MachineSource,
    options: TransferOptions | None = None,
    *,
    reserve: float = 0.1,
    payload: float | str | Payload | None = None,
    motor_curve: Sequence[tuple[float, float]] | str = (),
    tension: float | str = ...,
    compression: float | str = ...,
    tool_acceleration: float | str = ...,
    reversal: float | str = 0.0,
    ends: str = 'held',
    controller: str = 'computed-torque',
    rate: float | str = 4000.0,
    bandwidth: float | str = 150.0,
    start: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    end: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    rotation: Sequence[float | str] | str | None = None,
    optimize: str = 'time',
    copper_loss: float | str = 0.0,
    exponent: float = 3.0,
    max_duration: float | str = ...,
    boxes: Sequence[BoxObstacle] | str = (),
    spheres: Sequence[SphereObstacle] | str = (),
    tool_radius: float | str = 0.0,
    rod_radius: float | str | None = None,
    clearance: float | str = 0.002,
    max_condition: float | None = None,
    intervals: int = 24,
    progress: Progress | None = None,
) -> Transfer: ...

def plot(
    result: Tabular,
    *names: str,
    axes: Axes | Sequence[Axes] | None = None,
) -> tuple[Axes, ...]: ...

def reduce_model(
    machine: MachineSource,
    options: ReductionOptions | None = None,
    *,
    massless_rods: Sequence[str] | str = (),
    lumped_rods: Sequence[str] | str = (),
    share_parameters: bool = False,
    states: int = 200,
    velocity_spread: float | str = 1.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Reduction: ...

def run_plant(
    machine: MachineSource,
    options: PlantOptions | None = None,
    *,
    rate: float | str = 1000.0,
    udp: str = '127.0.0.1:47800',
    shm: str | None = None,
    duration: float | str | None = None,
    lockstep: bool = False,
    stall: str = 'hold',
    watchdog: int = 20,
    timeout: float | str = 1.0,
    method: str | None = None,
    substeps: int | None = None,
    without_controller: bool = False,
    remote: bool = False,
    cache: Path | None = None,
) -> PlantRun: ...

def run_stream(
    machine: MachineSource,
    out: str | Path | None = None,
    options: StreamOptions | None = None,
    *,
    motion: Path | Playback | str | None = None,
    shm: str | None = None,
    viewer: str = 'rerun',
    playback_speed: float = 1.0,
    rate: float | str = 30.0,
    duration: float | str | None = None,
    url: str = '',
    host: str = '127.0.0.1',
    port: int = 8765,
    progress: Progress | None = None,
    announce: Callable[[str], object] | None = None,
) -> StreamedMotion: ...

def run_study(
    study: Study | str | Path,
    folder: str | Path,
    options: StudyOptions | None = None,
    *,
    workers: int | str | None = None,
    scheduler: str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> StudyResult: ...

def shipped_machines(
    *,
    gallery: bool = True,
) -> tuple[str, ...]: ...

@overload
def simulate(
    machine: MachineSource,
    options: SimulationOptions | None = None,
    *,
    duration: float | str | None = None,
    force: str | Mapping[str, str | float] | Sequence[str | float] | ForceLaw | None = None,
    wrench: str | Mapping[str, str | float] | Sequence[str | float] | Wrench | None = None,
    pose: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    velocity: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    until: Sequence[str | Event] | str = (),
    record: Sequence[str | Event] | str = (),
    route: Route | str = ...,
    preload: str | float | Mapping[str, str | float] | None = None,
    sensitivities: Sequence[str] | str = (),
    integration: Integration | None = None,
    tolerance: float = 1e-11,
    absolute_tolerance: float | str = 1e-12,
    fixed_step: float | str | None = None,
    stiff: bool = False,
    integrator: Integrator | None = None,
    progress: Progress | None = None,
) -> Simulation | CableSimulation: ...
@overload
def simulate(
    machine: MachineSource,
    options: FreeMotionOptions,
    *,
    progress: Progress | None = ...,
) -> FreeMotionComparison: ...
@overload
def simulate(
    machine: MachineSource,
    options: RoundTripOptions,
    *,
    progress: Progress | None = ...,
) -> RoundTrip: ...
@overload
def simulate(
    machine: MachineSource,
    options: AnyOptions,
    *,
    progress: Progress | None = ...,
) -> Simulation | CableSimulation | FreeMotionComparison | RoundTrip: ...

def simulate_collision_detection(
    machine: MachineSource,
    options: CollisionDetectionOptions | None = None,
    *,
    stroke: StrokeOptions | None = None,
    wrench: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    payload: float | str = 0.0,
    collision_time: float | str | None = None,
    collision_duration: float | str | None = None,
    bandwidth: float | str = 100.0,
    speeds: str = 'differences',
    tracking: float | str = 1000.0,
    controller: str = 'computed-torque',
    controller_bandwidth: float | str = 150.0,
    rate: float | str = 1000.0,
    quantization: float | str = 0.0,
    mass_error: float = 0.05,
    friction_error: float = 0.3,
    error_samples: int = 16,
    alarms: float = 1.0,
    shape: str = 'line',
    start: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    via: Sequence[str | Mapping[str, str | float] | Sequence[str | float]] | str = (),
    end: Mapping[str, str | float] | Sequence[str | float] | str | None = None,
    points: Path | str | None = None,
    rotation: Sequence[float | str] | str | None = None,
    start_heading: str | float | None = None,
    end_heading: str | float | None = None,
    terms: int = 5,
    frequencies: Sequence[float | str] | str = (0.1, 1.0),
    seed: int = 0,
    blend: float | str = 0.02,
    coordinates: Entry | str = ...,
    law: str = '3-4-5',
    duration: float | str | None = None,
    max_velocity: float | str | None = None,
    max_acceleration: float | str | None = None,
    share: float | None = None,
    returns: bool = False,
    progress: Progress | None = None,
) -> CollisionDetection: ...

def simulate_drive_line(
    line: DriveLine,
    options: DriveOptions | None = None,
    *,
    step: float | str = 0.1,
    duration: float | str = 10.0,
    values: Mapping[str, float | str] | str = ...,
    motor_setup: str = 'as-written',
    load: float | str = 0.0,
    load_time: float | str = 0.0,
    cycle: bool = False,
    tolerance: float = 1e-07,
    integrator: Integrator | None = None,
    until: Sequence[str] | str = (),
    record: Sequence[str] | str = (),
) -> DriveStep: ...

def simulate_elastic(
    machine: MachineSource,
    motion: MotionSource | None = None,
    options: ElasticSimulationOptions | None = None,
    *,
    duration: float | str | None = None,
    wrench: str | Mapping[str, str | float] | Sequence[str | float] | Wrench | None = None,
    release: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    pose: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    damping: float | None = None,
    settling_band: float | str | None = None,
    link_modes: int | None = None,
    shear: bool = False,
    motor_state: str = 'locked',
    servo_gains: str | Mapping[str, str | float | Mapping[str, str | float]] | None = None,
    bandwidth: float | str | None = None,
    feedforward: str = 'speed',
    tolerance: float = 0.001,
) -> ElasticSimulation: ...

def size_motors(
    machine: MachineSource,
    motion: str | Path | MotionForces,
    options: MotorSizingOptions | None = None,
    *,
    catalogue: Path | str | None = None,
    coordinates: Entry | str = ...,
    payload: float | str | Payload | None = None,
    reserve: float = 0.0,
    max_inertia_ratio: float = ...,
    duration: float | str | None = None,
    progress: Progress | None = None,
) -> MotorSizing: ...

def static_compliance(
    machine: MachineSource,
    rated_load: float | str,
    pose: PoseInput = None,
    options: StaticComplianceOptions | None = None,
    *,
    shear: bool = False,
) -> StaticCompliance: ...

def stiffness(
    machine: MachineSource,
    poses: PoseInput = None,
    options: StiffnessOptions | None = None,
    *,
    wrench: str | Mapping[str, str | float] | Sequence[float] | None = None,
    weightless: bool = False,
    loaded: bool = False,
    shear: bool = False,
    temperatures: float | str | Mapping[str, float | str] = 0.0,
    expansions: float | str | Mapping[str, float | str] | None = None,
    actuators: object | None = None,
) -> Stiffness: ...

def subtract_actuator_forces(
    connected: str | Path | xr.Dataset,
    disconnected: str | Path | xr.Dataset,
    options: SubtractionOptions | None = None,
    *,
    period: float | str | None = None,
    max_delay: float | str = 2.0,
    progress: Progress | None = None,
) -> TwoRuns: ...

def symbolic_base_parameters(
    machine: MachineSource,
    options: SymbolicBaseOptions | None = None,
    *,
    products: Sequence[str] | str = (),
    lengths: Sequence[str] | str = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> AnalyticRegrouping: ...

def synthesize(
    task: str | Path,
    folder: str | Path | None = None,
    options: SynthesisOptions | None = None,
    *,
    workers: int | str | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Synthesis: ...

def thermal_expansion(
    machine: MachineSource,
    poses: PoseInput = None,
    options: ThermalExpansionOptions | None = None,
    *,
    temperatures: float | str | Mapping[str, float | str] = 1.0,
    expansions: float | str | Mapping[str, float | str] | None = None,
    log: Path | str | None = None,
) -> ThermalExpansion: ...

def tolerance_map(
    machine: MachineSource,
    poses: PoseInput = None,
    options: ToleranceMapOptions | None = None,
    *,
    tolerances: Amounts | str | None = None,
    encoders: Amounts | str | None = None,
    clearances: Amounts | str | None = None,
    temperatures: float | str | Mapping[str, float | str] | None = None,
    wrench: str | Mapping[str, str | float] | Sequence[float] | None = None,
    common: Sequence[str] | str = (),
    samples: int = 200,
    seed: int = 0,
) -> ToleranceMap: ...

def track_parameters(
    machine: MachineSource,
    log: LogSource,
    fit: BaseEstimates | MachineIdentification | str | Path,
    options: TrackOptions | None = None,
    *,
    max_payload: float | str = 0.0,
    payload_time: float | str = 1.0,
    friction_change: float = 0.3,
    friction_time: float | str = 60.0,
    bandwidth: float | str = 250.0,
    smoothing: float | str = 60.0,
    interval: float | str = 0.02,
    standstill: float = 0.02,
    noise: Mapping[str, float | str] | str = ...,
    fill_gaps: int | None = None,
    resample: bool = False,
    progress: Progress | None = None,
) -> ParameterTrack: ...

def tune_drive_line(
    line: DriveLine,
    options: TuningOptions | None = None,
    *,
    bounds: Mapping[str, ParameterRange] | str = ...,
    scales: Mapping[str, float | str] = ...,
    combine: str = 'sum',
    search: SearchMethod | str = ...,
    exact_gradients: bool = False,
    initial: Mapping[str, float | str] = ...,
    starts: int = 1,
    values: Mapping[str, float | str] = ...,
    motor_setup: str = 'as-written',
    step: float | str = 0.1,
    duration: float | str = 10.0,
    load: float | str = 0.0,
    load_time: float | str = 0.0,
    budget: int = 20000,
    pareto: bool = False,
    population: int = 40,
    generations: int = 20,
    seed: int = 0,
    tolerance: float = 1e-07,
    workers: int = 1,
    watcher: Watcher | None = None,
) -> Tuning: ...

def verify(
    machine: MachineSource,
    options: VerifyOptions | None = None,
    *,
    states: int = 1000,
    seed: int = 0,
    wrench: Sequence[float] | str | None = None,
    max_condition: float = 1000.0,
    progress: Progress | None = None,
) -> VerifiedMachine: ...

def vibration(
    machine: MachineSource,
    poses: PoseInput = None,
    options: VibrationOptions | None = None,
    *,
    count: int = 10,
    link_modes: int | None = None,
    motor_state: str = 'locked',
    shear: bool = False,
    damping: float | None = None,
    loaded: bool = False,
    wrench: str | Mapping[str, str | float] | Sequence[float] | None = None,
    weightless: bool = False,
    servo_gains: str | Mapping[str, str | float | Mapping[str, str | float]] | None = None,
    response_frequencies: str | Sequence[float] | None = None,
    cutting_coefficient: float | str | None = None,
    teeth: int = 0,
    cutting_direction: str | Sequence[float] = 'x',
    bandwidth: float | str | None = None,
    actuators: object | None = None,
    motion: str | Path | None = None,
) -> Vibration: ...

def view(
    machine: MachineSource,
    options: ViewOptions | None = None,
    *,
    pose: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    actuators: str | Mapping[str, str | float] | Sequence[str | float] | None = None,
    coordinates: Entry | str = ...,
    motion: Path | Playback | str | None = None,
    simulation: Path | str | None = None,
    measured: Path | Playback | str | None = None,
    compare: str | Path | Mechanism | Model | None = None,
    next_to: Sequence[str | Path | Mechanism | Model] | str = (),
    forces: bool = False,
    workspace: Sequence[str] | str = (),
    color: str = 'reach',
    modes: Entry | str | None = None,
) -> View: ...

def working_modes(
    machine: MachineSource,
    pose: object | None = None,
    options: ModeOptions | None = None,
    *,
    seed: int = 0,
    thorough: bool = False,
    monodromy: MonodromyOptions | None = None,
    max_modes: int = 10000,
    quiet_loops: int = 16,
    traced_loops: int = 2,
    traced_angles: int = 3,
    batch: int = 128,
    max_solutions: int = 2000,
    max_rounds: int = 120,
    report: Report | None = None,
) -> Modes: ...

def workspace(
    machine: MachineSource,
    options: WorkspaceOptions | None = None,
    *,
    plane: Sequence[str] | str = (),
    pose: Mapping[str, float | str] | str = ...,
    ranges: Mapping[str, tuple[float | str, float | str]] | str = ...,
    resolution: float | str | None = None,
    singularity: float | None = None,
    clearance: float | str = 0.0,
    margin: float | str = 0.0,
    wrench: Sequence[Sequence[float]] | str = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0),),
    progress: Callable[[int, int], None] | None = None,
) -> Workspace: ...

def write_equations(
    machine: MachineSource,
    options: EquationOptions | None = None,
    *,
    coordinates: Entry | str = ...,
    parts: Sequence[str] | str = ('loops', 'dynamics', 'solved'),
    keep: Sequence[str] | str = (),
    names: Mapping[str, str] = ...,
    progress: Progress | None = None,
) -> WrittenEquations: ...

def write_report(
    results: object | Iterable[object],
    path: str | Path,
    options: ReportOptions | None = None,
    *,
    title: str = 'Report',
    animation: bool = True,
    progress: Progress | None = None,
) -> WrittenReport: ...
