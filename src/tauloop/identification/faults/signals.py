"""Faults of single channels that need no model: forces that stay at a limit, samples that jump."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.errors import Problem, Problems
from tauloop.logs.channels import Log, as_signals, by_channel
from tauloop.logs.saturation import PLATEAU, left_out, limits_reached, moving

#: A sample that lies off both its neighbours by this share of the channel's range (but for the outermost
#: hundredths), and this many times as far as all but a thousandth of the samples do, is a spike.
SPIKE, TIMES = 0.5, 10.0


def clipped(log: Log, quantity: str = "force", limits: Mapping[str, float] | None = None) -> tuple[Problem, ...]:
    """Channels that stay at their largest or smallest value for several samples, as a limit makes them.

    Either at exactly that value, or, where noise was added behind the limit, within a small share of the range of it,
    while the machine moves; or at the limit that the machine's description states. Nothing is said of forces whose
    samples at a limit the log leaves out (`without_saturated`), where enough others are left.

    Args:
        log: the log as measured, before any filter.
        quantity: which channels are looked at.
        limits: largest absolute value of channels, SI, such as the drives' largest forces.

    Returns:
        One problem for each end of a channel, with the value and how many samples are at it.
    """
    problems = Problems()
    moves = moving(log)
    for name, values in by_channel(log, quantity).items():
        if quantity == "force" and name in left_out(log):
            continue
        for limit in limits_reached(values, moves, (limits or {}).get(name)):
            word = "largest" if limit.is_upper else "smallest"
            what = (
                f"stays at its {word} value {limit.value:.6g} in {limit.at.sum()} samples, {PLATEAU} or more in a row: "
            )
            remedy = "excite less, raise the drive's limit, or leave these samples out"
            problems.add(f"{quantity}.{name}", f"{what}it is clipped{limit.why}", remedy)
    return tuple(problems)


def spikes(log: Log) -> tuple[Problem, ...]:
    """Positions and forces of which single samples lie far off both neighbours, as a lost bit or message makes them.

    Returns:
        One problem for each channel: how many samples, and the first of them with its value and its neighbours'.
    """
    problems = Problems()
    times = as_signals(log).time
    for quantity in ("position", "force"):
        for name, values in by_channel(log, quantity).items():
            at = _spikes(values)
            if len(at):
                before, here, after = values[at[0] - 1 : at[0] + 2]
                what = (
                    f"jumps for single samples: {len(at)} of them, the first {here:.6g} at {times[at[0]]:g} s between "
                )
                remedy = "repair or leave out these samples, or fit with --estimator irls"
                problems.add(f"{quantity}.{name}", f"{what}{before:.6g} and {after:.6g}", remedy)
    return tuple(problems)


def _spikes(values: np.ndarray) -> np.ndarray:
    """Numbers of the samples that lie off both neighbours, on one side of them."""
    if len(values) < 2 * PLATEAU:
        return np.zeros(0, dtype=int)
    steps = np.diff(values)
    off = np.where(steps[:-1] * steps[1:] < 0.0, np.minimum(np.abs(steps[:-1]), np.abs(steps[1:])), 0.0)
    low, high = np.quantile(values, (0.01, 0.99))
    usual = np.quantile(off, 0.999) if len(off) >= 2000 else np.sort(off)[-min(4, len(off))]
    return np.flatnonzero((off > SPIKE * (high - low)) & (off > TIMES * usual)) + 1
