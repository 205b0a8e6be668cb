"""Drawings of a machine's modes next to each other, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tauloop.common.counts import counted
from tauloop.common.errors import PoseError
from tauloop.display.palette import NORMAL, RESIDUAL, SMALL, TEXT
from tauloop.display.renderers.figure_style import blank
from tauloop.display.renderers.machine_drawing import draw_machine, set_limits
from tauloop.equations.ports import ACTUATORS
from tauloop.kinematics.modes.modes import Mode, Modes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Maximum number of panels.
MAX_PANELS = 12
#: Maximum number of panels in a row.
PANELS_PER_ROW = 4
#: Zoom of the machines in their panels, which leaves room for the labels of the axes.
ZOOM = 0.82


def modes_figure(modes: Modes) -> Figure:
    """Draw the first modes, each in its own panel, with the same scale and view.

    Returns:
        The figure, which is not registered with pyplot.

    Raises:
        PoseError: there are no modes.
    """
    # Imported here because it needs SciPy, which the list of modes does not need.
    from tauloop.geometry.machine_geometry import machine_shape

    if not modes.modes:
        what = "the machine cannot be assembled at this position, so there is nothing to draw"
        raise PoseError.of("figure", what, "give a position within reach")
    shown = min(len(modes.modes), MAX_PANELS)
    geometry = machine_shape(modes.model).at(modes.q[:shown])
    plane = geometry.plane
    columns = min(PANELS_PER_ROW, shown)
    rows = -(-shown // columns)
    figure = blank(3.3 * columns, 3.8 * rows + 0.7, layout="constrained")
    low, high = geometry.extent
    middle = (low + high) / 2
    half_edge = 0.52 * geometry.size
    projection = {"projection": "3d"} if len(plane) == 3 else {}
    for i in range(shown):
        axes: Any = figure.add_subplot(rows, columns, i + 1, **projection)
        draw_machine(axes, geometry, i, plane)
        set_limits(axes, middle, half_edge, plane, zoom=ZOOM)
        axes.set_title(
            _title(i, modes.modes[i]),
            fontsize=SMALL,
            color=RESIDUAL if modes.modes[i].is_reference else TEXT,
        )
    kind = "assembly" if modes.entry is ACTUATORS else "working"
    count = len(modes.modes)
    note = f", the first {shown}" if count > shown else ""
    title = f"{modes.machine}: {counted(count, f'{kind} mode')}{note}"
    figure.suptitle(title, fontsize=NORMAL + 1)
    return figure


def _title(number: int, mode: Mode) -> str:
    """Return number, condition, and relation to reference and limits, in short lines."""
    condition = "singular" if mode.is_singular else f"condition {mode.condition:.3g}"
    lines = [f"mode {number + 1}: {condition}"]
    if mode.is_reference:
        lines.append("reached from the reference")
    coordinates = [item.coordinate for item in mode.beyond]
    if coordinates:
        others = f" and {len(coordinates) - 1} more" if len(coordinates) > 1 else ""
        lines.append(f"beyond limits: {coordinates[0]}{others}")
    else:
        lines.append("within its limits")
    return "\n".join(lines)
