"""Figure of a blow at a moving platform: the true force, the estimates, and the thresholds of the alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import COLOURS, MEASURED, PREDICTED, SMALL, TEXT, blank, clean
from tauloop.simulation.observers import CollisionDetection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEAD, ROW = 9.5, 0.9, 1.7


def hit_figure(result: CollisionDetection) -> Figure:
    """One panel for each freedom of the platform; estimates with the lag, of the first machine that was drawn."""
    names, units = result.freedoms
    height = HEAD + ROW * len(names)
    title = (
        f"{result.model.mechanism.name}: a blow at {result.at:.4g} s, and what observers make of it"
    )
    figure = blank(WIDTH, height, title)
    grid = figure.add_gridspec(
        len(names), 1, left=0.1, right=0.76, top=1 - 0.5 / height, bottom=0.5 / height, hspace=0.16
    )
    panels = [figure.add_subplot(grid[k]) for k in range(len(names))]
    time = 1e3 * result.time
    for k, (axes, name, unit) in enumerate(zip(panels, names, units, strict=True)):
        axes.step(
            time,
            result.force[:, k],
            where="post",
            color=TEXT,
            linewidth=1.0,
            linestyle="--",
            label="true",
        )
        for (key, item), colour in zip(
            result.lagged.items(), (MEASURED, PREDICTED, *COLOURS), strict=False
        ):
            style = "-" if colour == MEASURED else ":"
            axes.plot(time, item.estimate[:, k], style, color=colour, linewidth=1.2, label=key)
            if colour == MEASURED:
                limits = item.threshold[k] * np.array([-1.0, 1.0])
                axes.axhspan(
                    *limits, color=colour, alpha=0.15, linewidth=0, label=f"no alarm, {key}"
                )
        axes.set_ylabel(f"{name.removeprefix('platform.')} [{unit}]", fontsize=SMALL)
        axes.sharex(panels[0])
        if (alike := units.index(unit)) != k:
            axes.sharey(panels[alike])
        clean(axes)
        axes.tick_params(labelbottom=axes is panels[-1])
    panels[-1].set_xlabel("time [ms]", color=TEXT)
    panels[0].legend(
        loc="upper left",
        bbox_to_anchor=(1.005, 1.0),
        fontsize=SMALL,
        labelcolor=TEXT,
        frameon=False,
    )
    return figure
