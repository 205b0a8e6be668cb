"""Geometric calibration: the geometry a machine really has, from measurements, with what the data cannot say."""

from tauloop.calibration.align import aligned
from tauloop.calibration.checks import inspect
from tauloop.calibration.exchanges import Exchanges, ExchangeSearch, indistinguishable_swaps
from tauloop.calibration.fitting import FitOptions, fit
from tauloop.calibration.identifiability import Direction, Identifiability, LeftOut, identifiability
from tauloop.calibration.instruments import (
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
from tauloop.calibration.losses import Cauchy, Huber, Loss, Squares
from tauloop.calibration.measurements import Series
from tauloop.calibration.observability import Observability, observability
from tauloop.calibration.poses import PosePlan, plan_poses
from tauloop.calibration.poses_candidates import Candidates, PoseLimits, candidate_poses
from tauloop.calibration.poses_readings import simulated_readings, simulated_series
from tauloop.calibration.poses_selection import AOptimal, Criterion, DOptimal, EOptimal, Selection, select_poses
from tauloop.calibration.problem import CalibrationProblem, Evaluation, calibration_problem
from tauloop.calibration.residual_analysis import ResidualAnalysis, analyse_residuals
from tauloop.calibration.residuals import ForwardKinematics, LoopEquations
from tauloop.calibration.result import Calibration, Estimate
from tauloop.calibration.solving import Solution, solve
from tauloop.calibration.surfaces import Cylinder, Plane, Sphere
from tauloop.calibration.unknowns import Bounds, Tolerances, Unknown, select_unknowns
from tauloop.calibration.validation import Bootstrap, Comparison, HeldOut, bootstrap, compare, leave_one_out

__all__ = [
    "AOptimal",
    "Bootstrap",
    "Bounds",
    "Calibration",
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
    "Estimate",
    "Evaluation",
    "ExchangeSearch",
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
    "Nuisance",
    "Observability",
    "Orientation",
    "Plane",
    "Pose",
    "PoseLimits",
    "PosePlan",
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
    "calibration_problem",
    "candidate_poses",
    "compare",
    "fit",
    "identifiability",
    "indistinguishable_swaps",
    "inspect",
    "leave_one_out",
    "observability",
    "plan_poses",
    "select_poses",
    "select_unknowns",
    "simulated_readings",
    "simulated_series",
    "solve",
]
