"""Fingerprints: leading digits of values at some states, which identify expressions."""

from __future__ import annotations

import numpy as np

#: Sums below this fraction of their terms are zero.
CANCELLED = 1e-11
#: Number of ignored trailing bits of a double; 30 of 53 bits remain, which are nine digits.
_LEFT_OUT = 23


def fingerprint(numbers: np.ndarray) -> tuple[bytes, float]:
    """Return nine digits of values as bytes, and the sign of the first value."""
    if not len(numbers) or not np.isfinite(numbers).all() or not numbers[0]:
        return b"", 1.0
    sign = 1.0 if numbers[0] > 0 else -1.0
    bits = (sign * numbers + 0.0).view(np.int64)  # the sum removes negative zeros
    return ((bits + (1 << _LEFT_OUT - 1)) >> _LEFT_OUT).tobytes(), sign
