"""Preparation of measured positions and velocities for identification: filter and trim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.logs.log import Channel, Log, Signals, as_signals, channels, samples
from tauloop.logs.rates import allowed_cutoff, smooth_rates, wider
from tauloop.logs.signals import (
    HIGHEST_CUTOFF,
    LEAST_FOR_DIFFERENCES,
    require_filter,
    sample_period,
    taps,
)
from tauloop.logs.velocities import SOURCES, velocities_of_source
from tauloop.mechanism.suggestions import unknown_names

if TYPE_CHECKING:
    import xarray as xr

#: A channel is at rest if its largest change between samples is below this fraction of its largest
#: position.
_RESTING_CHANGE = 1e-13
#: Position, velocity and acceleration (N,).
Motion: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]

_FREQUENCY = "give a frequency above zero, Hz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation(Options):
    """Preparation of a log for identification.

    Attributes:
        cutoff: -3 dB frequency, Hz, of one pass of the filter for positions (and measured
            velocities). By default, each channel has the cut-off that its noise permits
            (`with_cutoffs`). Forces and regressor are filtered with the lowest cut-off of all
            channels (`common_cutoff`). Before that, accelerations are filtered with twice this
            cut-off, and positions and velocities as much as their noise requires.
        order: order of the Butterworth filter. It runs forwards and backwards, so the attenuation
            is that of twice the order, and -6 dB at the cut-off.
        standstill: fraction of a channel's largest speed below which it counts as at rest, with
            zero velocity. Otherwise rounding errors and the filter's tails leave velocities of
            about 1e-12 rad/s, whose meaningless sign would switch Coulomb friction. (On a measured
            arm, this changed the errors of two joints from 4.1 to 4.7 and from 5.9 to 7.6 % of the
            largest torque, depending on the implementation of the same filter.)
        trim: number of samples removed at each end, where the filter lacks neighbors.
        decimation: decimation factor of regressor and forces after the regressor is computed
            (`decimate`).
        cutoffs: cut-offs of single channels, Hz, instead of `cutoff`.
        velocity: source of velocities, one of `SOURCES`: "positions" differentiates the positions;
            "measured" uses velocity channels, filtered like the positions; "fused" combines both
            according to their noise (`velocities_of_source`). None: the positions, unless
            validation chooses (`tauloop.identification.choose_channels`).
        velocities: sources of single channels, instead of `velocity`.
    """

    cutoff: float | None = option(above=0.0, below=np.inf, remedy=_FREQUENCY)
    order: int = option(4, least=1, remedy="give a whole number of at least 1")
    standstill: float = option(1e-6, least=0.0, below=1.0)
    trim: int = option(0, least=0, remedy="give a whole number of at least 0")
    decimation: int = option(1, least=1, remedy="give a whole number of at least 1")
    cutoffs: Mapping[str, float] = option(factory=dict, above=0.0, below=np.inf, remedy=_FREQUENCY)
    velocity: str | None = option(None, choices=SOURCES)
    velocities: Mapping[str, str] = option(factory=dict, choices=SOURCES)

    def cutoff_of(self, channel: str) -> float | None:
        """Return the cut-off of a channel, Hz; None if its noise determines it."""
        return self.cutoffs.get(channel, self.cutoff)

    def source_of(self, channel: str) -> str:
        """Return the source of a channel's velocity, one of `SOURCES`."""
        return self.velocities.get(channel, self.velocity or "positions")


def prepare(log: Log, preparation: Preparation) -> xr.Dataset:
    """Filter positions, differentiate them, and trim the log.

    Velocities come from the source `Preparation.velocity`; accelerations are always computed. Both
    use sine series (`smooth_rates`). Other quantities are only trimmed, neither filtered nor
    shifted. Nothing is decimated yet, because the regressor is not linear in the motion. Filter and
    decimate its columns and the forces equally with `decimate` and `common_cutoff`.

    Args:
        log: a log with positions, as from `read_log`.
        preparation: settings.

    Returns:
        A log with position, velocity, acceleration and all other measured quantities.

    Raises:
        InputError: a cut-off exceeds half the sampling rate, the log is not evenly sampled or too
            short, or the preparation names a channel that has no position.
        LogError: the log has no positions, or lacks velocities that are to be used.
    """
    preparation = with_cutoffs(log, preparation)
    signals = prepared_signals(log, preparation)
    return signals.dataset().assign_attrs(
        preparation=asdict(preparation), period=sample_period(log)
    )


def prepared_signals(log: Log, preparation: Preparation) -> Signals:
    """Return the log of `prepare` as plain arrays.

    Raises:
        InputError: a cut-off exceeds half the sampling rate, or the log is not evenly sampled or
            too short.
        LogError: the log has no positions.
    """
    raw = as_signals(log)
    names, count = channels(raw, "position"), len(raw.time)
    _require_channels(names, preparation)
    _require_length(count, preparation)
    rate = 1.0 / sample_period(raw)
    preparation = with_cutoffs(raw, preparation)
    for name in names:
        cutoff = preparation.cutoff_of(name)
        if cutoff is not None and cutoff < HIGHEST_CUTOFF * rate:
            require_filter(count, rate, cutoff, preparation.order)
    sources = {name: preparation.source_of(name) for name in names}
    velocities = dict(zip(names, velocities_of_source(raw, sources).T, strict=True))

    def motion(channel: Channel) -> Motion:
        """Return low-passed positions (or measured velocities) and their derivatives."""
        cutoff, order = preparation.cutoff_of(channel.channel), preparation.order
        assert cutoff is not None
        wide = wider(cutoff, rate)
        if sources[channel.channel] != "positions":
            (position,) = smooth_rates(channel.values, rate=rate, cutoffs=(cutoff,), order=order)
            measured = velocities[channel.channel]
            velocity, acceleration = smooth_rates(
                measured, rate=rate, cutoffs=(cutoff, wide), order=order
            )
            return position, velocity, acceleration
        # with a strongly smoothed velocity, reversals are too early where friction bends its course
        brisk = max(cutoff, allowed_cutoff(channel.values, rate=rate, order=order, derivative=1))
        cutoffs = (brisk, brisk, wide)
        position, velocity, acceleration = smooth_rates(
            channel.values, rate=rate, cutoffs=cutoffs, order=order
        )
        return position, velocity, acceleration

    prepared = with_motions(raw, motion, preparation.standstill)
    return prepared.part(slice(preparation.trim, count - preparation.trim))


def with_cutoffs(log: Log, preparation: Preparation) -> Preparation:
    """Return the preparation with a cut-off for every channel; by default as its noise permits.

    Raises:
        InputError: the log is not evenly sampled, or too short.
    """
    raw = as_signals(log)
    _require_length(len(raw.time), preparation)
    rate = 1.0 / sample_period(raw)
    missing = [
        channel
        for channel in raw.channels
        if channel.quantity == "position" and preparation.cutoff_of(channel.channel) is None
    ]
    allowed = {
        channel.channel: allowed_cutoff(channel.values, rate=rate, order=preparation.order)
        for channel in missing
    }
    return (
        replace(preparation, cutoffs={**allowed, **preparation.cutoffs}) if allowed else preparation
    )


def common_cutoff(log: Log, preparation: Preparation) -> float | None:
    """Return the lowest cut-off of all channels, as a fraction of the sampling rate.

    Forces and regressor are filtered with it, so that the filter of the positions affects both
    equally. The result is None if there is no cut-off.
    """
    cutoffs = [preparation.cutoff_of(name) for name in channels(log, "position")]
    lowest = min((cutoff for cutoff in cutoffs if cutoff is not None), default=None)
    return None if lowest is None else lowest * sample_period(log)


def with_motions(log: Signals, motion: Callable[[Channel], Motion], standstill: float) -> Signals:
    """Return a log with position, velocity and acceleration of each position channel, and the rest.

    Args:
        log: the log as measured.
        motion: function that returns the three arrays (N,) for a position channel.
        standstill: speeds below this fraction of a channel's largest speed become zero.

    Raises:
        LogError: no positions in the log.
    """
    measured = [channel for channel in log.channels if channel.quantity == "position"] or samples(
        log, "position"
    )
    period, motions = sample_period(log), []
    for channel in measured:
        position, velocity, acceleration = motion(channel)
        speed = np.abs(velocity)
        fastest = speed.max()
        is_at_rest = fastest <= _RESTING_CHANGE * np.abs(position).max() / period
        velocity = np.where((speed < standstill * fastest) | is_at_rest, 0.0, velocity)
        motions.append(
            (position, velocity, np.zeros_like(velocity) if is_at_rest else acceleration)
        )
    derived = {"position": "", "velocity": "/s", "acceleration": "/s^2"}
    signals = [
        replace(channel, quantity=quantity, values=values[k], unit=channel.unit + per_time)
        for k, (quantity, per_time) in enumerate(derived.items())
        for channel, values in zip(measured, motions, strict=True)
    ]
    signals += [channel for channel in log.channels if channel.quantity not in derived]
    return replace(log, channels=tuple(signals))


def _require_channels(names: Sequence[str], preparation: Preparation) -> None:
    own = {"cutoffs": preparation.cutoffs, "velocities": preparation.velocities}
    InputError.raise_if_any(
        problem
        for where, channels in own.items()
        for problem in unknown_names(channels, names, "is not a position channel", f"{where}.{{}}")
    )


def _require_length(count: int, preparation: Preparation) -> None:
    left = taps(preparation.decimation) if preparation.decimation > 1 else 1
    needed = max(2 * preparation.trim + left, LEAST_FOR_DIFFERENCES)
    if count < needed:
        what = (
            f"{counted(count, 'sample', 'are')} too few: trimming {preparation.trim} at each end and "
            f"decimating by {preparation.decimation} needs {needed}"
        )
        raise InputError.of("log", what, "record longer, or trim and decimate less")
