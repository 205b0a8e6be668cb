"""Measured data: reading and writing logs as labelled arrays with units, and making signals of them."""

from tauloop.logs.channels import TIME, Signals, channels, samples, units
from tauloop.logs.gaps import FillGaps
from tauloop.logs.measuring import Sensors, measure
from tauloop.logs.preparation import Preparation, prepare, prepared_signals
from tauloop.logs.reading import LogFile, read_log, read_signals
from tauloop.logs.recording import Recording, load_recording
from tauloop.logs.repairs import held, resampled
from tauloop.logs.signals import (
    butterworth,
    central_differences,
    decimate,
    decimate_in_parts,
    sample_period,
)
from tauloop.logs.velocities import MeasuredVelocity, measured_velocities
from tauloop.logs.writing import write_log

__all__ = [
    "TIME",
    "FillGaps",
    "LogFile",
    "MeasuredVelocity",
    "Preparation",
    "Recording",
    "Sensors",
    "Signals",
    "butterworth",
    "central_differences",
    "channels",
    "decimate",
    "decimate_in_parts",
    "held",
    "load_recording",
    "measure",
    "measured_velocities",
    "prepare",
    "prepared_signals",
    "read_log",
    "read_signals",
    "resampled",
    "sample_period",
    "samples",
    "units",
    "write_log",
]
__dir__ = __all__.copy
