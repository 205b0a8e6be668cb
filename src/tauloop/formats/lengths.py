"""The largest length of a file, by which the rounding of its positions is judged whatever the size of the machine."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tauloop.formats.xml.nodes import LARGEST_NUMBER

#: Lengths below this share of the largest one are the rounding of an exporter, or of a product of
#: poses.
ROUNDING_SHARE = 1e-12


def largest_length(positions: Iterable[str]) -> float:
    """Return the largest magnitude of a component of positions, m; zero where there is none.

    Args:
        positions: texts as a file has them, each of which begins with x, y and z. Words that are
            not numbers do not count here: the reader of their element reports them.
    """
    words = (word for text in positions for word in text.split()[:3])
    return max(map(_magnitude, words), default=0.0)


def without_rounding(position: Iterable[float] | np.ndarray, largest: float) -> np.ndarray:
    """Return a position (3,) whose components that are rounding, compared with the largest length, are zero."""
    position = np.asarray(position, dtype=float)
    return np.where(np.abs(position) < ROUNDING_SHARE * largest, 0.0, position)


def _magnitude(word: str) -> float:
    try:
        value = abs(float(word))
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value < LARGEST_NUMBER else 0.0
