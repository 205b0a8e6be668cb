"""Figure of forces from outside during a log: the wrench at the tool, contacts, and stretches without contact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.display.figures import MEASURED, PREDICTED, SMALL, TEXT, blank, clean
from tauloop.identification.online.external_wrench import (
    COMPONENT_UNITS,
    COMPONENTS,
    ExternalWrench,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEAD, ROW = 9.5, 0.9, 1.6


def wrench_figure(result: ExternalWrench) -> Figure:
    """Draw one panel for each component of the wrench."""
    places = [COMPONENTS.index(name) for name in result.components]
    units = [COMPONENT_UNITS[place] for place in places]
    height = HEAD + ROW * len(places)
    figure = blank(WIDTH, height, f"{result.model.mechanism.name}: forces from outside at the tool")
    grid = figure.add_gridspec(
        len(places), 1, left=0.1, right=0.8, top=1 - 0.5 / height, bottom=0.5 / height, hspace=0.16
    )
    panels = [figure.add_subplot(grid[k]) for k in range(len(places))]
    for axes, place in zip(panels, places, strict=True):
        for k, (start, end) in enumerate(result.free):
            label = "without contact" if k == 0 else None
            axes.axvspan(start, end, color=MEASURED, alpha=0.12, linewidth=0, label=label)
        for k, contact in enumerate(result.contacts):
            label = "contact" if k == 0 else None
            axes.axvspan(
                contact.start, contact.end, color=PREDICTED, alpha=0.25, linewidth=0, label=label
            )
        axes.plot(
            result.time, result.wrench[:, place], color=MEASURED, linewidth=0.9, label="estimate"
        )
        axes.axhline(0.0, color=TEXT, linewidth=0.5)
        axes.set_ylabel(f"{COMPONENTS[place]} [{COMPONENT_UNITS[place]}]", fontsize=SMALL)
        axes.sharex(panels[0])
        if axes is not (alike := panels[units.index(COMPONENT_UNITS[place])]):
            axes.sharey(alike)
        clean(axes)
        axes.tick_params(labelbottom=axes is panels[-1])
    panels[-1].set_xlabel("time [s]", color=TEXT)
    panels[0].legend(
        loc="upper left",
        bbox_to_anchor=(1.005, 1.0),
        fontsize=SMALL,
        labelcolor=TEXT,
        frameon=False,
    )
    return figure
