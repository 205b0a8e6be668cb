"""Repairs of a log on request: positions of locked axes, and resampling at uniform times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import LogError, Problem, Problems
from tauloop.logs.checks.gaps import FillGaps
from tauloop.logs.checks.stamps import StampJitter, sample_numbers, stamp_jitter
from tauloop.logs.log import Channel, Log, Signals, as_signals, channels


def held(log: Log, positions: Mapping[str, tuple[float, str]]) -> Signals:
    """Return the log with the constant positions of locked axes that were not logged.

    Args:
        log: log without the positions of the locked axes.
        positions: position of each axis, SI, and its unit.

    Raises:
        LogError: the log already contains the position of one of these axes.
    """
    raw = as_signals(log)
    LogError.raise_if_any(
        Problem(
            where=f"position.{name}",
            what="is in the log, but is also declared as held",
            remedy="remove the column from `columns`, or do not declare the axis as held",
        )
        for name in positions
        if name in channels(raw, "position")
    )
    added = tuple(
        Channel(
            quantity="position",
            channel=name,
            values=np.full(len(raw.time), value),
            unit=unit,
            source="held on request",
        )
        for name, (value, unit) in positions.items()
    )
    return replace(raw, channels=raw.channels + added)


def resampled(log: Log, gaps: FillGaps | None = None) -> Signals:
    """Return the log with all channels resampled at uniform times, and a note on the method.

    Forces are resampled by monotone cubics, because a spline overshoots at the steps of dry
    friction, which then look like spikes. All other channels are resampled by cubic splines.

    Time stamps can be nonuniform for two reasons. The positions show which reason applies
    (`tauloop.logs.checks.stamps.StampJitter`):

    - Samples were taken at the stamped times. Then the splines use these times.
    - Samples were taken at uniform times and stamped late. Then the stamps only determine the
      period and the missing samples.

    If the test is inconclusive, the stamps count as the sampling times.

    Args:
        log: the log as measured.
        gaps: permitted gaps, which splines interpolate; None permits none.

    Raises:
        LogError: stamps decrease, samples are missing, or there are too few for a spline.
    """
    raw = as_signals(log)
    if len(raw.time) < 4:
        raise LogError.of(
            "log",
            f"{counted(len(raw.time), 'sample', 'are')} too few for a spline",
            "record a longer log",
        )
    numbers, steps = sample_numbers(raw.time), np.diff(raw.time)
    _require_short_gaps(raw.time, np.diff(numbers) - 1, gaps)
    jitter = stamp_jitter(raw, channels(raw, "position"))
    is_repeated = bool((steps == 0.0).any())
    is_true = not is_repeated and (jitter is None or jitter.stamps_are_true)
    count = int(numbers[-1]) + 1
    if is_true:
        new_time = np.linspace(raw.time[0], raw.time[-1], count)
        nodes, points = raw.time, new_time
    else:
        period, start = np.polyfit(numbers, raw.time - raw.time[0], 1)
        nodes, points = numbers, np.arange(count)
        new_time = raw.time[0] + start + period * points
    resampled_channels = tuple(
        replace(channel, values=_interpolated(channel, nodes, points)) for channel in raw.channels
    )
    interpolated = dict(raw.interpolated)
    if count > len(raw.time):
        for channel in raw.channels:
            interpolated[channel.name] = interpolated.get(channel.name, 0) + count - len(raw.time)
    note = _how_resampled(jitter, is_true=is_true, is_repeated=is_repeated)
    return replace(
        raw,
        time=new_time,
        channels=resampled_channels,
        interpolated=interpolated,
        notes=(*raw.notes, *filter(None, [note])),
    )


def _interpolated(channel: Channel, nodes: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the values of a channel, sampled at `nodes`, interpolated at `points`."""
    # slow to import and rarely needed
    from scipy.interpolate import CubicSpline, PchipInterpolator

    method = PchipInterpolator if channel.quantity == "force" else CubicSpline
    return np.ascontiguousarray(method(nodes, channel.values)(points))


def _require_short_gaps(time: np.ndarray, missing: np.ndarray, gaps: FillGaps | None) -> None:
    """Raise an error if stamps decrease or a gap is longer than permitted."""
    longest = 0 if gaps is None else gaps.longest
    problems = Problems()
    for k in np.flatnonzero(np.diff(time) < 0.0)[:1]:
        what = f"time decreases from {time[k]:.10g} s to {time[k + 1]:.10g} s"
        problems.add(
            "time",
            what,
            "cut the log there: it contains several recordings, or the clock was reset",
        )
    for k in np.flatnonzero(missing > longest)[:1]:
        what = (
            f"{counted(missing[k], 'sample', 'are')} missing after t = {time[k]:.10g} s, but at most "
            f"{longest} consecutive ones may be interpolated"
        )
        problems.add(
            "time", what, f"cut the log there, or fill longer gaps (--fill-gaps {missing[k]})"
        )
    LogError.raise_if_any(problems)


def _how_resampled(jitter: StampJitter | None, *, is_true: bool, is_repeated: bool) -> str:
    """Return a note on how resampling interpreted the stamps, and why; empty for uniform stamps."""
    if is_repeated:
        return "resampled as even samples with late stamps: some stamps are repeated"
    if jitter is None:
        return ""
    size = f"stamps deviate from the even grid by {1e3 * jitter.size:.3g} ms RMS"
    if not jitter.decides:
        return f"resampled at the stamped times: {size}; the test by positions is inconclusive ({jitter})"
    cause = "at the stamped times" if is_true else "as even samples with late stamps"
    return f"resampled {cause}: {size}; {jitter}"
