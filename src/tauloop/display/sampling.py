"""Samples and units for plots: the extremes of long records, angles in degrees."""

from __future__ import annotations

import numpy as np

#: A long record is drawn as the extremes of at most this number of intervals; they are finer than
#: the pixels of a panel.
FIGURE_INTERVALS = 1500


def thin(
    time: np.ndarray, values: np.ndarray, intervals: int = FIGURE_INTERVALS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples at which a record has the extremes of each interval, in time order.

    Args:
        time: times (N,).
        values: values (N,) or (N, n).
        intervals: maximum number of intervals.

    Returns:
        The times (k,) and values (k,) or (k, n); the whole record if it is short.
    """
    length = -(-len(time) // intervals)
    if length <= 2:
        return time, values
    blocked = len(time) // length * length
    blocks = values[:blocked].reshape(blocked // length, length, -1)
    extremes = np.concatenate([blocks.argmin(axis=1), blocks.argmax(axis=1)], axis=1)
    rows = extremes + np.arange(0, blocked, length)[:, None]
    chosen = np.unique(np.concatenate([rows.ravel(), np.arange(blocked, len(time))]))
    return time[chosen], values[chosen]


def in_degrees(unit: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """Return a unit and values (...) for display: angles and their rates in degrees."""
    if unit == "rad" or unit.startswith("rad/"):
        return unit.replace("rad", "deg"), np.degrees(values)
    return unit, values
