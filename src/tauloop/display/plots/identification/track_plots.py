"""Plots of tracked parameters over time, with their intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Plot, PlotTrace
from tauloop.display.plots.building import PAGE_INTERVALS, rounded
from tauloop.display.sampling import thin
from tauloop.identification.online.parameter_tracking import NORMAL_95, ParameterTrack

#: Fraction of the samples at which the interval fits into its plot.
VISIBLE_FRACTION = 0.9


def track_plots(result: ParameterTrack) -> Iterator[Plot]:
    """Yield a plot of each parameter with its 95 % interval."""
    for k, (name, unit) in enumerate(zip(result.names, result.parameter_units, strict=True)):
        values, half = result.estimates[:, k], NORMAL_95 * result.deviations[:, k]
        time, thinned = thin(result.time, np.stack([values, half], axis=1), PAGE_INTERVALS)
        # At the start the interval is very wide, because only prior bounds are known.
        visible = 1.2 * float(np.quantile(half, VISIBLE_FRACTION))
        trace = PlotTrace(
            name="estimate with its 95 % interval",
            x=rounded(time),
            y=rounded(thinned[:, 0]),
            deviation=rounded(thinned[:, 1]),
            style="band",
        )
        yield Plot(
            title=f"Tracked {name}, with its 95 % interval",
            x="time [s]",
            y=f"{name} [{unit}]",
            traces=(trace,),
            over_time=True,
            y_range=(float(values.min()) - visible, float(values.max()) + visible),
        )
