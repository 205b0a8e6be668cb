"""The error of conformance checks, and a comparison of arrays that reports problems."""

from __future__ import annotations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import Problems, TauloopError


class ConformanceError(TauloopError):
    """Violations of the contract of a base class by an extension."""


def compare(
    problems: Problems,
    where: str,
    actual: object,
    expected: object,
    *,
    tolerance: float,
    remedy: str,
) -> None:
    """Add a problem if two arrays differ by more than `tolerance` times their largest element."""
    a = np.asarray(actual, dtype=float)
    b = np.asarray(expected, dtype=float)
    if a.shape != b.shape:
        problems.add(where, f"has shape {a.shape} instead of {b.shape}", remedy)
        return
    not_finite = np.count_nonzero(~np.isfinite(a))
    if not_finite:
        verb = "is" if not_finite == 1 else "are"
        what = f"{not_finite} of {counted(a.size, 'value')} {verb} not finite"
        problems.add(where, what, remedy)
        return
    scale = max(np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0), np.finfo(float).tiny)
    error = np.abs(a - b).max(initial=0.0) / scale
    if error > tolerance:
        what = f"has a relative error of {error:.3g}, more than {tolerance:.0e}"
        problems.add(where, what, remedy)
