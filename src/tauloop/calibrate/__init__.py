"""Geometric calibration: the geometry a machine really has, from measurements, with what the data cannot say."""

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
from tauloop.calibrate.measurements import Series
from tauloop.calibrate.problem import CalibrationProblem, Evaluation, calibration_problem
from tauloop.calibrate.stations import ForwardKinematics, LoopEquations
from tauloop.calibrate.surfaces import Cylinder, Plane, Sphere
from tauloop.calibrate.unknowns import Tolerances, Unknown, select_unknowns

__all__ = [
    "CalibrationProblem",
    "Contact",
    "Cylinder",
    "Distance",
    "Evaluation",
    "ForwardKinematics",
    "Frame",
    "Inclinometer",
    "Instrument",
    "JointSensor",
    "LoopEquations",
    "Nuisance",
    "Orientation",
    "Plane",
    "Pose",
    "Position",
    "Series",
    "Sphere",
    "Tolerances",
    "Unknown",
    "calibration_problem",
    "select_unknowns",
]
