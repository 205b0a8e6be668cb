"""Geometric calibration: the geometry a machine really has, from measurements, with what the data cannot say."""

from tauloop.calibration.fitting import FitOptions, fit_geometry
from tauloop.calibration.judging.identifiability import Direction, Identifiability, LeftOut, identifiability
from tauloop.calibration.judging.observability import Observability, observability
from tauloop.calibration.judging.residual_analysis import ResidualAnalysis, analyse_residuals
from tauloop.calibration.judging.validation import (
    Bootstrap,
    Comparison,
    HeldOut,
    bootstrap,
    compare_unknowns,
    leave_one_out,
)
from tauloop.calibration.measurements.instruments import (
    Contact,
    Distance,
    Frame,
    Inclinometer,
    Instrument,
    JointSensor,
    Nuisance,
    Orientation,
    Pose,
    Position,
)
from tauloop.calibration.measurements.measurement_set import MeasurementSet
from tauloop.calibration.measurements.reading import read_instrument, read_measurements
from tauloop.calibration.measurements.series import Series
from tauloop.calibration.measurements.simulated import simulated_readings, simulated_series
from tauloop.calibration.measurements.surfaces import Cylinder, Plane, Sphere
from tauloop.calibration.pose_selection.candidates import Candidates, PoseLimits, candidate_poses
from tauloop.calibration.pose_selection.plan import PosePlan, PosePlanOptions, plan_poses
from tauloop.calibration.pose_selection.selection import (
    AOptimal,
    Criterion,
    DOptimal,
    EOptimal,
    Selection,
    select_poses,
)
from tauloop.calibration.problem.problem import CalibrationProblem, Evaluation, calibration_problem
from tauloop.calibration.problem.residuals import ForwardKinematics, LoopEquations
from tauloop.calibration.problem.unknowns import PICKED_GROUPS, Bounds, Tolerances, Unknown, select_unknowns
from tauloop.calibration.result import Calibration, EstimatedUnknown
from tauloop.calibration.solving.align import aligned
from tauloop.calibration.solving.checks import inspect
from tauloop.calibration.solving.exchanges import Exchanges, indistinguishable_swaps
from tauloop.calibration.solving.losses import Cauchy, Huber, Loss, Squares
from tauloop.calibration.solving.solver import Solution, solve
from tauloop.calibration.workflow import CalibrationOptions, calibrate

__all__ = [
    "PICKED_GROUPS",
    "AOptimal",
    "Bootstrap",
    "Bounds",
    "Calibration",
    "CalibrationOptions",
    "CalibrationProblem",
    "Candidates",
    "Cauchy",
    "Comparison",
    "Contact",
    "Criterion",
    "Cylinder",
    "DOptimal",
    "Direction",
    "Distance",
    "EOptimal",
    "EstimatedUnknown",
    "Evaluation",
    "Exchanges",
    "FitOptions",
    "ForwardKinematics",
    "Frame",
    "HeldOut",
    "Huber",
    "Identifiability",
    "Inclinometer",
    "Instrument",
    "JointSensor",
    "LeftOut",
    "LoopEquations",
    "Loss",
    "MeasurementSet",
    "Nuisance",
    "Observability",
    "Orientation",
    "Plane",
    "Pose",
    "PoseLimits",
    "PosePlan",
    "PosePlanOptions",
    "Position",
    "ResidualAnalysis",
    "Selection",
    "Series",
    "Solution",
    "Sphere",
    "Squares",
    "Tolerances",
    "Unknown",
    "aligned",
    "analyse_residuals",
    "bootstrap",
    "calibrate",
    "calibration_problem",
    "candidate_poses",
    "compare_unknowns",
    "fit_geometry",
    "identifiability",
    "indistinguishable_swaps",
    "inspect",
    "leave_one_out",
    "observability",
    "plan_poses",
    "read_instrument",
    "read_measurements",
    "select_poses",
    "select_unknowns",
    "simulated_readings",
    "simulated_series",
    "solve",
]
__dir__ = __all__.copy
