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

    Between points of the grid, u'' = a_l + k (u - u_l). The solution is u - u_l = v_l S(t) + a_l
    C(t) with S = sinh(sqrt(k) t) / sqrt(k) and C = (cosh(sqrt(k) t) - 1) / k, or sines and cosines
    for k < 0.

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
        profile, total = self.profile, self.duration
        time = np.asarray(x) * total
        k = np.clip(np.searchsorted(self.times, time, side="right") - 1, 0, len(profile.first) - 1)
        t, bend, a, v = (
            time - self.times[k],
            profile.bend[k],
            profile.first[k],
            np.sqrt(profile.x[k]),
        )
        size = bend * t**2
        root = np.sqrt(np.abs(bend))
        angle, up = root * t, bend > 0
        safe = np.where(root > 0, root, 1.0)
        far = np.abs(size) > SERIES_THRESHOLD
        sine = np.where(up, np.sinh(np.where(up, angle, 0.0)), np.sin(angle)) / safe
        half = np.where(up, np.sinh(np.where(up, angle / 2, 0.0)), np.sin(angle / 2)) / safe
        S = np.where(far, sine, t * (1 + size / 6 * (1 + size / 20)))
        C = np.where(far, 2 * half**2, 0.5 * t**2 * (1 + size / 12 * (1 + size / 30)))
        w = v * S + a * C
        speed, pull = v * (1 + bend * C) + a * S, a + bend * w
        for is_smooth, end, sign in zip(
            profile.smooth, (0, len(profile.first) - 1), (1.0, -1.0), strict=True
        ):
            here = (k == end) & is_smooth
            if here.any():
                d, whole = (
                    profile.grid[end + 1] - profile.grid[end],
                    self.times[end + 1] - self.times[end],
                )
                passed = np.where(here, t if sign > 0 else whole - t, 0.0)
                cubed = d / whole**3
                w = np.where(here, cubed * passed**3 if sign > 0 else d - cubed * passed**3, w)
                speed = np.where(here, 3.0 * cubed * passed**2, speed)
                pull = np.where(here, sign * 6.0 * cubed * passed, pull)
        # an interval ends just before the next one begins, because the path's derivatives and
        # friction may differ on the other side
        last = np.append(np.nextafter(profile.grid[1:-1], 0.0), 1.0)
        return LawSample(
            s=np.clip(profile.grid[k] + w, profile.grid[k], last[k]),
            derivative=speed * total,
            second_derivative=pull * total**2,
        )
