"""What tells values apart at some states: their first digits."""

from __future__ import annotations

import numpy as np

#: Sums below this share of their terms are zero.
CANCELLED = 1e-11
#: Last bits of a double that are left out: 30 of 53 stay, nine digits.
_LEFT_OUT = 23


def fingerprint(numbers: np.ndarray) -> tuple[bytes, float]:
    """Nine digits of some values, and the sign of the first; nothing where they are no numbers, or zero."""
    if not len(numbers) or not np.isfinite(numbers).all() or not numbers[0]:
        return b"", 1.0
    sign = 1.0 if numbers[0] > 0 else -1.0
    bits = (sign * numbers + 0.0).view(np.int64)  # a sum, so that there is one zero only
    return ((bits + (1 << _LEFT_OUT - 1)) >> _LEFT_OUT).tobytes(), sign
