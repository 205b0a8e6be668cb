"""The largest length of a file, which is the scale for rounding its positions."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tauloop.formats.xml.nodes import MAX_NUMBER

#: Lengths below this fraction of the largest one are rounding errors of an exporter or of a product
#: of poses.
LENGTH_ROUNDING_FRACTION = 1e-12


def largest_length(positions: Iterable[str]) -> float:
    """Return the largest magnitude of all components of positions, m; zero if there are none.

    Args:
        positions: texts from the file that begin with x, y and z. Words that are not numbers are
            ignored; the readers of the elements report them.
    """
    words = (word for text in positions for word in text.split()[:3])
    return max(map(_magnitude, words), default=0.0)


def without_rounding(position: Iterable[float] | np.ndarray, largest: float) -> np.ndarray:
    """Return a position (3,) after setting components that are rounding errors to zero."""
    position = np.asarray(position, dtype=float)
    return np.where(np.abs(position) < LENGTH_ROUNDING_FRACTION * largest, 0.0, position)


def _magnitude(word: str) -> float:
    try:
        value = abs(float(word))
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value < MAX_NUMBER else 0.0
