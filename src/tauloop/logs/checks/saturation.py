"""Saturated channels: an amplifier or sensor outputs its largest or smallest value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.logs.checks.gaps import runs
from tauloop.logs.log import Channel, Log, Signals, as_signals, by_channel, channels, samples

#: Minimum number of consecutive samples at the largest value of a limit; a peak has fewer.
MIN_PLATEAU_SAMPLES = 5
#: Smallest ratio of samples at the limit to samples at the next value. With coarse steps, the crest
#: of a sine remains at its largest step about 2.4 times as long as at the next one.
STEPPED_FORCE_FACTOR = 5
#: If noise is added after the limit, values this close to the largest value, as fractions of the
#: range, count as equal.
NOISE_WIDTHS = (1e-3, 3e-3, 1e-2)
#: A channel is at rest below this fraction of its largest speed. Forces are then constant without
#: a limit.
RESTING_SPEED_SHARE = 0.02
#: Number of samples that suffice in most logs to show that values are finer than all
#: `NOISE_WIDTHS`.
FIRST_VALUES = 20_000
#: Distance from the drive's limit, as a fraction of it, up to which a value counts as at the limit.
LIMIT_TOLERANCE = 0.01
#: Quantity of channels that mark unusable force samples by nonzero numbers.
LEFT_OUT = "left_out"
#: Source name of the marks of samples at a limit.
SATURATED = "saturated"
#: Largest fraction of samples at a limit for which the rest of a force can be used.
MAX_LIMITED_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Limit:
    """A limit that a channel reaches.

    Attributes:
        value: value of the limit, SI.
        is_upper: whether the limit is the largest value; otherwise it is the smallest.
        at: whether each sample is at the limit (N,).
        why: text on how the limit was recognized; "" for equal values.
    """

    value: float
    is_upper: bool
    at: np.ndarray
    why: str


def limits_reached(
    values: np.ndarray, moving: np.ndarray, bound: float | None = None
) -> Iterator[Limit]:
    """Yield the limits at which a channel remains for several samples, at either end.

    The samples have equal values, or they are at the bound in the machine's description. With noise
    after the limit, they are within a small fraction of the range while the machine moves.

    Args:
        values: samples (N,) as measured, before any filter.
        moving: whether the machine moves at each sample (N,).
        bound: largest absolute value, SI, such as the drive's largest force.
    """
    for sign in (1.0, -1.0):
        at, why = _at_end(sign * values, moving, bound)
        if at.any():
            yield Limit(
                value=float(sign * (sign * values).max()), is_upper=sign > 0.0, at=at, why=why
            )


def moving(log: Log) -> np.ndarray:
    """Return whether any position channel moves at each sample (N,)."""
    positions = samples(log, "position")
    is_moving = np.zeros(len(positions), dtype=bool)
    for values in positions.T:
        speed = np.abs(np.gradient(values)) if len(values) > 1 else np.zeros(len(values))
        width = 2 * MIN_PLATEAU_SAMPLES + 1
        smooth = np.convolve(speed, np.full(width, 1.0 / width), mode="same")[: len(values)]
        is_moving |= smooth > RESTING_SPEED_SHARE * smooth.max(initial=0.0)
    return is_moving


def without_saturated(log: Log, bounds: Mapping[str, float] | None = None) -> Signals:
    """Return the log with channels ``left_out.NAME`` that mark force samples at a limit.

    Existing marks are preserved.

    Args:
        log: the log as measured, before any filter.
        bounds: largest absolute force of each channel, SI.
    """
    raw, moves = as_signals(log), moving(log)
    marked = {channel.channel: channel for channel in raw.channels if channel.quantity == LEFT_OUT}
    for name, values in by_channel(raw, "force").items():
        masks = [
            closed(limit.at) for limit in limits_reached(values, moves, (bounds or {}).get(name))
        ]
        if masks:
            at = np.logical_or.reduce(masks)
            source = SATURATED
            if name in marked:
                at |= marked[name].values != 0.0
                source = f"{marked[name].source}, {SATURATED}"
            marked[name] = Channel(
                quantity=LEFT_OUT, channel=name, values=at.astype(float), unit="1", source=source
            )
    kept = tuple(channel for channel in raw.channels if channel.quantity != LEFT_OUT)
    return replace(raw, channels=(*kept, *marked.values()))


def left_out(log: Log) -> tuple[str, ...]:
    """Return the force channels with marked samples, of which at least half can be used."""
    names = channels(log, LEFT_OUT)
    fractions = (samples(log, LEFT_OUT, names) != 0.0).mean(axis=0) if names else ()
    return tuple(
        name
        for name, fraction in zip(names, fractions, strict=True)
        if 0.0 < fraction <= MAX_LIMITED_SHARE
    )


def closed(at: np.ndarray) -> np.ndarray:
    """Return marks (N,) after filling gaps of up to `MIN_PLATEAU_SAMPLES`, which noise causes."""
    indices = np.flatnonzero(at)
    distances = np.diff(indices)
    mask = at.copy()
    for gap in np.flatnonzero((distances > 1) & (distances <= MIN_PLATEAU_SAMPLES + 1)):
        mask[indices[gap] : indices[gap + 1]] = True
    return mask


def _at_end(values: np.ndarray, moves: np.ndarray, bound: float | None) -> tuple[np.ndarray, str]:
    """Return the samples (N,) at an upper limit, and the text on how the limit was recognized."""
    none = np.zeros(len(values), dtype=bool)
    largest, span = float(values.max()), float(np.ptp(values))
    if span == 0.0 or largest == 0.0:
        return none, ""
    at = values == largest
    second_largest = values.max(where=~at, initial=float(values.min()))
    long_runs = _long_runs(at)
    if long_runs.sum() > STEPPED_FORCE_FACTOR * np.sum(values == second_largest):
        return long_runs, ""
    if bound is not None and abs(largest - bound) <= LIMIT_TOLERANCE * bound:
        long_runs = _long_runs((values >= (1.0 - LIMIT_TOLERANCE) * bound) & moves)
        if long_runs.any():
            return long_runs, f", at the limit of {bound:.6g} in the machine file"
    steps = _steps_if_coarse(values)
    for share in NOISE_WIDTHS:
        width = share * span
        if len(steps) and len(steps) * share < 1.0 and steps.min() > width:
            continue  # the resolution is coarser than this width
        is_near = (values > largest - width) & moves
        long_runs = _long_runs(is_near)
        count = int(long_runs.sum())
        if count <= 2 * STEPPED_FORCE_FACTOR * MIN_PLATEAU_SAMPLES:
            continue
        is_next = (values > largest - 2.0 * width) & (values <= largest - width) & moves
        if count > 2 * STEPPED_FORCE_FACTOR * int(is_next.sum()):
            return long_runs, f", with noise of up to {width:.2g}"
    return none, ""


def _steps_if_coarse(values: np.ndarray) -> np.ndarray:
    """Return the differences between successive distinct values, sorted by size of the value.

    The result is empty if the number of distinct values exceeds what any of `NOISE_WIDTHS` resolves.
    """
    fine = 1.0 / min(NOISE_WIDTHS) + 1.0
    if len(np.unique(values[:FIRST_VALUES])) > fine:
        return np.empty(0)
    return np.diff(np.unique(values))


def _long_runs(at: np.ndarray) -> np.ndarray:
    """Return marks (N,) without runs of fewer than `MIN_PLATEAU_SAMPLES`."""
    mask = np.zeros(len(at), dtype=bool)
    for start, stop in runs(at):
        mask[start:stop] = stop - start >= MIN_PLATEAU_SAMPLES
    return mask
