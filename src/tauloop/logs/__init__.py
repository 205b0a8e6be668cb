"""Measured data: logs as labeled arrays with units, read from files and converted to signals.

Examples:
    >>> import tauloop as tl
    >>> motion = tl.plan_stroke(tl.load("five_bar"), tl.StrokeOptions(end={"x": 0.05}, duration=0.5))
    >>> tl.logs.samples(motion.log(100.0), "position").shape
    (51, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.logs.checks.gaps import FillGaps as FillGaps
    from tauloop.logs.checks.repairs import held as held, resampled as resampled
    from tauloop.logs.files.reading import (
        LogFile as LogFile,
        read_log as read_log,
        read_signals as read_signals,
    )
    from tauloop.logs.files.writing import write_log as write_log
    from tauloop.logs.log import (
        TIME as TIME,
        Channel as Channel,
        Signals as Signals,
        channels as channels,
        samples as samples,
        units as units,
    )
    from tauloop.logs.measuring import Sensors as Sensors, measure as measure
    from tauloop.logs.preparation import (
        Preparation as Preparation,
        common_cutoff as common_cutoff,
        prepare as prepare,
        prepared_signals as prepared_signals,
        with_cutoffs as with_cutoffs,
    )
    from tauloop.logs.rates import smooth_rates as smooth_rates
    from tauloop.logs.recording import Recording as Recording, load_recording as load_recording
    from tauloop.logs.signals import (
        butterworth as butterworth,
        central_differences as central_differences,
        decimate as decimate,
        decimate_in_parts as decimate_in_parts,
        sample_period as sample_period,
    )
    from tauloop.logs.velocities import (
        MeasuredVelocity as MeasuredVelocity,
        measured_velocities as measured_velocities,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
