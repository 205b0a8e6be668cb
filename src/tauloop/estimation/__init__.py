"""Estimators that a controller needs: forces from outside, speeds from encoders, poses from more encoders than motors.

Examples:
    >>> import numpy as np
    >>> import tauloop as tl
    >>> tl.estimation.differenced(np.array([[0.0], [0.001]]), period=0.001)[1].item()
    1.0
"""

from tauloop.estimation.alarm_threshold import FalseAlarms as FalseAlarms
from tauloop.estimation.causal_rows import CausalFilters as CausalFilters
from tauloop.estimation.encoder_export import export_encoder_fit as export_encoder_fit
from tauloop.estimation.encoders import EncoderFit as EncoderFit, fit_encoders as fit_encoders
from tauloop.estimation.external_wrench import (
    ContactInterval as ContactInterval,
    ExternalWrench as ExternalWrench,
    ExternalWrenchOptions as ExternalWrenchOptions,
    estimate_external_wrench as estimate_external_wrench,
)
from tauloop.estimation.hit import (
    Detection as Detection,
    HitDetection as HitDetection,
    HitOptions as HitOptions,
    detect_hit as detect_hit,
)
from tauloop.estimation.observers import (
    DifferencedVelocities as DifferencedVelocities,
    ForceObserver as ForceObserver,
    MeasuredMotion as MeasuredMotion,
    MomentumObserver as MomentumObserver,
)
from tauloop.estimation.parameter_tracking import (
    ParameterTrack as ParameterTrack,
    TrackOptions as TrackOptions,
    track_parameters as track_parameters,
)
from tauloop.estimation.recursive_fit import RecursiveFit as RecursiveFit, Wander as Wander
from tauloop.estimation.speeds import differenced as differenced, tracked as tracked
from tauloop.estimation.tracker_export import export_tracker as export_tracker
from tauloop.lazy import public_names

__dir__, __all__ = public_names(__name__)
