"""Faults of single channels that need no model: forces that stay at a limit, samples that jump."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.errors import Problem
from tauloop.logs import channels, samples
from tauloop.logs.channels import Log, as_signals

#: So many neighbouring samples at the largest value are a limit, not a peak.
PLATEAU = 5
#: And more than this many times as many as at the next value: of coarsely stepped forces the crest of a sine stays at
#: its largest step some 2.4 times as long as at the next.
STEPPED = 5
#: Noise hides a limit: values this near to the largest, as a share of the whole range, count as equal, ...
BINS = (1e-3, 3e-3, 1e-2)
#: ... but where all channels are slower than this share of their largest speed, forces rest by themselves.
RESTING = 0.02
#: A force within this share of the drive's limit is at it.
AT_LIMIT = 0.01
#: A sample that lies off both its neighbours by this share of the channel's range (but for the outermost
#: hundredths), and this many times as far as all but a thousandth of the samples do, is a spike.
SPIKE, TIMES = 0.5, 10.0


def clipped(log: Log, quantity: str = "force", limits: Mapping[str, float] | None = None) -> tuple[Problem, ...]:
    """Channels that stay at their largest or smallest value for several samples, as a limit makes them.

    Either at exactly that value, or, where noise was added behind the limit, within a small share of the range of it,
    while the machine moves; or at the limit that the machine's description states.

    Args:
        log: the log as measured, before any filter.
        quantity: which channels are looked at.
        limits: largest absolute value of channels, SI, such as the drives' largest forces.

    Returns:
        One problem for each end of a channel, with the value and how many samples are at it.
    """
    found = []
    moving = _moving(log)
    for name in channels(log, quantity):
        values = samples(log, quantity, (name,))[:, 0]
        bound = (limits or {}).get(name)
        for sign, word in ((1.0, "largest"), (-1.0, "smallest")):
            count, why = _at_end(sign * values, moving, bound)
            if count:
                limit = sign * (sign * values).max()
                found.append(
                    Problem(
                        where=f"{quantity}.{name}",
                        what=f"stays at its {word} value {limit:.6g} in {count} samples, {PLATEAU} or more in a row: "
                        f"it is clipped{why}",
                        remedy="excite less, raise the drive's limit, or leave these samples out",
                    )
                )
    return tuple(found)


def spikes(log: Log) -> tuple[Problem, ...]:
    """Positions and forces of which single samples lie far off both neighbours, as a lost bit or message makes them.

    Returns:
        One problem for each channel: how many samples, and the first of them with its value and its neighbours'.
    """
    found = []
    times = as_signals(log).time
    for quantity in ("position", "force"):
        for name in channels(log, quantity):
            values = samples(log, quantity, (name,))[:, 0]
            at = _spikes(values)
            if len(at):
                before, here, after = values[at[0] - 1 : at[0] + 2]
                found.append(
                    Problem(
                        where=f"{quantity}.{name}",
                        what=f"jumps for single samples: {len(at)} of them, the first {here:.6g} at {times[at[0]]:g} s "
                        f"between {before:.6g} and {after:.6g}",
                        remedy="repair or leave out these samples, or fit with --estimator irls",
                    )
                )
    return tuple(found)


def _moving(log: Log) -> np.ndarray:
    """Samples (N,) in which some channel of position moves."""
    positions = samples(log, "position")
    moving = np.zeros(len(positions), dtype=bool)
    for values in positions.T:
        speed = np.abs(np.gradient(values)) if len(values) > 1 else np.zeros(len(values))
        smooth = np.convolve(speed, np.full(2 * PLATEAU + 1, 1.0 / (2 * PLATEAU + 1)), mode="same")
        moving |= smooth > RESTING * smooth.max(initial=0.0)
    return moving


def _at_end(values: np.ndarray, moving: np.ndarray, bound: float | None) -> tuple[int, str]:
    """How many samples are at the largest value as if a limit held them there, and how that limit shows."""
    largest, span = float(values.max()), float(np.ptp(values))
    if span == 0.0 or largest == 0.0:
        return 0, ""
    at = values == largest
    beside = values[~at][np.argmax(values[~at])]
    count = _in_a_row(at)
    if count > STEPPED * np.sum(values == beside):
        return count, ""
    if bound is not None and abs(largest - bound) <= AT_LIMIT * bound:
        count = _in_a_row((values >= (1.0 - AT_LIMIT) * bound) & moving)
        if count:
            return count, f", at the limit of {bound:.6g} that the machine file states"
    steps = np.diff(np.unique(values))
    for share in BINS:
        width = share * span
        if len(steps) * share < 1.0 and steps.min() > width:
            continue  # coarser steps than these
        near = (values > largest - width) & moving
        next_ones = (values > largest - 2.0 * width) & (values <= largest - width) & moving
        count = _in_a_row(near)
        if count > 2 * STEPPED * max(int(next_ones.sum()), PLATEAU):
            return count, f", with noise of up to {width:.2g} on it"
    return 0, ""


def _in_a_row(at: np.ndarray) -> int:
    """Number of samples in runs of `PLATEAU` or more."""
    edges = np.flatnonzero(np.diff(at, prepend=False, append=False))
    lengths = edges[1::2] - edges[::2]
    return int(lengths[lengths >= PLATEAU].sum())


def _spikes(values: np.ndarray) -> np.ndarray:
    """Numbers of the samples that lie off both neighbours, on one side of them."""
    if len(values) < 2 * PLATEAU:
        return np.zeros(0, dtype=int)
    steps = np.diff(values)
    off = np.where(steps[:-1] * steps[1:] < 0.0, np.minimum(np.abs(steps[:-1]), np.abs(steps[1:])), 0.0)
    low, high = np.quantile(values, (0.01, 0.99))
    usual = np.quantile(off, 0.999) if len(off) >= 2000 else np.sort(off)[-min(4, len(off))]
    return np.flatnonzero((off > SPIKE * (high - low)) & (off > TIMES * usual)) + 1
