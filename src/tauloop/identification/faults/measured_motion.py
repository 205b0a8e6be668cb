"""Motion and forces of one log at even steps, and the same with a fault of a channel undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import scipy.fft

from tauloop.common.records import dataclass
from tauloop.logs import channels, sample_period, samples
from tauloop.logs.checks.saturation import LEFT_OUT
from tauloop.logs.log import Log
from tauloop.logs.signals import butterworth
from tauloop.model import Model

#: Where only slow motion is looked at, motion and forces are filtered at so many times the
#: frequency below which so much of the velocities' power is.
PLAIN, POWER = 8.0, 0.98
#: Of forces that are decimated, frequencies are kept up to this share of the new sampling rate.
PASSED = 0.4


#: Makes samples of all channels at some places from channels (N, n) over a whole log.
Moved: TypeAlias = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Motion and forces of one log, at even steps.

    Attributes:
        step: sampling period, s.
        names: of the positions (n).
        position, velocity, acceleration: (N, n), filtered alike, SI.
        drives: names of the measured forces (n_f).
        forces: (N, n_f), SI.
        periodic: the samples are whole periods, which may be shifted round.
        usable: (N,) samples of which all forces count; all without it.
        cutoff: of the low-pass of second order that the forces have passed, Hz; None for none.
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

    def changed(self, kind: str, change: Moved) -> Measured:
        """With other forces, or of kind "position" with other positions, velocities and accelerations."""
        at, names = np.arange(len(self.position)), ("position", "velocity", "acceleration")
        parts: dict[str, Any] = {
            name: change(getattr(self, name), at)
            for name in (("forces",) if kind == "force" else names)
        }
        return replace(self, **parts)

    def slow(self) -> Measured:
        """Low-passed a little above the motion's own frequencies."""
        return self.slow_motion().changed("force", self._low_pass())

    def slow_motion(self) -> Measured:
        """With its motion alone low-passed a little above the motion's own frequencies; what rests stays at rest."""
        slow = self.changed("position", self._low_pass())
        return replace(slow, velocity=np.where(self.velocity == 0.0, 0.0, slow.velocity))

    @property
    def highest(self) -> float:
        """Frequency, Hz, below which the share `POWER` of the velocities' power is."""
        size = np.maximum(np.sum(self.velocity**2), np.finfo(float).tiny)
        power = np.sum(np.abs(scipy.fft.rfft(self.velocity, axis=0)) ** 2 / size, axis=1)
        highest = np.searchsorted(np.cumsum(power), POWER * power.sum()) / (
            len(self.velocity) * self.step
        )
        return float(max(highest, 1.0 / (len(self.velocity) * self.step)))

    def _low_pass(self) -> Moved:
        cutoff, rate = min(PLAIN * self.highest, 0.4 / self.step), 1.0 / self.step

        def filtered(x: np.ndarray, at: np.ndarray) -> np.ndarray:
            return butterworth(x, rate=rate, cutoff=cutoff, order=2)

        return filtered


def measured(model: Model, log: Log, *, decimation: int = 1, periodic: bool = False) -> Measured:
    """Motion and measured forces of a log.

    Args:
        model: the machine.
        log: prepared.
        decimation: forces are filtered as this decimation would.
        periodic: whether the samples are whole periods.
    """
    names = tuple(model.actuators.ports.position.columns)
    drives = tuple(a.name for a in model.mechanism.actuators if a.name in channels(log, "force"))
    step, forces = sample_period(log), samples(log, "force", drives)
    cutoff = PASSED / (step * decimation) if decimation > 1 else None
    if cutoff is not None:
        forces = butterworth(forces, rate=1.0 / step, cutoff=cutoff, order=2)
    return Measured(
        step=step,
        names=names,
        position=samples(log, "position", names),
        velocity=samples(log, "velocity", names),
        acceleration=samples(log, "acceleration", names),
        drives=drives,
        forces=forces,
        periodic=periodic,
        usable=np.all(samples(log, LEFT_OUT) == 0.0, axis=1) if channels(log, LEFT_OUT) else None,
        cutoff=cutoff,
    )


def as_is(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Nothing is changed."""
    return np.asarray(x[at])


def scaled(column: int, factor: float) -> Moved:
    """A channel times a factor."""
    return all_scaled([column], factor)


def all_scaled(columns: Sequence[int], factor: float) -> Moved:
    """Some channels times a factor."""

    def moved(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        return np.asarray(x[at] * np.where(np.isin(np.arange(x.shape[1]), columns), factor, 1.0))

    return moved


def exchanged(first: int, second: int) -> Moved:
    """Two channels in each other's place."""

    def moved(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        order = np.arange(x.shape[1])
        order[[first, second]] = second, first
        return np.asarray(x[at][:, order])

    return moved


def late_by(column: int, shift: int) -> Moved:
    """A channel that came late by so many samples, put right; the ends of a log that is not periodic are not tried."""

    def moved(x: np.ndarray, at: np.ndarray) -> np.ndarray:
        values = x[at]
        values[:, column] = x[(at + shift) % len(x), column]
        return np.asarray(values)

    return moved
