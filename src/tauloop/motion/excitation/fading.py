"""Motions from rest to rest: a motion that is faded in from a position and out to it again."""

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
        falling = time > 0.5 * self.duration
        x = np.where(falling, self.duration - time, time) / self.fade
        rise = self.law.at(np.clip(x, 0.0, 1.0))
        changing = ((x > 0.0) & (x < 1.0))[:, None]
        w = rise.s[:, None]
        w1 = np.where(
            changing,
            np.where(falling, -1.0, 1.0)[:, None] * rise.derivative[:, None] / self.fade,
            0.0,
        )
        w2 = np.where(changing, rise.second_derivative[:, None] / self.fade**2, 0.0)
        inner = self.motion.sample(time)
        moved = inner.position - self.center
        return SampledMotion(
            time=time,
            position=self.center + w * moved,
            velocity=w1 * moved + w * inner.velocity,
            acceleration=w2 * moved + 2 * w1 * inner.velocity + w * inner.acceleration,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FadedPath(Path):
    """A faded motion as a path with the parameter u = t / T, for a uniform rate over T.

    Attributes:
        motion: the faded motion, which is at rest at both ends.
        highest: highest frequency of the motion, Hz. It determines the number of points.
    """

    motion: Faded
    highest: float

    @property
    def breaks(self) -> tuple[float, ...]:
        """Parameters at which the fades end, and at which the acceleration of their law jumps."""
        share = self.motion.fade / self.motion.duration
        rising = [share * x for x in (*self.motion.law.breaks, 1.0)]
        return tuple(sorted({*rising, *(1.0 - u for u in rising)}))

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
