"""Trajectories: a path (`Stroke`), a motion law and a duration, sampled for dynamics and control.

A motion law (time scaling) gives the fraction of the path as a function of the fraction of the
duration.
"""

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

#: If the duration exceeds a whole number of sample periods by at most this fraction of a period,
#: the excess is a rounding error.
SAMPLE_TOLERANCE = 1e-9
#: Number of times at which a trajectory is tabulated and plotted.
TABLE_SAMPLES = 501


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakForce:
    """The largest force of an actuator along a trajectory.

    Attributes:
        actuator: name of the actuator.
        force: largest force with its sign, N or N m.
        time: time of the largest force, s.
        unit: unit of the force, N or N m.
        limit: force limit in the machine file; infinite without a limit.
    """

    actuator: str
    force: float = field(metadata=json_keys("peak_force"))
    time: float = field(metadata=json_keys("time_s"))
    unit: str
    limit: float = field(metadata=json_keys(nullable=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory(Tabular):
    """A motion along a stroke from rest to rest, optionally with its return along the same path.

    Attributes:
        stroke: the path of the machine's coordinates.
        law: the motion law of each direction.
        duration: duration of one direction, s.
        returns: whether the stroke returns to its start.
    """

    stroke: Stroke
    law: Law
    duration: float
    returns: bool = False

    @property
    def total(self) -> float:
        """Duration of the whole motion, including the return, s."""
        return self.duration * (2 if self.returns else 1)

    def variables(self) -> Iterator[Variable]:
        """Yield positions, velocities, accelerations and actuator forces at uniformly spaced times.

        Raises:
            PoseError: a pose is singular.
        """
        time = np.linspace(0.0, self.total, TABLE_SAMPLES)
        motion = self.at(time)
        yield time_axis(time)
        for kind, port in self.stroke.functions.ports.motion.items():
            yield from columns(kind, port.columns, port.units, getattr(motion, kind))
        yield from columns("force", *self.stroke.model.output_ports("actuators"), self.forces(time))

    def places(self, time: np.ndarray) -> np.ndarray:
        """Return the path parameters (N,), 0 at the start and 1 at the end, at times (N,), s.

        Before its start and after its end, the motion is at an end of the path.
        """
        x = time / self.duration
        is_return = (x > 1.0) & self.returns
        return self.law.at(np.clip(np.where(is_return, 2.0 - x, x), 0.0, 1.0)).s

    def states(self, time: np.ndarray) -> State:
        """Return all coordinates, velocities and accelerations at times (N,), s.

        Raises:
            PoseError: a pose is singular.
        """
        motion = self.at(time)
        start = self.stroke.start(self.places(time))
        return self.stroke.functions.kinematics(*motion.states, start=start)

    def at(self, time: np.ndarray) -> SampledMotion:
        """Return the motion at times (N,), s. It is at rest before its start and after its end."""
        time = np.asarray(time, dtype=float)
        x = time / self.duration
        is_return = (x > 1.0) & self.returns
        is_moving = (x >= 0.0) & (x <= (2.0 if self.returns else 1.0))
        forward = self.law.at(np.clip(np.where(is_return, 2.0 - x, x), 0.0, 1.0))
        derivative = np.where(is_return, -forward.derivative, forward.derivative)
        progress = LawSample(
            s=forward.s,
            derivative=np.where(is_moving, derivative, 0.0),
            second_derivative=np.where(is_moving, forward.second_derivative, 0.0),
        )
        return self.stroke.motion(progress, 1.0 / self.duration, time)

    def sample(self, frequency: float) -> SampledMotion:
        """Return the motion at the times k / frequency.

        The last sample is the first one at or after the end of the motion.

        Args:
            frequency: samples per second, Hz.

        Raises:
            InputError: the frequency is not positive, or gives fewer than two samples.
        """
        if not 0 < frequency < np.inf or self.total * frequency < 1:
            what = f"{frequency:g} Hz gives fewer than two samples in {self.total:.4g} s"
            raise InputError.of("frequency", what, f"give at least {1 / self.total:.4g} Hz")
        return self.at(
            np.arange(int(np.ceil(self.total * frequency - SAMPLE_TOLERANCE)) + 1) / frequency
        )

    def peak_forces(self) -> tuple[PeakForce, ...]:
        """Return the largest force of every actuator, including peaks between samples.

        Raises:
            PoseError: a pose is singular.
        """
        model = self.stroke.model
        normalized_times = sample_times(self.stroke, self.law)
        if self.returns:
            mirrored = 2.0 - normalized_times[:-1][::-1]
            normalized_times = np.concatenate([normalized_times, mirrored])
        time = normalized_times * self.duration
        forces = self.forces(time)
        names, units = model.output_ports("actuators")
        peaks = []
        for i, name in enumerate(names):

            def magnitude(t: np.ndarray, i: int = i) -> np.ndarray:
                return np.asarray(np.abs(self.forces(t)[:, i]))

            peak_times, _ = refined(magnitude, time, np.abs(forces[:, i]))
            force = float(self.forces(peak_times[:1])[0, i])
            limit = model.mechanism.actuators[i].force
            peaks.append(
                PeakForce(
                    actuator=name,
                    force=force,
                    time=float(peak_times[0]),
                    unit=units[i],
                    limit=limit,
                )
            )
        return tuple(peaks)

    def forces(self, time: np.ndarray) -> np.ndarray:
        """Return actuator forces (N, n_u), N or N m, at times (N,), s.

        At the start and the end, dry friction has the direction of the adjoining motion.

        Raises:
            PoseError: a pose is singular.
        """
        motion = self.at(time).states
        return np.asarray(
            self.stroke.forces(self.places(time), self.directions(time), motion).force
        )

    def directions(self, time: np.ndarray) -> np.ndarray:
        """Return the directions at times (N,), s: forward (1), backward (-1) or at rest (0)."""
        direction = np.where(time > self.duration, -1.0, 1.0) if self.returns else 1.0
        return np.where((time >= 0.0) & (time <= self.total), direction, 0.0)


def plan(stroke: Stroke, law: Law, timing: Timing, *, returns: bool = False) -> Trajectory:
    """Return a trajectory whose duration follows from `timing`.

    Args:
        stroke: the path of the machine's coordinates.
        law: the motion law.
        timing: a given duration, a peak speed or acceleration, or the machine's limits.
        returns: whether the stroke returns to its start.

    Raises:
        InputError, PoseError: see the class of `timing`.
    """
    return Trajectory(
        stroke=stroke,
        law=law,
        duration=timing.duration(stroke, law, returns=returns),
        returns=returns,
    )
