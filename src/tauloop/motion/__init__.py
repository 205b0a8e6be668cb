"""Motions: paths, motion laws and durations that become trajectories; multisines with exact derivatives."""

from tauloop.motion.clothoids import Chain, Clothoid, polyline
from tauloop.motion.fourier import FourierSeries
from tauloop.motion.laws import (
    LAWS,
    POLYNOMIAL_345,
    POLYNOMIAL_4567,
    Cycloidal,
    Law,
    Parabolic,
    PolynomialLaw,
    Progress,
    Trapezoidal,
)
from tauloop.motion.limits import fastest_rate, tightest_limit
from tauloop.motion.multisine import Multisine, random_multisine
from tauloop.motion.paths import (
    AxisTurn,
    Curve,
    Ellipse,
    Line,
    Path,
    SampledPath,
    Together,
    sheared_ellipse,
    turn_between,
)
from tauloop.motion.planning import PlannedMotion, StrokeOptions, plan_motion
from tauloop.motion.sampled import SampledMotion
from tauloop.motion.stroke import Stroke, stroke
from tauloop.motion.timing import MachineLimits, PeakAcceleration, PeakSpeed, Seconds, Timing, peak
from tauloop.motion.trajectory import PeakForce, Trajectory, plan

__all__ = [
    "LAWS",
    "POLYNOMIAL_345",
    "POLYNOMIAL_4567",
    "AxisTurn",
    "Chain",
    "Clothoid",
    "Curve",
    "Cycloidal",
    "Ellipse",
    "FourierSeries",
    "Law",
    "Line",
    "MachineLimits",
    "Multisine",
    "Parabolic",
    "Path",
    "PeakAcceleration",
    "PeakForce",
    "PeakSpeed",
    "PlannedMotion",
    "PolynomialLaw",
    "Progress",
    "SampledMotion",
    "SampledPath",
    "Seconds",
    "Stroke",
    "StrokeOptions",
    "Timing",
    "Together",
    "Trajectory",
    "Trapezoidal",
    "fastest_rate",
    "peak",
    "plan",
    "plan_motion",
    "polyline",
    "random_multisine",
    "sheared_ellipse",
    "stroke",
    "tightest_limit",
    "turn_between",
]
__dir__ = __all__.copy
