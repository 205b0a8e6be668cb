"""Motion laws from a speed profile along a path."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.motion.fastest.sweeps import Profile
from tauloop.motion.laws import Law, LawSample

#: Absolute value of k t^2 below which series are used instead of (hyperbolic) sines.
SERIES_THRESHOLD = 1e-6


@dataclass(frozen=True, slots=True)
class ProfileLaw(ReprMixin, Law):
    """The law of a speed profile, which may be asymmetric.

    Between points of the grid, u'' = a_l + k (u - u_l), where u_l, v_l and a_l are parameter, speed
    and acceleration at the left point. The solution is u - u_l = v_l S(t) + a_l C(t) with
    S = sinh(sqrt(k) t) / sqrt(k) and C = (cosh(sqrt(k) t) - 1) / k, or sines and cosines for k < 0.

    Attributes:
        profile: squared speeds and accelerations along the path, in any unit of time.
    """

    profile: Profile
    times: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the times at which the points of the grid are passed."""
        object.__setattr__(self, "times", np.concatenate([[0.0], np.cumsum(self.profile.times())]))

    @property
    def duration(self) -> float:
        """Duration of the profile, in its unit of time."""
        return float(self.times[-1])

    @property
    def breaks(self) -> tuple[float, ...]:
        """Normalized times at the points of the grid, where the acceleration may jump."""
        return tuple((self.times[1:-1] / self.duration).tolist())

    def at(self, x: np.ndarray) -> LawSample:
        """Return progress at normalized times x (N,)."""
        profile = self.profile
        total = self.duration
        time = np.asarray(x) * total
        k = np.clip(np.searchsorted(self.times, time, side="right") - 1, 0, len(profile.first) - 1)
        t = time - self.times[k]
        slope = profile.acceleration_slope[k]
        a = profile.first[k]
        v = np.sqrt(profile.x[k])
        z = slope * t**2
        root = np.sqrt(np.abs(slope))
        angle = root * t
        is_hyperbolic = slope > 0
        divisor = np.where(root > 0, root, 1.0)
        uses_sines = np.abs(z) > SERIES_THRESHOLD

        def sine(x: np.ndarray) -> np.ndarray:
            """Return S for the angle sqrt(|k|) t: a sine or hyperbolic sine."""
            hyperbolic = np.sinh(np.where(is_hyperbolic, x, 0.0))
            return np.where(is_hyperbolic, hyperbolic, np.sin(x)) / divisor

        S = np.where(uses_sines, sine(angle), t * (1 + z / 6 * (1 + z / 20)))
        C = np.where(uses_sines, 2 * sine(angle / 2) ** 2, 0.5 * t**2 * (1 + z / 12 * (1 + z / 30)))
        w = v * S + a * C
        speed = v * (1 + slope * C) + a * S
        acceleration = a + slope * w
        for is_smooth, end, sign in zip(
            profile.has_smooth_ends, (0, len(profile.first) - 1), (1.0, -1.0), strict=True
        ):
            # In this interval the jerk is constant; speed and acceleration vanish at the outer end.
            is_inside = (k == end) & is_smooth
            if is_inside.any():
                d = profile.grid[end + 1] - profile.grid[end]
                interval = self.times[end + 1] - self.times[end]
                # time from the outer end
                s = np.where(is_inside, t if sign > 0 else interval - t, 0.0)
                coefficient = d / interval**3
                distance = coefficient * s**3
                w = np.where(is_inside, distance if sign > 0 else d - distance, w)
                speed = np.where(is_inside, 3.0 * coefficient * s**2, speed)
                acceleration = np.where(is_inside, sign * 6.0 * coefficient * s, acceleration)
        # An interval ends just before the next interval begins, because the path's derivatives and
        # friction may differ on the other side.
        last = np.append(np.nextafter(profile.grid[1:-1], 0.0), 1.0)
        return LawSample(
            s=np.clip(profile.grid[k] + w, profile.grid[k], last[k]),
            derivative=speed * total,
            second_derivative=acceleration * total**2,
        )
