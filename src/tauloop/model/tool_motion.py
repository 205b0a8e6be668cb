"""Where the tool is and how it moves."""

from __future__ import annotations

import numpy as np

from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMotion(Shown):
    """Motion of the tool in the base frame, of N samples; without the axis of samples for a single one.

    Attributes:
        place: of the tool centre point (N, 3), m.
        rotation: of the tool's frame (N, 3, 3).
        twist: velocity of the tool centre point and angular velocity (N, 6), m/s and rad/s.
        jacobian: twist per unit of the given velocities (N, 6, m).
    """

    place: np.ndarray
    rotation: np.ndarray
    twist: np.ndarray
    jacobian: np.ndarray
