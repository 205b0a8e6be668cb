"""Figure of a trajectory under controllers: how far each stays behind, and the forces of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import (
    COLOURS,
    MEASURED,
    NORMAL,
    PREDICTED,
    RESIDUAL,
    SMALL,
    TEXT,
    blank,
    clean,
)
from tauloop.simulation import ControlComparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Of controllers, and of actuators.
RUNS, FORCES = (MEASURED, COLOURS[2], PREDICTED, RESIDUAL), (*COLOURS, "#5f8a8b", "#a05070")
WIDTH, HEAD, ROW = 9.5, 0.8, 1.7
#: Errors below this share of the largest are drawn at it.
LEAST = 1e-4


def control_figure(comparison: ControlComparison) -> Figure:
    """Errors of all controllers against time, and the actuator forces of each.

    Distances from the reference are drawn where the platform moves in metres, in mm, else the
    largest actuator error: of those that turn, and of those that push.
    """
    results, errors = comparison.runs, _errors(comparison)
    title = f"{comparison.model.mechanism.name} on a stroke of {comparison.duration:.4g} s, {comparison.space} space"
    rows = len(errors) + len(results)
    height = HEAD + ROW * rows
    figure = blank(WIDTH, height, title)
    grid = figure.add_gridspec(
        rows, 1, left=0.09, right=0.72, top=1 - 0.5 / height, bottom=0.5 / height, hspace=0.16
    )
    panels = [figure.add_subplot(grid[i]) for i in range(rows)]
    above, below = panels[: len(errors)], panels[len(errors) :]
    for axes, (what, by_law) in zip(above, errors.items(), strict=True):
        least = (
            LEAST * max((float(error.max(initial=0.0)) for error in by_law.values()), default=0.0)
            or LEAST
        )
        for (name, error), colour in zip(by_law.items(), RUNS, strict=False):
            axes.semilogy(
                1e3 * results[name].time,
                np.maximum(error, least),
                color=colour,
                linewidth=1.2,
                label=name,
            )
        axes.set_ylabel(what, fontsize=SMALL)
        axes.sharex(above[0])
    names, units = comparison.model.output_ports("actuators")
    alike = units[0] if len(set(units)) == 1 else ""
    for axes, (law, run) in zip(below, results.items(), strict=True):
        for k, (name, unit) in enumerate(zip(names, units, strict=True)):
            colour, style = FORCES[k % len(FORCES)], "-" if k < len(FORCES) else "--"
            axes.step(
                1e3 * run.time, run.force[:, k], style, where="post", color=colour, linewidth=1.0
            )
            axes.lines[-1].set_label(name if alike else f"{name} [{unit}]")
        axes.set_ylabel(f"force [{alike}],\n{law}" if alike else f"force,\n{law}", fontsize=SMALL)
        axes.sharex(above[0])
        axes.sharey(below[0])
    below[-1].set_xlabel("time [ms]", fontsize=NORMAL, color=TEXT)
    for axes in panels:
        clean(axes)
        axes.tick_params(labelbottom=axes is below[-1])
    for axes in (above[0], below[0]):
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.005, 1.0),
            fontsize=SMALL,
            labelcolor=TEXT,
            frameon=False,
        )
    return figure


def _errors(comparison: ControlComparison) -> dict[str, dict[str, np.ndarray]]:
    """Errors (N,) of each law, by what they are and their unit."""
    results = comparison.runs
    if any(run.tool_error.any() for run in results.values()):
        return {
            "distance from\nthe reference [mm]": {
                name: 1e3 * run.tool_error for name, run in results.items()
            }
        }
    units = np.array(comparison.model.actuator_units)
    return {
        f"largest\nactuator error [{shown}]": {
            name: scale * np.abs(run.actuator_error[:, units == unit]).max(axis=1)
            for name, run in results.items()
        }
        for unit, shown, scale in (("rad", "deg", np.degrees(1.0)), ("m", "mm", 1e3))
        if (units == unit).any()
    }
