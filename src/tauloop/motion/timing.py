"""Duration of a stroke, from a time, a peak speed or acceleration, or the machine's limits."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.equations.ports import ACTUATORS
from tauloop.motion.laws import Law
from tauloop.motion.rate_limits.peaks import refined
from tauloop.motion.rate_limits.stroke_limits import fastest_rate, sample_times
from tauloop.motion.strokes.stroke import Stroke


class Timing(Options, ABC):
    """A rule for the duration of a stroke."""

    @abstractmethod
    def duration(self, stroke: Stroke, law: Law, *, returns: bool) -> float:
        """Return the duration of the stroke in one direction, s.

        Args:
            stroke: the path of the machine's coordinates.
            law: the motion law.
            returns: whether the motion also runs backward, which limits of forces must allow.
        """


@dataclass(frozen=True, slots=True)
class Seconds(Timing):
    """A prescribed duration, s."""

    seconds: float = option(above=0.0, below=np.inf)

    def duration(self, stroke: Stroke, law: Law, *, returns: bool) -> float:
        """Return the duration of the stroke in one direction, s."""
        return self.seconds


@dataclass(frozen=True, slots=True)
class PeakSpeed(Timing):
    """A prescribed peak speed, m/s, or rad/s for a motion that only rotates.

    The peak speed is the speed of the tool for a path of the platform, and the speed of the fastest
    actuator for a path of the actuators.
    """

    speed: float = option(above=0.0, below=np.inf)

    def duration(self, stroke: Stroke, law: Law, *, returns: bool) -> float:
        """Return the duration of the stroke in one direction, s."""
        return peak(stroke, law, "velocity") / self.speed


@dataclass(frozen=True, slots=True)
class PeakAcceleration(Timing):
    """A prescribed peak acceleration, m/s^2, or rad/s^2 for a motion that only rotates.

    The peak acceleration is the acceleration of the tool for a path of the platform, and the
    largest acceleration of an actuator for a path of the actuators.
    """

    acceleration: float = option(above=0.0, below=np.inf)

    def duration(self, stroke: Stroke, law: Law, *, returns: bool) -> float:
        """Return the duration of the stroke in one direction, s."""
        return float(np.sqrt(peak(stroke, law, "acceleration") / self.acceleration))


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLimits(Timing):
    """The shortest duration that the machine's force and speed limits allow.

    Attributes:
        force: fraction of the force limits that may be used.
        speed: fraction of the speed limits that may be used.
    """

    force: float = 1.0
    speed: float = 1.0

    def duration(self, stroke: Stroke, law: Law, *, returns: bool) -> float:
        """Return the duration of the stroke in one direction, s."""
        return 1.0 / fastest_rate(stroke, law, force=self.force, speed=self.speed, returns=returns)


def peak(stroke: Stroke, law: Law, kind: str, rate: float = 1.0) -> float:
    """Return the largest velocity or acceleration of a stroke with a duration of 1 / rate.

    For a path of the platform, the result is the largest Euclidean norm of the translational
    components, or of all components for a motion that only rotates. For a path of the actuators,
    the result is the largest absolute value of an actuator.

    Args:
        stroke: the path of the machine's coordinates.
        law: the motion law.
        kind: "velocity" or "acceleration".
        rate: normalized time per second, 1/s; the inverse of the duration.
    """
    units = stroke.functions.ports.velocity.units
    x = sample_times(stroke, law)

    def magnitude(times: np.ndarray) -> np.ndarray:
        """Return the magnitudes (N,) at normalized times (N,)."""
        values = getattr(stroke.motion(law.at(times), rate, times), kind)
        if stroke.functions.ports.entry is ACTUATORS:
            return np.asarray(np.abs(values).max(axis=1))
        translational = [i for i, unit in enumerate(units) if unit == "m/s" and values[:, i].any()]
        if translational:
            values = values[:, translational]
        return np.asarray(np.linalg.norm(values, axis=1))

    _, heights = refined(magnitude, x, magnitude(x))
    return float(heights[0])
