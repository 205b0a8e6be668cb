"""Figure of tracked parameters over time, with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import MEASURED, SMALL, TEXT, blank, clean
from tauloop.identification.online.parameter_tracking import NORMAL_95, ParameterTrack

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEAD, ROW = 9.5, 0.9, 1.4
#: Share of the time in which an interval is within its panel.
USUAL = 0.9


def track_figure(result: ParameterTrack) -> Figure:
    """Draw one panel for each parameter."""
    height = HEAD + ROW * len(result.names)
    figure = blank(
        WIDTH, height, f"{result.model.mechanism.name}: tracked parameters, with 95 % intervals"
    )
    grid = figure.add_gridspec(
        len(result.names),
        1,
        left=0.14,
        right=0.97,
        top=1 - 0.5 / height,
        bottom=0.5 / height,
        hspace=0.2,
    )
    panels = [figure.add_subplot(grid[k]) for k in range(len(result.names))]
    for k, (axes, name, unit) in enumerate(
        zip(panels, result.names, result.parameter_units, strict=True)
    ):
        values, half = result.estimates[:, k], NORMAL_95 * result.deviations[:, k]
        axes.fill_between(
            result.time, values - half, values + half, color=MEASURED, alpha=0.25, linewidth=0
        )
        axes.plot(result.time, values, color=MEASURED, linewidth=1.0)
        # the interval before the first samples is as wide as all that is thought possible
        usual = 1.2 * np.quantile(half, USUAL)
        axes.set_ylim(values.min() - usual, values.max() + usual)
        axes.set_ylabel(f"{name.replace('.', chr(10))}\n[{unit}]", fontsize=SMALL)
        axes.sharex(panels[0])
        clean(axes)
        axes.tick_params(labelbottom=axes is panels[-1])
    panels[-1].set_xlabel("time [s]", color=TEXT)
    return figure
