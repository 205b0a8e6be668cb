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
WIDTH, HEIGHT = 9.5, 5.6
#: Errors below this share of the largest are drawn at it.
LEAST = 1e-4


def control_figure(comparison: ControlComparison) -> Figure:
    """Errors of all controllers against time, and the actuator forces of the last.

    Distances from the reference are drawn where the platform moves in metres, else the largest actuator error.
    """
    results, shown = comparison.runs, list(comparison.runs)[-1]
    title = f"{comparison.model.mechanism.name} on a stroke of {comparison.duration:.4g} s, {comparison.space} space"
    figure = blank(WIDTH, HEIGHT, title)
    grid = figure.add_gridspec(2, 1, left=0.09, right=0.72, top=0.91, bottom=0.1, hspace=0.16)
    above, below = (figure.add_subplot(grid[i]) for i in range(2))
    is_distance = any(result.tool_error.any() for result in results.values())
    errors = {
        name: (r.tool_error if is_distance else np.abs(r.actuator_error).max(axis=1)) for name, r in results.items()
    }
    least = LEAST * max((float(error.max(initial=0.0)) for error in errors.values()), default=0.0) or LEAST
    for (name, error), colour in zip(errors.items(), RUNS, strict=False):
        above.semilogy(1e3 * results[name].time, np.maximum(error, least), color=colour, linewidth=1.2, label=name)
    above.set_ylabel("distance from the reference [m]" if is_distance else "largest actuator error", fontsize=SMALL)
    held = results[shown]
    for k, (name, unit) in enumerate(zip(*comparison.model.output_ports("actuators"), strict=True)):
        colour, style = FORCES[k % len(FORCES)], "-" if k < len(FORCES) else "--"
        below.step(1e3 * held.time, held.force[:, k], style, where="post", color=colour, linewidth=1.0)
        below.lines[-1].set_label(f"{name} [{unit}]")
    below.set_ylabel(f"force, {shown}", fontsize=SMALL)
    below.set_xlabel("time [ms]", fontsize=NORMAL, color=TEXT)
    for axes in (above, below):
        clean(axes)
        axes.legend(loc="upper left", bbox_to_anchor=(1.005, 1.0), fontsize=SMALL, labelcolor=TEXT, frameon=False)
    below.sharex(above)
    above.tick_params(labelbottom=False)
    return figure
