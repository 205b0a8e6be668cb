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
from tauloop.logs.log import Channel, Log, Signals, as_signals, channels, require_quantity
from tauloop.logs.rates import allowed_cutoff, cutoff_for_accelerations, smooth_rates
from tauloop.logs.signals import (
    HIGHEST_CUTOFF,
    MIN_DIFFERENCE_SAMPLES,
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

_FREQUENCY_REMEDY = "give a frequency above zero, Hz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation(Options):
    """Preparation of a log for identification.

    Attributes:
        cutoff: -3 dB frequency, Hz, of one pass of the filter. By default, each channel has the
            cutoff that its noise permits (`with_cutoffs`). Accelerations are filtered with twice
            this cutoff. Positions, and velocities differentiated from them, are filtered with this
            cutoff or with the one that their noise permits, whichever is higher; measured
            velocities with this cutoff. Later, forces and regressor are filtered with the lowest
            cutoff of all channels (`common_cutoff`).
        order: order of the Butterworth filter. It runs forwards and backwards, so the attenuation
            is that of twice the order, and -6 dB at the cutoff.
        standstill: fraction of a channel's largest speed below which it counts as at rest, with
            zero velocity. Without this threshold, rounding errors and the filter's tails leave
            velocities of about 1e-12 rad/s, whose meaningless sign would switch Coulomb friction.
            (On a measured arm, they changed the errors of two joints from 4.1 to 4.7 and from 5.9
            to 7.6 % of the largest torque, depending on the implementation of the same filter.)
        trim: number of samples removed at each end, where the filter is affected by the ends of
            the log.
        decimation: decimation factor of regressor and forces after the regressor is computed
            (`decimate`).
        cutoffs: cutoffs of single channels, Hz, instead of `cutoff`.
        velocity: source of velocities, one of `SOURCES`: "positions" differentiates the positions;
            "measured" uses velocity channels; "fused" combines both according to their noise
            (`velocities_of_source`). None: "positions", unless
            `tauloop.identification.choose_channels` selects the source by validation.
        velocities: sources of single channels, instead of `velocity`.
    """

    cutoff: float | None = option(above=0.0, below=np.inf, remedy=_FREQUENCY_REMEDY)
    order: int = option(4, least=1, remedy="give a whole number of at least 1")
    standstill: float = option(1e-6, least=0.0, below=1.0)
    trim: int = option(0, least=0, remedy="give a whole number of at least 0")
    decimation: int = option(1, least=1, remedy="give a whole number of at least 1")
    cutoffs: Mapping[str, float] = option(
        factory=dict, above=0.0, below=np.inf, remedy=_FREQUENCY_REMEDY
    )
    velocity: str | None = option(None, choices=SOURCES)
    velocities: Mapping[str, str] = option(factory=dict, choices=SOURCES)

    def cutoff_of(self, channel: str) -> float | None:
        """Return the cutoff of a channel, Hz; None if its noise determines it."""
        return self.cutoffs.get(channel, self.cutoff)

    def source_of(self, channel: str) -> str:
        """Return the source of a channel's velocity, one of `SOURCES`."""
        return self.velocities.get(channel, self.velocity or "positions")


def prepare(log: Log, preparation: Preparation) -> xr.Dataset:
    """Filter positions, differentiate them, and trim the log.

    Velocities come from the source `Preparation.velocity`. Accelerations are the derivatives of
    these velocities, or the second derivatives of the positions. Filter and derivatives use sine
    series (`smooth_rates`). Other quantities are only trimmed, neither filtered nor
    shifted. Nothing is decimated yet, because the regressor is not linear in the motion. Filter and
    decimate its columns and the forces equally with `decimate` and `common_cutoff`.

    Args:
        log: a log with positions, as from `read_log`.
        preparation: settings.

    Returns:
        A log with position, velocity, acceleration and all other measured quantities.

    Raises:
        InputError: a cutoff exceeds half the sampling rate, the log is not evenly sampled or too
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
        InputError: a cutoff exceeds half the sampling rate, or the log is not evenly sampled or
            too short.
        LogError: the log has no positions.
    """
    raw = as_signals(log)
    names = channels(raw, "position")
    count = len(raw.time)
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

    def filtered_motion(channel: Channel) -> Motion:
        """Return low-passed positions, velocities and accelerations."""
        cutoff = preparation.cutoff_of(channel.channel)
        order = preparation.order
        assert cutoff is not None
        acceleration_cutoff = cutoff_for_accelerations(cutoff, rate)
        if sources[channel.channel] != "positions":
            (position,) = smooth_rates(channel.values, rate=rate, cutoffs=(cutoff,), order=order)
            measured = velocities[channel.channel]
            velocity, acceleration = smooth_rates(
                measured, rate=rate, cutoffs=(cutoff, acceleration_cutoff), order=order
            )
            return position, velocity, acceleration
        # a strongly smoothed velocity crosses zero too early if friction changes it abruptly
        permitted = allowed_cutoff(channel.values, rate=rate, order=order, derivative=1)
        velocity_cutoff = max(cutoff, permitted)
        cutoffs = (velocity_cutoff, velocity_cutoff, acceleration_cutoff)
        position, velocity, acceleration = smooth_rates(
            channel.values, rate=rate, cutoffs=cutoffs, order=order
        )
        return position, velocity, acceleration

    prepared = with_motions(raw, filtered_motion, preparation.standstill)
    return prepared.part(slice(preparation.trim, count - preparation.trim))


def with_cutoffs(log: Log, preparation: Preparation) -> Preparation:
    """Return the preparation with a cutoff for every channel; by default as its noise permits.

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
    if not allowed:
        return preparation
    return replace(preparation, cutoffs={**allowed, **preparation.cutoffs})


def common_cutoff(log: Log, preparation: Preparation) -> float | None:
    """Return the lowest cutoff of all channels, as a fraction of the sampling rate.

    Forces and regressor are filtered with it, so that the filter of the positions affects both
    equally. The result is None if there is no cutoff.
    """
    cutoffs = [preparation.cutoff_of(name) for name in channels(log, "position")]
    lowest = min((cutoff for cutoff in cutoffs if cutoff is not None), default=None)
    return None if lowest is None else lowest * sample_period(log)


def with_motions(log: Signals, motion: Callable[[Channel], Motion], standstill: float) -> Signals:
    """Return a log with position, velocity and acceleration of each position channel.

    Channels of other quantities do not change.

    Args:
        log: the log as measured.
        motion: function that returns position, velocity and acceleration (N,) of a position
            channel.
        standstill: speeds below this fraction of a channel's largest speed become zero.

    Raises:
        LogError: the log has no positions.
    """
    require_quantity(log, "position")
    measured = [channel for channel in log.channels if channel.quantity == "position"]
    period = sample_period(log)
    motions: list[Motion] = []
    for channel in measured:
        position, velocity, acceleration = motion(channel)
        speed = np.abs(velocity)
        fastest = speed.max()
        is_at_rest = fastest <= _RESTING_CHANGE * np.abs(position).max() / period
        velocity = np.where((speed < standstill * fastest) | is_at_rest, 0.0, velocity)
        if is_at_rest:
            acceleration = np.zeros_like(velocity)
        motions.append((position, velocity, acceleration))
    derived = {"position": "", "velocity": "/s", "acceleration": "/s^2"}
    signals = [
        replace(channel, quantity=quantity, values=values[k], unit=channel.unit + per_time)
        for k, (quantity, per_time) in enumerate(derived.items())
        for channel, values in zip(measured, motions, strict=True)
    ]
    signals += [channel for channel in log.channels if channel.quantity not in derived]
    return replace(log, channels=tuple(signals))


def _require_channels(names: Sequence[str], preparation: Preparation) -> None:
    channel_settings = {"cutoffs": preparation.cutoffs, "velocities": preparation.velocities}
    InputError.raise_if_any(
        problem
        for where, channels in channel_settings.items()
        for problem in unknown_names(channels, names, "is not a position channel", f"{where}.{{}}")
    )


def _require_length(count: int, preparation: Preparation) -> None:
    remaining = taps(preparation.decimation) if preparation.decimation > 1 else 1
    needed = max(2 * preparation.trim + remaining, MIN_DIFFERENCE_SAMPLES)
    if count < needed:
        what = (
            f"{counted(count, 'sample', 'are')} too few: trimming {preparation.trim} at each end and "
            f"decimating by {preparation.decimation} needs {needed}"
        )
        raise InputError.of("log", what, "record a longer log, or trim and decimate less")
