"""Trajectories: a stroke, a law and a duration, sampled as motions for inverse dynamics and control."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from tauloop.common.datasets import Tabular, Variable, columns, time_axis
from tauloop.common.errors import InputError
from tauloop.common.plain import json_keys
from tauloop.common.records import dataclass
from tauloop.compiler.state import State
from tauloop.motion.laws import Law, LawSample
from tauloop.motion.rate_limits.peaks import refined
from tauloop.motion.rate_limits.stroke_limits import sample_times
from tauloop.motion.sampled import SampledMotion
from tauloop.motion.strokes.stroke import Stroke
from tauloop.motion.timing import Timing

#: Fraction of a sample beyond a whole number of samples that counts as rounding.
SAMPLE_TOLERANCE = 1e-9
#: Number of times at which a trajectory is tabulated and drawn.
TABLE_SAMPLES = 501


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakForce:
    """The largest force of one actuator along a trajectory.

    Attributes:
        actuator: its name.
        force: signed, N or N m.
        time: s.
        unit: N or N m.
        limit: the machine's, infinite where the file gives none.
    """

    actuator: str
    force: float = field(metadata=json_keys("peak_force"))
    time: float = field(metadata=json_keys("time_s"))
    unit: str
    limit: float = field(metadata=json_keys(nullable=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory(Tabular):
    """A stroke from rest to rest, optionally with its return along the same path.

    Attributes:
        stroke: the path in the machine.
        law: the motion law of each direction.
        duration: duration of one direction, s.
        returns: whether the stroke is run back to its start.
    """

    stroke: Stroke
    law: Law
    duration: float
    returns: bool = False

    @property
    def total(self) -> float:
        """Duration of the whole motion, s."""
        return self.duration * (2 if self.returns else 1)

    def variables(self) -> Iterator[Variable]:
        """Return positions, velocities, accelerations and actuator forces at equidistant times.

        Raises:
            PoseError: a singular pose.
        """
        time = np.linspace(0.0, self.total, TABLE_SAMPLES)
        motion = self.at(time)
        yield time_axis(time)
        for kind, port in self.stroke.functions.ports.motion.items():
            yield from columns(kind, port.columns, port.units, getattr(motion, kind))
        yield from columns("force", *self.stroke.model.output_ports("actuators"), self.forces(time))

    def places(self, time: np.ndarray) -> np.ndarray:
        """Return the parameters of the path (N,) at times (N,), s, limited to its ends."""
        x = time / self.duration
        return self.law.at(np.clip(np.where((x > 1.0) & self.returns, 2.0 - x, x), 0.0, 1.0)).s

    def states(self, time: np.ndarray) -> State:
        """Return all coordinates, velocities and accelerations at times (N,), s.

        Raises:
            PoseError: a singular pose.
        """
        motion, start = self.at(time), self.stroke.start(self.places(time))
        return self.stroke.functions.kinematics(*motion.states, start=start)

    def at(self, time: np.ndarray) -> SampledMotion:
        """Return the motion at times (N,), s; at rest before its start and after its end."""
        time = np.asarray(time, dtype=float)
        x = time / self.duration
        back = (x > 1.0) & self.returns
        moving = (x >= 0.0) & (x <= (2.0 if self.returns else 1.0))
        there = self.law.at(np.clip(np.where(back, 2.0 - x, x), 0.0, 1.0))
        progress = LawSample(
            s=there.s,
            first=np.where(moving, np.where(back, -there.first, there.first), 0.0),
            second=np.where(moving, there.second, 0.0),
        )
        return self.stroke.motion(progress, 1.0 / self.duration, time)

    def sample(self, frequency: float) -> SampledMotion:
        """Return the motion at k / frequency from its start to the first sample at or after its end.

        Args:
            frequency: samples per second, Hz.

        Raises:
            InputError: the frequency is not positive, or gives fewer than two samples.
        """
        if not 0 < frequency < np.inf or self.total * frequency < 1:
            what = f"{frequency:g} Hz gives fewer than two samples in {self.total:.4g} s"
            raise InputError.of("frequency", what, f"give more than {1 / self.total:.4g} Hz")
        return self.at(
            np.arange(int(np.ceil(self.total * frequency - SAMPLE_TOLERANCE)) + 1) / frequency
        )

    def peak_forces(self) -> tuple[PeakForce, ...]:
        """Return the largest force of every actuator, also between samples.

        Raises:
            PoseError: a singular pose.
        """
        model = self.stroke.model
        x = sample_times(self.stroke, self.law)
        time = np.concatenate([x, 2.0 - x[-2::-1]] if self.returns else [x]) * self.duration
        forces = self.forces(time)
        names, units = model.output_ports("actuators")
        peaks = []
        for i, name in enumerate(names):

            def size(t: np.ndarray, i: int = i) -> np.ndarray:
                return np.asarray(np.abs(self.forces(t)[:, i]))

            places, _ = refined(size, time, np.abs(forces[:, i]))
            force = float(self.forces(places[:1])[0, i])
            limit = model.mechanism.actuators[i].force
            peaks.append(
                PeakForce(
                    actuator=name, force=force, time=float(places[0]), unit=units[i], limit=limit
                )
            )
        return tuple(peaks)

    def forces(self, time: np.ndarray) -> np.ndarray:
        """Return actuator forces (N, n_u) at times (N,), s; N or N m.

        At the start dry friction is that of the motion that begins, at the end that of the motion
        that ends.

        Raises:
            PoseError: a singular pose.
        """
        directions, rates = self.directions(time), self.at(time).states
        return np.asarray(self.stroke.forces(self.places(time), directions, rates).force)

    def directions(self, time: np.ndarray) -> np.ndarray:
        """Return whether the motion goes ahead (1) or back (-1) or rests (0) at times (N,), s."""
        ahead = np.where(time > self.duration, -1.0, 1.0) if self.returns else 1.0
        return np.where((time >= 0.0) & (time <= self.total), ahead, 0.0)


def plan(stroke: Stroke, law: Law, timing: Timing, *, returns: bool = False) -> Trajectory:
    """Return a trajectory whose duration follows from `timing`.

    Args:
        stroke: the path in the machine.
        law: the motion law.
        timing: a given time, a peak speed or acceleration, or the machine's limits.
        returns: whether the stroke is run back to its start.

    Raises:
        InputError, PoseError: as of the timing.
    """
    return Trajectory(
        stroke=stroke,
        law=law,
        duration=timing.duration(stroke, law, returns=returns),
        returns=returns,
    )
