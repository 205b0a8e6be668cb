"""Geometric calibration: the geometry a machine really has, from measurements, with what the data cannot say."""

from tauloop.calibrate.align import aligned
from tauloop.calibrate.checks import inspect
from tauloop.calibrate.exchanges import Exchanges, ExchangeSearch, indistinguishable_swaps
from tauloop.calibrate.fitting import FitOptions, fit
from tauloop.calibrate.identifiability import Direction, Identifiability, LeftOut, identifiability
from tauloop.calibrate.instruments import (
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
from tauloop.calibrate.losses import Cauchy, Huber, Loss, Squares
from tauloop.calibrate.measurements import Series
from tauloop.calibrate.observability import Observability, observability
from tauloop.calibrate.poses import PosePlan, plan_poses
from tauloop.calibrate.poses_candidates import Candidates, PoseLimits, candidate_poses
from tauloop.calibrate.poses_readings import simulated_readings, simulated_series
from tauloop.calibrate.poses_selection import AOptimal, Criterion, DOptimal, EOptimal, Selection, select_poses
from tauloop.calibrate.problem import CalibrationProblem, Evaluation, calibration_problem
from tauloop.calibrate.residual_analysis import ResidualAnalysis, analyse_residuals
from tauloop.calibrate.residuals import ForwardKinematics, LoopEquations
from tauloop.calibrate.result import Calibration, Estimate
from tauloop.calibrate.solving import Solution, solve
from tauloop.calibrate.surfaces import Cylinder, Plane, Sphere
from tauloop.calibrate.unknowns import Bounds, Tolerances, Unknown, select_unknowns
from tauloop.calibrate.validation import Bootstrap, Comparison, HeldOut, bootstrap, compare, leave_one_out

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
