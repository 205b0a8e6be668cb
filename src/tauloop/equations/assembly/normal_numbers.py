"""Normal numbers for the walks around a pose, without `numpy.random` for small machines."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np


class NormalSource(Protocol):
    """A source of normal numbers, such as `np.random.Generator`."""

    def normal(self, *, size: tuple[int, int]) -> np.ndarray:
        """Return normal numbers of a shape."""
        ...


class FirstNormalNumbers:
    """The normal numbers of ``np.random.default_rng(0)``, in order.

    The first 1024, enough for 28 velocities, are in a file: importing `numpy.random` takes as long
    as assembling a small machine.
    """

    def __init__(self) -> None:
        """Begin with the first number."""
        self._used = 0

    def normal(self, *, size: tuple[int, int]) -> np.ndarray:
        """Return the next numbers, in an array of a shape."""
        first, self._used = self._used, self._used + math.prod(size)
        numbers = stored_numbers()
        if self._used > len(numbers):
            numbers = np.random.default_rng(0).normal(size=self._used)
        return numbers[first : self._used].reshape(size).copy()


@lru_cache(maxsize=1)
def stored_numbers() -> np.ndarray:
    """Return the numbers of the file (1024,)."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="ascii")
    return np.array(text.split(), dtype=float)
