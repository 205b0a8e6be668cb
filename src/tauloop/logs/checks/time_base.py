"""Interpolation of signals with different clocks and rates at the times of one signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.logs.checks.timing import missing_samples


def linear(stamps: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return values (N,) at times `at` (N,) by linear interpolation between samples."""
    return np.interp(at, stamps, values)


def hold(stamps: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the last sample (N,) at or before each time `at` (N,)."""
    return values[np.clip(np.searchsorted(stamps, at, side="right") - 1, 0, None)]


def cubic(stamps: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the values (N,) of a cubic spline through the samples at times `at` (N,)."""
    from scipy.interpolate import CubicSpline  # slow to import

    return CubicSpline(stamps, values)(at) if len(stamps) > 1 else linear(stamps, values, at)


#: Interpolation methods by name: functions of stamps (K,), values (K,) and times (N,) that return
#: values (N,).
INTERPOLATIONS: Mapping[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "linear": linear,
    "hold": hold,
    "cubic": cubic,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StampedSignal:
    """Samples of one signal at its own times.

    Attributes:
        time: increasing stamps (K,), s.
        values: samples (K,); numbers that are not finite count as missing.
    """

    time: np.ndarray
    values: np.ndarray

    def at(self, time: np.ndarray, between: str) -> np.ndarray:
        """Return the values (N,) at other times within the signal's own time range.

        Args:
            time: times (N,), s.
            between: a name of `INTERPOLATIONS`; samples at exactly these times are returned
                unchanged.

        Returns:
            Values (N,); NaN next to a sample that is not finite.
        """
        is_missing = ~np.isfinite(self.values)
        if not is_missing.any():
            return INTERPOLATIONS[between](self.time, self.values, time)
        if is_missing.all():
            return np.full(len(time), np.nan)
        values = INTERPOLATIONS[between](self.time[~is_missing], self.values[~is_missing], time)
        return np.where(np.interp(time, self.time, is_missing.astype(float)) > 0.0, np.nan, values)

    def dropped(self, *, may_be_late: bool) -> list[tuple[float, float, int]]:
        """Return (time before, time after, number of dropped samples) for each gap; times in s."""
        _, missing = missing_samples(self.time, may_be_late=may_be_late)
        gaps = np.flatnonzero(missing)
        return [(self.time[k], self.time[k + 1], int(missing[k])) for k in gaps]
