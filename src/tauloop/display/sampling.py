"""Samples and units as plots show them: the extremes of long records, angles in degrees."""

from __future__ import annotations

import numpy as np

#: A record is drawn by the extremes of at most this number of intervals, which are finer than the
#: pixels of a panel.
FIGURE_INTERVALS = 1500


def thin(
    time: np.ndarray, values: np.ndarray, stretches: int = FIGURE_INTERVALS
) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of a record (N,) or (N, n) with the extremes of each interval, in time order."""
    length = -(-len(time) // stretches)
    if length <= 2:
        return time, values
    whole = len(time) // length * length
    blocks = values[:whole].reshape(whole // length, length, -1)
    ends = np.concatenate([blocks.argmin(axis=1), blocks.argmax(axis=1)], axis=1)
    rows = ends + np.arange(0, whole, length)[:, None]
    kept = np.unique(np.concatenate([rows.ravel(), np.arange(whole, len(time))]))
    return time[kept], values[kept]


def in_degrees(unit: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """Return a unit and values (...) as tables print them, with angles and their rates in degrees."""
    if unit == "rad" or unit.startswith("rad/"):
        return unit.replace("rad", "deg"), np.degrees(values)
    return unit, values
