"""Whether uneven time stamps state when samples were taken: then positions jitter with them."""

from __future__ import annotations

from collections.abc import Sequence

from tauloop.common.errors import Problem
from tauloop.logs.checks.stamps import stamp_jitter
from tauloop.logs.log import Log

#: Positions follow the stamps with a share of one, to this, and beyond this many standard
#: deviations.
FOLLOWS, DEVIATIONS = 0.3, 6.0


def jitter(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Find samples that were taken at uneven times, as their stamps state.

    Even samples with late stamps do no harm, since samples are taken as evenly spaced.

    Args:
        log: the log as measured, before any filter.
        names: channels of position, taken together.

    Returns:
        One problem where positions follow the stamps (see `StampJitter`).
    """
    offsets = stamp_jitter(log, names)
    if (
        offsets is None
        or abs(offsets.share - 1.0) > FOLLOWS
        or offsets.share < DEVIATIONS * offsets.deviation
    ):
        return ()
    share_of_period = 100.0 * offsets.size / offsets.period
    what = (
        f"stamps jitter by {1e3 * offsets.size:.3g} ms (RMS, {share_of_period:.3g} % of the period) and positions with "
        f"them (share {offsets.share:.2f} of the velocity times the jitter, standard deviation "
        f"{offsets.deviation:.1g}): samples were taken at uneven times, and are used as if they were even"
    )
    return (Problem("time", what, "resample all channels evenly at their stamps (--resample)"),)
