"""Detection of nonuniform sampling: positions then jitter with the time stamps."""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.common.errors import Problem
from tauloop.logs.checks.stamps import stamp_jitter
from tauloop.logs.log import Log

#: Jitter is reported if `StampJitter.share`, the fraction of the jitter that positions follow,
#: differs from 1 by at most this value.
SHARE_TOLERANCE = 0.3
#: Minimum value of `StampJitter.share` for a report, in standard deviations.
MIN_SHARE_DEVIATIONS = 6.0


def jitter(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Return a problem if samples were taken at nonuniform times, according to their stamps.

    Uniform sampling with delayed stamps is harmless, because all samples are used as evenly spaced.

    Args:
        log: the log as measured, before any filter.
        names: position channels, which are evaluated together.

    Returns:
        One problem if positions follow the stamps (see `StampJitter`), else none.
    """
    offsets = stamp_jitter(log, names)
    if offsets is None or abs(offsets.share - 1.0) > SHARE_TOLERANCE:
        return ()
    if offsets.share < MIN_SHARE_DEVIATIONS * offsets.deviation:
        return ()
    share_of_period = 100.0 * offsets.size / offsets.period
    what = (
        f"stamps jitter by {1e3 * offsets.size:.3g} ms (RMS, {share_of_period:.3g} % of the period) "
        f"and positions follow them (fraction {offsets.share:.2f} of the velocity times the jitter, "
        f"standard deviation {offsets.deviation:.1g}): sampling is nonuniform, but the samples are "
        "used as evenly spaced"
    )
    return (Problem("time", what, "resample all channels to uniform sampling (--resample)"),)
