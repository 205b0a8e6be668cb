"""Positions that jump from one sample to the next: wrapped angles, lost counts, joined recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tauloop.common.errors import Problem
from tauloop.logs.log import Channel, Signals

#: A jump exceeds this multiple of the neighboring steps, and of the 0.99 quantile of all steps. A
#: step is the change of the position from one sample to the next.
JUMP_FACTOR = 10.0
#: A jump exceeds this number of encoder counts. The smallest nonzero step is taken as one count.
MIN_JUMP_COUNTS = 20.0
#: A jump of whole revolutions exceeds this multiple of the neighboring steps.
WRAP_FACTOR = 3.0
#: Largest difference of a wrap from whole revolutions, as a multiple of the neighboring steps.
MAX_WRAP_ERROR = 1.5
#: Number of neighboring steps on each side of a step.
NEIGHBORS = 2
#: A step that differs from its neighbors by more than this multiple of their differences, and of
#: usual differences by `JUMP_FACTOR`, is a jump too, even if the motion has larger steps elsewhere.
SMALL_JUMP_FACTOR = 5.0
#: Time steps above this multiple of the median are gaps, over which positions move farther.
MAX_TIME_STEP = 1.5
#: Maximum number of times that a message lists.
MAX_LISTED_JUMPS = 10
#: A revolution, rad.
REVOLUTION = 2.0 * np.pi


def unwrapped_positions(log: Signals) -> tuple[Signals, tuple[Problem, ...]]:
    """Return the log with continuous angles, and a problem for each angle that was wrapped.

    A wrapped angle jumps by a whole revolution, such as from pi to -pi.
    """
    channels: list[Channel] = []
    problems: list[Problem] = []
    for channel in log.channels:
        wraps = _wraps(channel)
        if wraps.any():
            revolutions = np.zeros(len(channel.values))
            revolutions[1:][wraps] = -np.round(np.diff(channel.values)[wraps] / REVOLUTION)
            values = channel.values + REVOLUTION * np.cumsum(revolutions)
            times = _listed(log.time[1:][wraps])
            what = f"is a wrapped angle: it jumps by a revolution at {times}"
            remedy = "record a continuous angle; revolutions were added to make this log continuous"
            problems.append(Problem(channel.name, what, remedy))
            channel = replace(channel, values=values)
        channels.append(channel)
    if not problems:
        return log, ()
    return replace(log, channels=tuple(channels)), tuple(problems)


def position_jumps(log: Signals) -> tuple[Problem, ...]:
    """Return a problem for each position that jumps from one sample to the next.

    Args:
        log: the log, with continuous angles and without spikes.
    """
    problems = []
    for channel in log.channels:
        if channel.quantity != "position":
            continue
        jumps = jump_steps(channel.values) | _small_jumps(log.time, channel.values)
        if jumps.any():
            first = int(np.flatnonzero(jumps)[0])
            before, after = channel.values[first], channel.values[first + 1]
            what = (
                f"jumps from {before:.6g} to {after:.6g} {channel.unit} between two samples, unlike "
                f"the steps before and after, at {_listed(log.time[1:][jumps])}: the encoder lost counts, "
                "or recordings were joined"
            )
            remedy = "cut the log there, and give the parts as several logs"
            problems.append(Problem(channel.name, what, remedy))
    return tuple(problems)


def jump_steps(values: np.ndarray) -> np.ndarray:
    """Return whether each step (N - 1,) of a position (N,) is a jump, far larger than other steps."""
    sizes, neighbors = _steps(values)
    if not sizes.any():
        return np.zeros(len(sizes), dtype=bool)
    typical_step = float(np.quantile(sizes, 0.99))
    encoder_count = float(sizes[sizes > 0.0].min())
    is_large = sizes > max(JUMP_FACTOR * typical_step, MIN_JUMP_COUNTS * encoder_count)
    return np.asarray(is_large & (sizes > JUMP_FACTOR * neighbors))


def _small_jumps(time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return whether each step (N - 1,) is a jump in a motion that is smooth before and after it.

    The velocity is the same before and after a jump. It differs at a stop, and at the start of a
    motion.
    """
    steps = np.diff(values)
    jumps = np.zeros(len(steps), dtype=bool)
    if len(steps) < 2 * NEIGHBORS + 1:
        return jumps
    first, second, step, fourth, fifth = (steps[k : len(steps) - 4 + k] for k in range(5))
    deviation = np.abs(step - (4.0 * (second + fourth) - first - fifth) / 6.0)
    changes = np.max(
        [np.abs(second - first), np.abs(fourth - second), np.abs(fifth - fourth)], axis=0
    )
    sizes = np.abs(steps)
    encoder_count = float(sizes[sizes > 0.0].min(initial=np.inf))
    usual = float(np.quantile(deviation, 0.99))
    is_large = deviation > max(JUMP_FACTOR * usual, MIN_JUMP_COUNTS * encoder_count)
    time_steps = np.diff(time)
    gaps = time_steps > MAX_TIME_STEP * np.median(time_steps)
    near_gap = np.convolve(gaps, np.ones(2 * NEIGHBORS + 1), "same")[NEIGHBORS:-NEIGHBORS] > 0.5
    jumps[NEIGHBORS:-NEIGHBORS] = is_large & (deviation > SMALL_JUMP_FACTOR * changes) & ~near_gap
    return jumps


def _wraps(channel: Channel) -> np.ndarray:
    """Return whether each step (N - 1,) of a channel is a jump by whole revolutions."""
    if channel.quantity != "position" or channel.unit != "rad" or len(channel.values) < 2:
        return np.zeros(max(len(channel.values) - 1, 0), dtype=bool)
    sizes, neighbors = _steps(channel.values)
    revolutions = np.round(sizes / REVOLUTION)
    is_whole = np.abs(sizes - REVOLUTION * revolutions) <= MAX_WRAP_ERROR * neighbors
    return np.asarray((revolutions > 0.0) & is_whole & (sizes > WRAP_FACTOR * neighbors))


def _steps(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the step sizes (N - 1,), and the largest of the neighboring steps of each (N - 1,)."""
    sizes = np.abs(np.diff(values))
    padded = np.pad(sizes, NEIGHBORS)
    shifts = [k for k in range(2 * NEIGHBORS + 1) if k != NEIGHBORS]
    neighbors = np.max([padded[k : k + len(sizes)] for k in shifts], axis=0)
    return sizes, neighbors


def _listed(times: Sequence[float] | np.ndarray) -> str:
    """Return a text with the first times."""
    text = ", ".join(f"{time:g}" for time in times[:MAX_LISTED_JUMPS])
    more = len(times) - MAX_LISTED_JUMPS
    return f"{text} and {more} more s" if more > 0 else f"{text} s"
