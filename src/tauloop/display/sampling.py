"""Samples and units for plots: the extremes of long records, angles in degrees."""

from __future__ import annotations

import numpy as np

#: Maximum number of intervals whose extremes represent a long record. The intervals are finer than
#: the pixels of a panel.
FIGURE_INTERVALS = 1500


def thin(
    time: np.ndarray, values: np.ndarray, intervals: int = FIGURE_INTERVALS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest samples of each interval of a record, in time order.

    Args:
        time: times (N,).
        values: values (N,) or (N, n).
        intervals: maximum number of intervals.

    Returns:
        The times (k,) and values (k,) or (k, n); the whole record if it is short.
    """
    # Samples in each interval, rounded up.
    length = -(-len(time) // intervals)
    if length <= 2:
        return time, values
    count = len(time) // length * length  # samples in complete intervals
    blocks = values[:count].reshape(count // length, length, -1)
    extremes = np.concatenate([blocks.argmin(axis=1), blocks.argmax(axis=1)], axis=1)
    rows = extremes + np.arange(0, count, length)[:, None]
    indices = np.unique(np.concatenate([rows.ravel(), np.arange(count, len(time))]))
    return time[indices], values[indices]


def in_degrees(unit: str, values: np.ndarray) -> tuple[str, np.ndarray]:
    """Return a unit and values (...) for display: angles and their time derivatives in degrees."""
    if unit == "rad" or unit.startswith("rad/"):
        return unit.replace("rad", "deg"), np.degrees(values)
    return unit, values
