"""Whether time stamps that jitter say when samples were taken: then positions jitter with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.errors import Problem
from tauloop.logs import butterworth, channels, samples
from tauloop.logs.channels import Log, as_signals

#: Jitter below this share of the period is none.
LEAST = 0.01
#: The motion is below this share of the sampling rate, what is above it is looked at.
SLOW = 0.1
#: Positions follow the stamps with a share of one, to this, and beyond so many standard deviations.
FOLLOWS, DEVIATIONS = 0.3, 6.0
#: Blocks over which the share's deviation is taken.
BLOCKS = 20


def jitter(log: Log, names: Sequence[str]) -> tuple[Problem, ...]:
    """Whether samples were taken at uneven times, which the stamps tell.

    A position sampled at t_n = n T + d_n is off its value at n T by the velocity times d_n. What is fast of it,
    x - low-passed x, is fitted by what is fast of v d: a share of one says that the stamps are right and the sampling
    is uneven, zero that the stamps alone jitter, as those of a busy computer do; these do no harm, since samples are
    taken as evenly spaced.

    Args:
        log: the log as measured, before any filter.
        names: positions that are looked at, all together.

    Returns:
        One problem where positions follow the stamps.
    """
    signals = as_signals(log)
    time, count = signals.time, len(signals.time)
    names = [name for name in names if name in channels(signals, "position")]
    if count < 4 * BLOCKS or not names:
        return ()
    along = np.arange(count) - 0.5 * (count - 1)
    late = time - time.mean()
    period = float(along @ late / (along @ along))  # of the line by least squares
    late -= period * along
    size = float(np.sqrt(np.mean(late**2)))
    if size < LEAST * period:
        return ()
    position = samples(signals, "position", names)
    fast = late[:, None] * np.gradient(_slow(position), period, axis=0)
    fast, position = fast - _slow(fast), position - _slow(position)
    inner = slice(count // 20, count - count // 20)
    noise = np.maximum(position[inner].std(axis=0), np.finfo(float).tiny)
    x, y = (fast[inner] / noise), (position[inner] / noise)
    power = float(np.sum(x * x))
    if power == 0.0:
        return ()
    share = float(np.sum(x * y)) / power
    parts = np.array([part.sum() for part in np.array_split(x * (y - share * x), BLOCKS)])
    deviation = float(np.sqrt(parts @ parts)) / power
    if abs(share - 1.0) > FOLLOWS or share < DEVIATIONS * deviation:
        return ()
    what = (
        f"stamps jitter by {1e3 * size:.3g} ms (RMS, {100.0 * size / period:.3g} % of the period) and positions with "
        f"them (share {share:.2f} of the velocity times the jitter, standard deviation {deviation:.1g}): samples were "
        "taken at uneven times, and are used as if they were even"
    )
    return (Problem("time", what, "resample all channels evenly at their stamps (--resample)"),)


def _slow(x: np.ndarray) -> np.ndarray:
    return butterworth(x, rate=1.0, cutoff=SLOW, order=4)
