"""What is put into a log on request: axes that were held, samples at even times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tauloop.errors import LogError, Problem
from tauloop.logs.channels import Channel, Log, Signals, as_signals, channels


def held(log: Log, positions: Mapping[str, tuple[float, str]]) -> Signals:
    """The log with axes that stood still and that it has no positions of.

    Args:
        log: the log.
        positions: where each stood, SI, and its unit.

    Raises:
        LogError: the log has the position of one of them.
    """
    raw = as_signals(log)
    LogError.raise_if_any(
        Problem(
            where=f"position.{name}",
            what="is in the log and is to be held as well",
            remedy="leave the column out of `columns`, or do not hold this axis",
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


def resampled(log: Log) -> Signals:
    """All channels at even times from the first stamp to the last, as many, by cubic splines through the stamps.

    For samples that were taken at uneven times, as the stamps tell
    (`tauloop.identification.faults.time_stamps.jitter`).
    """
    from scipy.interpolate import CubicSpline  # slow to import, and seldom asked for

    raw = as_signals(log)
    if len(raw.time) < 4:
        raise LogError.of("log", f"{len(raw.time)} samples are too few for a spline", "record longer")
    even = np.linspace(raw.time[0], raw.time[-1], len(raw.time))
    values = CubicSpline(raw.time, np.stack([channel.values for channel in raw.channels], axis=1))(even)
    channels = (replace(channel, values=np.ascontiguousarray(values[:, k])) for k, channel in enumerate(raw.channels))
    return replace(raw, time=even, channels=tuple(channels))
