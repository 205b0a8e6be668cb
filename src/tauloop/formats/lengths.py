"""The largest length of a file, the scale for the rounding of its positions."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tauloop.formats.xml.nodes import MAX_NUMBER

#: Lengths below this fraction of the largest one are rounding of an exporter or of a product of
#: poses.
LENGTH_ROUNDING_SHARE = 1e-12


def largest_length(positions: Iterable[str]) -> float:
    """Return the largest magnitude of a component of positions, m; zero where there is none.

    Args:
        positions: texts from the file, each of which begins with x, y and z. Words that are not
            numbers are ignored here; the reader of their element reports them.
    """
    words = (word for text in positions for word in text.split()[:3])
    return max(map(_magnitude, words), default=0.0)


def without_rounding(position: Iterable[float] | np.ndarray, largest: float) -> np.ndarray:
    """Return a position (3,) whose components that are only rounding are set to zero."""
    position = np.asarray(position, dtype=float)
    return np.where(np.abs(position) < LENGTH_ROUNDING_SHARE * largest, 0.0, position)


def _magnitude(word: str) -> float:
    try:
        value = abs(float(word))
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value < MAX_NUMBER else 0.0
