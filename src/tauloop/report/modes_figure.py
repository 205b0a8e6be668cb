"""The modes of a machine side by side, as lines."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tauloop.functions import Loops
from tauloop.kinematics.assembly_modes import Modes
from tauloop.report.figures import FAINT, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT
from tauloop.report.skeleton import Skeleton, outline, skeleton

#: Panels at most, and panels in a row.
MOST, IN_A_ROW = 12, 4


def modes_figure(loops: Loops, modes: Modes) -> Figure:
    """Draw the first modes, each in a panel of its own, all to one scale and from one side.

    Args:
        loops: the machine's loops.
        modes: its modes, at least one.
    """
    shown = min(len(modes.modes), MOST)
    lines = skeleton(loops, modes.q[:shown])
    columns = min(IN_A_ROW, shown)
    rows = -(-shown // columns)
    figure = Figure(figsize=(3.3 * columns, 3.4 * rows + 0.7), layout="constrained")
    low, high = lines.points.min(axis=0), lines.points.max(axis=0)
    middle, half = (low + high) / 2, 0.52 * float(np.max(high - low))
    for i in range(shown):
        axes: Any = figure.add_subplot(rows, columns, i + 1, **({} if lines.is_planar else {"projection": "3d"}))
        _draw(axes, lines, i)
        _frame(axes, middle, half, lines.is_planar)
        mode = modes.modes[i]
        note = "reference" if mode.is_reference else "in its limits" if mode.within_limits else ""
        axes.set_title(
            f"mode {i + 1}" + (f": {note}" if note else ""),
            fontsize=NORMAL,
            color=RESIDUAL if mode.is_reference else TEXT,
        )
    kind = "assembly" if modes.given == "actuators" else "working"
    count = len(modes.modes)
    more = f", the first {shown}" if count > shown else ""
    figure.suptitle(
        f"{modes.machine}: {count} {kind} mode{'' if count == 1 else 's'}{more} (axes in m)", fontsize=NORMAL + 1
    )
    return figure


def _draw(axes: Any, lines: Skeleton, i: int) -> None:
    kept = slice(0, 2) if lines.is_planar else slice(0, 3)

    def line(points: np.ndarray, **style: Any) -> None:
        axes.plot(*points[:, kept].T, **style)

    if lines.base.shape[1]:
        line(lines.base[i], linestyle="none", marker="s", markersize=4, color=TEXT)
    for ends in lines.rods[i]:
        line(ends, color=MEASURED, linewidth=1.6)
    for name, points in lines.bodies.items():
        body = points[i]
        closed = body[outline(body)] if len(body) > 1 else body
        if len(body) > 2:
            closed = np.vstack([closed, closed[:1]])
        colour = RESIDUAL if name == lines.platform else PREDICTED
        line(closed, color=colour, linewidth=2.0, marker="o", markersize=3)
    line(lines.tool[i][None, :], linestyle="none", marker="x", markersize=5, color=RESIDUAL)


def _frame(axes: Any, middle: np.ndarray, half: float, is_planar: bool) -> None:
    axes.set_xlim(middle[0] - half, middle[0] + half)
    axes.set_ylim(middle[1] - half, middle[1] + half)
    axes.tick_params(labelsize=SMALL - 2, color=FAINT, labelcolor=TEXT)
    axes.set_xlabel("x", fontsize=SMALL, color=TEXT, labelpad=-4 if not is_planar else 1)
    axes.set_ylabel("y", fontsize=SMALL, color=TEXT, labelpad=-4 if not is_planar else 1)
    axes.locator_params(nbins=4)
    if is_planar:
        axes.set_aspect("equal")
        axes.grid(True, color=FAINT, linewidth=0.4)
        return
    axes.set_zlim(middle[2] - half, middle[2] + half)
    axes.set_zlabel("z", fontsize=SMALL, color=TEXT, labelpad=-4)
    axes.set_box_aspect((1, 1, 1))
    axes.view_init(elev=18, azim=-58)
