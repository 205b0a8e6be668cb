"""A motion at sampled times."""

from __future__ import annotations

import numpy as np

from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledMotion(Shown):
    """Positions, velocities and accelerations at times.

    Attributes:
        time: s (N,).
        position: m or rad (N, n).
        velocity: m/s or rad/s (N, n).
        acceleration: m/s^2 or rad/s^2 (N, n).
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
