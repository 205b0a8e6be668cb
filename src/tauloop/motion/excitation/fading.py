"""Motions from rest to rest: any motion, faded in from a fixed position and out to it again."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.motion.laws import POLYNOMIAL_4567, Law
from tauloop.motion.paths.curves import SHAPE_POINTS, Curve, Path
from tauloop.motion.sampled import SampledMotion

#: Number of points per period that show where peaks are.
POINTS_PER_PERIOD = 16


class SampleableMotion(Protocol):
    """Anything that can be sampled at times."""

    def sample(self, time: np.ndarray) -> SampledMotion:
        """Return the positions with exact first and second derivatives."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Faded:
    """q(t) = c + w(t) (p(t) - c): w rises from 0 to 1 by a motion law, and falls back to 0 at the end.

    Velocity and acceleration (with the 4-5-6-7 polynomial the jerk too) vanish at both ends.
    Inside, the motion is p.

    Attributes:
        motion: p.
        center: c (n,), where it starts and ends.
        duration: duration of the whole motion, s.
        fade: duration of the rise, and of the fall, s.
        law: law of the rise.
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
            changing, np.where(falling, -1.0, 1.0)[:, None] * rise.first[:, None] / self.fade, 0.0
        )
        w2 = np.where(changing, rise.second[:, None] / self.fade**2, 0.0)
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
    """A faded motion as a path over its time, u = t / T, for a uniform rate over T.

    Attributes:
        motion: faded in and out, so that it rests at its ends.
        highest: highest frequency in it, Hz, which determines the number of points.
    """

    motion: Faded
    highest: float

    @property
    def breaks(self) -> tuple[float, ...]:
        """The times at which the fades end, and at which their law jumps."""
        share = self.motion.fade / self.motion.duration
        rising = [share * x for x in (*self.motion.law.breaks, 1.0)]
        return tuple(sorted({*rising, *(1.0 - u for u in rising)}))

    @property
    def looks(self) -> int:
        """Number of points that show its shape: several in each of the shortest periods."""
        return max(SHAPE_POINTS, int(POINTS_PER_PERIOD * self.highest * self.motion.duration) + 1)

    def at(self, u: np.ndarray) -> Curve:
        """Return the points at parameters u (N,)."""
        duration = self.motion.duration
        motion = self.motion.sample(u * duration)
        return Curve(
            position=motion.position,
            first=duration * motion.velocity,
            second=duration**2 * motion.acceleration,
        )
