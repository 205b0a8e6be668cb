"""What every check of an addition shares: its error, and the comparison of two arrays."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import Problems, TauloopError


class ConformanceError(TauloopError):
    """An addition does not do what its base promises; all that was found wrong."""


def compare(
    problems: Problems,
    where: str,
    actual: object,
    expected: object,
    *,
    tolerance: float,
    remedy: str,
) -> None:
    """Note where an array differs from another by more than a share of the largest number of both."""
    a, b = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    if a.shape != b.shape:
        problems.add(where, f"has shape {a.shape} instead of {b.shape}", remedy)
        return
    if not np.isfinite(a).all():
        problems.add(
            where, f"{np.count_nonzero(~np.isfinite(a))} of {a.size} numbers are not finite", remedy
        )
        return
    size = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0), np.finfo(float).tiny)
    error = np.abs(a - b).max(initial=0.0) / size
    if error > tolerance:
        problems.add(where, f"is off by {error:.3g} of its size, more than {tolerance:.0e}", remedy)
