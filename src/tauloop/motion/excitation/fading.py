"""Motions that start and end at rest in one position: a motion is faded in and out there."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.motion.laws import POLYNOMIAL_4567, Law
from tauloop.motion.paths.curves import SHAPE_POINTS, Curve, Path
from tauloop.motion.sampled import SampledMotion

#: Number of points per period that locate peaks.
POINTS_PER_PERIOD = 16


class SampleableMotion(Protocol):
    """A motion that can be sampled at any time."""

    def sample(self, time: np.ndarray) -> SampledMotion:
        """Return the positions with exact first and second derivatives."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Faded:
    """A faded motion q(t) = c + w(t) (p(t) - c).

    The weight w increases from 0 to 1 by a motion law, and decreases to 0 at the end. Velocity and
    acceleration vanish at both ends, and with the 4-5-6-7 polynomial also the jerk. Between the
    fades, the motion is p.

    Attributes:
        motion: motion p.
        center: position c at the start and the end (n,).
        duration: duration of the whole motion, s.
        fade: duration of each fade, s.
        law: law of the fades.
    """

    motion: SampleableMotion
    center: np.ndarray
    duration: float
    fade: float
    law: Law = POLYNOMIAL_4567

    def __post_init__(self) -> None:
        """Check the times.

        Raises:
            InputError: the fades do not fit into the duration.
        """
        if not 0 < 2 * self.fade <= self.duration < np.inf:
            what = (
                "must be above 0 and at most half of the duration, "
                f"got {self.fade:g} s of {self.duration:g} s"
            )
            raise InputError.of("fade", what, "choose at most half of a finite duration")

    def sample(self, time: np.ndarray) -> SampledMotion:
        """Return positions (N, n) with exact first and second derivatives at times (N,), s.

        The motion is at rest outside its duration.
        """
        time = np.asarray(time, dtype=float)
        is_second_half = time > 0.5 * self.duration
        x = np.where(is_second_half, self.duration - time, time) / self.fade
        fade = self.law.at(np.clip(x, 0.0, 1.0))
        is_fading = ((x > 0.0) & (x < 1.0))[:, None]
        sign = np.where(is_second_half, -1.0, 1.0)[:, None]
        w = fade.s[:, None]
        w1 = np.where(is_fading, sign * fade.derivative[:, None] / self.fade, 0.0)
        w2 = np.where(is_fading, fade.second_derivative[:, None] / self.fade**2, 0.0)
        motion = self.motion.sample(time)
        offset = motion.position - self.center
        return SampledMotion(
            time=time,
            position=self.center + w * offset,
            velocity=w1 * offset + w * motion.velocity,
            acceleration=w2 * offset + 2 * w1 * motion.velocity + w * motion.acceleration,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FadedPath(Path):
    """A faded motion as a path with the parameter u = t / T, where T is its duration.

    Attributes:
        motion: the faded motion, which is at rest at both ends.
        highest: highest frequency of the motion, Hz. It determines the number of points.
    """

    motion: Faded
    highest: float

    @property
    def breaks(self) -> tuple[float, ...]:
        """Parameters at which the fades end, and at which the acceleration of their law jumps."""
        fade_end = self.motion.fade / self.motion.duration
        fade_in = [fade_end * x for x in (*self.motion.law.breaks, 1.0)]
        return tuple(sorted({*fade_in, *(1.0 - u for u in fade_in)}))

    @property
    def n_shape_points(self) -> int:
        """Number of points that resolve the shape: several in each of the shortest periods."""
        return max(SHAPE_POINTS, int(POINTS_PER_PERIOD * self.highest * self.motion.duration) + 1)

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        duration = self.motion.duration
        motion = self.motion.sample(u * duration)
        return Curve(
            position=motion.position,
            derivative=duration * motion.velocity,
            second_derivative=duration**2 * motion.acceleration,
        )
