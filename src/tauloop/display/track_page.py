"""Tracked parameters over time on a page."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Piece, Plot, traces
from tauloop.identification.online.parameter_tracking import NORMAL_95, ParameterTrack


def track_page(result: ParameterTrack) -> Iterator[Piece]:
    """Yield a plot of each parameter with its interval."""
    for k, (name, unit) in enumerate(zip(result.names, result.parameter_units, strict=True)):
        values, half = result.estimates[:, k], NORMAL_95 * result.deviations[:, k]
        shown = {
            "estimate": values,
            "lower end of the interval": values - half,
            "upper end": values + half,
        }
        yield Plot(
            title=f"Tracked {name}",
            x="time [s]",
            y=f"{name} [{unit}]",
            traces=tuple(traces(result.time, shown)),
            over_time=True,
        )
