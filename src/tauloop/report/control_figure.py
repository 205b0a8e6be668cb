"""Figure of a trajectory under controllers: how far each stays behind, and the forces of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.report.figures import COLOURS, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, blank, clean
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

    Distances from the reference are drawn where the platform moves in metres, in mm, else the largest actuator error.
    """
    results = comparison.runs
    title = f"{comparison.model.mechanism.name} on a stroke of {comparison.duration:.4g} s, {comparison.space} space"
    height = HEAD + ROW * (1 + len(results))
    figure = blank(WIDTH, height, title)
    grid = figure.add_gridspec(
        1 + len(results), 1, left=0.09, right=0.72, top=1 - 0.5 / height, bottom=0.5 / height, hspace=0.16
    )
    above, *below = (figure.add_subplot(grid[i]) for i in range(1 + len(results)))
    is_distance = any(result.tool_error.any() for result in results.values())
    unit = comparison.model.actuators.ports.position.units[0]
    scale, shown = (1e3, "mm") if is_distance or unit == "m" else (np.degrees(1.0), "deg")
    errors = {
        name: scale * (r.tool_error if is_distance else np.abs(r.actuator_error).max(axis=1))
        for name, r in results.items()
    }
    least = LEAST * max((float(error.max(initial=0.0)) for error in errors.values()), default=0.0) or LEAST
    for (name, error), colour in zip(errors.items(), RUNS, strict=False):
        above.semilogy(1e3 * results[name].time, np.maximum(error, least), color=colour, linewidth=1.2, label=name)
    what = "distance from\nthe reference" if is_distance else "largest\nactuator error"
    above.set_ylabel(f"{what} [{shown}]", fontsize=SMALL)
    names, units = comparison.model.output_ports("actuators")
    alike = units[0] if len(set(units)) == 1 else ""
    for axes, (law, run) in zip(below, results.items(), strict=True):
        for k, (name, unit) in enumerate(zip(names, units, strict=True)):
            colour, style = FORCES[k % len(FORCES)], "-" if k < len(FORCES) else "--"
            axes.step(1e3 * run.time, run.force[:, k], style, where="post", color=colour, linewidth=1.0)
            axes.lines[-1].set_label(name if alike else f"{name} [{unit}]")
        axes.set_ylabel(f"force [{alike}],\n{law}" if alike else f"force,\n{law}", fontsize=SMALL)
        axes.sharex(above)
        axes.sharey(below[0])
    below[-1].set_xlabel("time [ms]", fontsize=NORMAL, color=TEXT)
    for axes in (above, *below):
        clean(axes)
        axes.tick_params(labelbottom=axes is below[-1])
    for axes in (above, below[0]):
        axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.0), fontsize=SMALL, labelcolor=TEXT, frameon=False)
    return figure
