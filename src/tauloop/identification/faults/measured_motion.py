"""Motion and forces of a uniformly sampled log, and the corrections of faulty channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import scipy.fft

from tauloop.common.records import dataclass
from tauloop.logs import channels, sample_period, samples
from tauloop.logs.checks.gaps import with_lines
from tauloop.logs.checks.saturation import LEFT_OUT
from tauloop.logs.log import Log
from tauloop.logs.signals import butterworth
from tauloop.model import Model

#: The slow motion of a log is low-passed at this multiple of the motion's highest frequency.
SLOW_CUTOFF_FACTOR = 8.0
#: Fraction of the velocities' power below the motion's highest frequency.
MOTION_POWER_SHARE = 0.98
#: Distance in time from the end of a log beyond which the low-pass is not affected by the end, as a
#: multiple of the inverse angular cutoff frequency.
SETTLING_TIME = 10.0
#: Cutoff of forces that are decimated, as a fraction of the new sampling rate.
DECIMATED_PASSBAND = 0.4


#: A function that returns changed samples of all channels. Its arguments are the channels (N, n)
#: over the whole log and the indices of the samples.
ChannelChange: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogMotion:
    """Motion and forces of a uniformly sampled log.

    Attributes:
        step: sampling period, s.
        names: names of the positions (n).
        position, velocity, acceleration: (N, n), with the same filter, SI.
        drives: names of the measured forces (n_f).
        forces: (N, n_f), SI.
        periodic: whether the samples are whole periods, which may be shifted cyclically.
        usable: (N,) whether all forces of a sample are valid; None if all samples are usable.
        cutoff: cutoff, Hz, of the second-order low-pass of the forces; None for no filter.
    """

    step: float
    names: tuple[str, ...]
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    drives: tuple[str, ...]
    forces: np.ndarray
    periodic: bool = False
    usable: np.ndarray | None = None
    cutoff: float | None = None

    def changed(self, quantity: str, change: ChannelChange) -> LogMotion:
        """Return the log with changed forces or a changed motion.

        Args:
            quantity: "force", or "position" to change positions, velocities and accelerations.
            change: the change of the channels.
        """
        rows = np.arange(len(self.position))
        if quantity == "force":
            return replace(self, forces=change(self.forces, rows))
        return replace(
            self,
            position=change(self.position, rows),
            velocity=change(self.velocity, rows),
            acceleration=change(self.acceleration, rows),
        )

    def slow(self) -> LogMotion:
        """Return the log, low-passed above the frequencies of the motion (`SLOW_CUTOFF_FACTOR`)."""
        return self.slow_motion().changed("force", self._low_pass())

    def slow_motion(self) -> LogMotion:
        """Return the log with its motion low-passed as in `slow`, and its forces unchanged.

        Velocities that are zero remain zero.
        """
        slow = self.changed("position", self._low_pass())
        return replace(slow, velocity=np.where(self.velocity == 0.0, 0.0, slow.velocity))

    @property
    def highest(self) -> float:
        """Highest frequency of the motion, Hz: `MOTION_POWER_SHARE` of the power is below it."""
        duration = len(self.velocity) * self.step
        total = np.maximum(np.sum(self.velocity**2), np.finfo(float).tiny)
        power = np.sum(np.abs(scipy.fft.rfft(self.velocity, axis=0)) ** 2 / total, axis=1)
        highest = np.searchsorted(np.cumsum(power), MOTION_POWER_SHARE * power.sum()) / duration
        return float(max(highest, 1.0 / duration))

    @property
    def slow_settling(self) -> int:
        """Number of samples at each end that the transient of the low-pass of `slow` affects."""
        return math.ceil(SETTLING_TIME / (2.0 * math.pi * self._slow_cutoff * self.step))

    @property
    def _slow_cutoff(self) -> float:
        """Cutoff of the low-pass of `slow`, Hz."""
        return min(SLOW_CUTOFF_FACTOR * self.highest, 0.4 / self.step)

    def _low_pass(self) -> ChannelChange:
        """Return the low-pass of `slow` as a change of channels."""
        cutoff = self._slow_cutoff
        rate = 1.0 / self.step

        def filtered(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
            return butterworth(x, rate=rate, cutoff=cutoff, order=2)

        return filtered


def measured_motion(
    model: Model, log: Log, *, decimation: int = 1, periodic: bool = False
) -> LogMotion:
    """Return the motion and the measured forces of a log.

    Force samples that are marked as left out are interpolated, so that filters do not spread their
    errors.

    Args:
        model: the machine.
        log: the prepared log.
        decimation: factor of the decimation. Its filter is applied to the forces, but all samples
            are retained.
        periodic: whether the samples are whole periods.
    """
    names = tuple(model.actuators.ports.position.columns)
    drives = tuple(a.name for a in model.mechanism.actuators if a.name in channels(log, "force"))
    step = sample_period(log)
    forces = samples(log, "force", drives)
    marked = channels(log, LEFT_OUT)
    for k, drive in enumerate(drives):
        if drive in marked:
            is_left_out = samples(log, LEFT_OUT, (drive,))[:, 0] != 0.0
            forces[:, k] = with_lines(forces[:, k], is_left_out)
    cutoff = DECIMATED_PASSBAND / (step * decimation) if decimation > 1 else None
    if cutoff is not None:
        forces = butterworth(forces, rate=1.0 / step, cutoff=cutoff, order=2)
    return LogMotion(
        step=step,
        names=names,
        position=samples(log, "position", names),
        velocity=samples(log, "velocity", names),
        acceleration=samples(log, "acceleration", names),
        drives=drives,
        forces=forces,
        periodic=periodic,
        usable=np.all(samples(log, LEFT_OUT) == 0.0, axis=1) if marked else None,
        cutoff=cutoff,
    )


def unchanged(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return samples without a change."""
    return np.asarray(x[rows])


def scale_channel(column: int, factor: float) -> ChannelChange:
    """Return a change that multiplies one channel by a factor."""
    return scale_channels([column], factor)


def scale_channels(columns: Sequence[int], factor: float) -> ChannelChange:
    """Return a change that multiplies some channels by a factor."""

    def change(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        factors = np.where(np.isin(np.arange(x.shape[1]), columns), factor, 1.0)
        return np.asarray(x[rows] * factors)

    return change


def exchange_channels(first: int, second: int) -> ChannelChange:
    """Return a change that exchanges two channels."""

    def change(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        order = np.arange(x.shape[1])
        order[[first, second]] = second, first
        return np.asarray(x[rows][:, order])

    return change


def shift_channel(column: int, delay: int) -> ChannelChange:
    """Return a change that corrects a channel with a delay of some samples.

    The shift is cyclic: it is only valid for rows away from the ends of a log that is not periodic.
    """

    def change(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        values = x[rows]
        values[:, column] = x[(rows + delay) % len(x), column]
        return np.asarray(values)

    return change
