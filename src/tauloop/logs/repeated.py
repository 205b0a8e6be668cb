"""Simulated measurement of a known motion by the sensors of a log.

The difference between both motions estimates the errors that sensors and preparation cause.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.logs.encoder_steps import MAX_NOISE_SHARE, encoder_step
from tauloop.logs.log import Channel, Log, Signals, as_signals, by_channel, units
from tauloop.logs.preparation import Motion, Preparation, prepared_signals, with_motions
from tauloop.logs.rates import smooth_rates
from tauloop.logs.signals import HIGHEST_CUTOFF, integrated, sample_period
from tauloop.logs.velocities import measured_velocities

#: Quantities of a motion.
_MOTION = ("position", "velocity", "acceleration")


def measured_again(
    log: Log, prepared: Signals, preparation: Preparation, rng: np.random.Generator
) -> tuple[Signals, Signals]:
    """Return a motion like that of a log, and the same motion after measurement and preparation.

    The velocities of the motion are the prepared velocities, and its positions are their integrals.
    A coarse encoder reads multiples of its step. Other positions get white noise with the standard
    deviation of the noise that the preparation removed. Measured velocities get the noise of their
    channel.

    Args:
        log: the log as measured.
        prepared: the log after `prepared_signals`, or its first part.
        preparation: settings of the preparation, with a cutoff for every channel.
        rng: random number generator for the noise.

    Returns:
        Two logs of the length of `prepared`, with its other channels.
    """
    raw = as_signals(log)
    period = sample_period(raw)
    positions = by_channel(raw, "position")
    position_units = units(raw, "position")
    smooth = by_channel(prepared, "position")
    qualities = measured_velocities(raw)
    count = len(prepared.time)
    exact_channels, measured_channels = [], []
    for name, velocity in by_channel(prepared, "velocity").items():
        unit = position_units[name]
        position = smooth[name][0] + integrated(velocity, period)
        noise = float(np.std(positions[name][preparation.trim :][:count] - smooth[name]))
        reading = _read(position, encoder_step(positions[name]), noise, rng)
        exact_channels.append(
            Channel(quantity="position", channel=name, values=position, unit=unit)
        )
        measured_channels.append(
            Channel(quantity="position", channel=name, values=reading, unit=unit)
        )
        if preparation.source_of(name) != "positions":
            quality = qualities[name]
            velocity_noise = quality.noise / abs(quality.scale)
            noisy = velocity + velocity_noise * rng.standard_normal(count)
            measured_channels.append(
                Channel(quantity="velocity", channel=name, values=noisy, unit=f"{unit}/s")
            )
    others = [channel for channel in prepared.channels if channel.quantity not in _MOTION]
    highest = HIGHEST_CUTOFF / period

    def unfiltered(channel: Channel) -> Motion:
        """Return positions and their derivatives, without a low-pass."""
        position, velocity, acceleration = smooth_rates(
            channel.values, rate=1.0 / period, cutoffs=(highest,) * 3, order=preparation.order
        )
        return position, velocity, acceleration

    exact_motion = Signals(time=prepared.time, channels=(*exact_channels, *others))
    measured = Signals(time=prepared.time, channels=(*measured_channels, *others))
    return (
        with_motions(exact_motion, unfiltered, preparation.standstill),
        prepared_signals(measured, replace(preparation, trim=0)),
    )


def _read(position: np.ndarray, step: float, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Return the readings (N,) of a position sensor with a step, or with white noise."""
    if noise < MAX_NOISE_SHARE * step:
        return np.asarray(step * np.round(position / step))
    return np.asarray(position + noise * rng.standard_normal(len(position)))
