"""Geometric calibration: the geometry a machine really has, from measurements, with what the data cannot say."""

from tauloop.calibrate.align import aligned
from tauloop.calibrate.checks import indistinguishable_swaps, inspect
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
from tauloop.calibrate.problem import CalibrationProblem, Evaluation, calibration_problem
from tauloop.calibrate.residuals import ForwardKinematics, LoopEquations
from tauloop.calibrate.result import Calibration, Estimate
from tauloop.calibrate.solving import Solution, solve
from tauloop.calibrate.surfaces import Cylinder, Plane, Sphere
from tauloop.calibrate.unknowns import Tolerances, Unknown, select_unknowns
from tauloop.calibrate.validation import Bootstrap, Comparison, HeldOut, bootstrap, compare, leave_one_out

__all__ = [
    "Bootstrap",
    "Calibration",
    "CalibrationProblem",
    "Cauchy",
    "Comparison",
    "Contact",
    "Cylinder",
    "Direction",
    "Distance",
    "Estimate",
    "Evaluation",
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
    "Orientation",
    "Plane",
    "Pose",
    "Position",
    "Series",
    "Solution",
    "Sphere",
    "Squares",
    "Tolerances",
    "Unknown",
    "aligned",
    "bootstrap",
    "calibration_problem",
    "compare",
    "fit",
    "identifiability",
    "indistinguishable_swaps",
    "inspect",
    "leave_one_out",
    "select_unknowns",
    "solve",
]
