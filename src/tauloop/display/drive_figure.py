"""Figures of drive lines: a step as the Gantry-Tau paper's Figure 8 draws it, one run or two beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import (
    COLOURS,
    FAINT,
    NORMAL,
    PREDICTED,
    SMALL,
    TEXT,
    blank,
    clean,
    thin,
)
from tauloop.drives import DriveStep, Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, HEAD, FOOT = 9.5, 1.8, 0.75, 0.5
#: The magnified error shows so many times what is left of it in the last half of the run.
MAGNIFIED = 1.6
#: Motor torques are drawn up to this many times their 98 % level: the derivative's kick at the step
#: is left out.
TORQUE_ROOM = 1.5


def drive_figure(*steps: DriveStep) -> Figure:
    """Position of what is judged, its magnified error, torques and deflections against time; a column for each step."""
    records = {step.line.name: step.record for step in steps}
    judged = steps[0].line.performance.of
    rows = 4
    height = HEAD + rows * ROW + FOOT
    unit = _units(records.values(), f"{judged}.position")
    figure = blank(
        WIDTH, height, f"Step of {steps[0].options.step:g} {unit} of {' and '.join(records)}"
    )
    grid = figure.add_gridspec(
        rows,
        len(records),
        left=0.09,
        right=0.98,
        top=1 - HEAD / height,
        bottom=FOOT / height,
        hspace=0.18,
        wspace=0.28,
    )
    scale, endings = 1e3, (f"{judged}.position", ".torque", ".deflection")
    for column, (name, record) in enumerate(records.items()):
        panels = [figure.add_subplot(grid[row, column]) for row in range(rows)]
        x = record.signal(f"{judged}.position")
        panels[0].set_title(
            f"{name}: {_summary(record, judged)}", fontsize=SMALL, color=TEXT, loc="left"
        )
        panels[0].axhline(scale * record.reference, color=FAINT, linewidth=1.0, linestyle="--")
        panels[0].plot(*thin(record.time, scale * x), color=PREDICTED, linewidth=1.2, label=judged)
        error = scale * (x - record.reference)
        panels[1].axhline(0.0, color=FAINT, linewidth=1.0, linestyle="--")
        panels[1].plot(*thin(record.time, error), color=PREDICTED, linewidth=1.0)
        _lines(panels[2], record, ".torque")
        _lines(panels[3], record, ".deflection", scale)
        _label(
            panels, [_units(records.values(), ending) for ending in endings], is_first=column == 0
        )
    _match(figure, len(records), rows)
    return figure


def _lines(axes: Axes, record: Record, ending: str, scale: float = 1.0) -> None:
    drawn = [
        (name, values)
        for name, values in record.signals.items()
        if name.split(" [")[0].endswith(ending)
    ]
    for (name, values), colour in zip(drawn, COLOURS, strict=False):
        label = name.split(" [")[0].removesuffix(ending)
        axes.plot(*thin(record.time, scale * values), color=colour, linewidth=1.0, label=label)
    axes.legend(loc="upper right", fontsize=SMALL, labelcolor=TEXT, frameon=False, ncols=len(drawn))


def _units(records: Iterable[Record], ending: str) -> str:
    """Units of the signals whose names end so, one after the other."""
    names = (name.partition(" [") for record in records for name in record.signals)
    return ", ".join(
        dict.fromkeys(unit.removesuffix("]") for name, _, unit in names if name.endswith(ending))
    )


def _label(panels: Sequence[Axes], units: Sequence[str], *, is_first: bool) -> None:
    position, torque, deflection = units
    milli = ", ".join(f"m{unit}" for unit in deflection.split(", "))
    texts = (
        f"position [m{position}]",
        f"error, magnified\n[m{position}]",
        f"torque [{torque}]",
        f"deflection\n[{milli}]",
    )
    for i, (axes, text) in enumerate(zip(panels, texts, strict=True)):
        clean(axes)
        axes.sharex(panels[0])
        axes.tick_params(labelbottom=i == len(panels) - 1)
        if is_first:
            axes.set_ylabel(text, fontsize=SMALL)
    panels[-1].set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)


def _match(figure: Figure, columns: int, rows: int) -> None:
    """One scale for the panels of a row, so that columns can be compared."""
    for row in range(rows):
        panels = [figure.axes[column * rows + row] for column in range(columns)]
        values = [
            np.asarray(line.get_ydata(), dtype=float)
            for axes in panels
            for line in axes.get_lines()
            if np.size(line.get_xdata()) > 2
        ]
        if row == 0 or not values:
            continue
        if row == 1:
            room = MAGNIFIED * max(np.abs(part[len(part) // 2 :]).max() for part in values)
        else:
            room = TORQUE_ROOM * max(np.quantile(np.abs(part), 0.98) for part in values)
        for axes in panels:
            axes.set_ylim(-max(room, 1e-12), max(room, 1e-12))


def _summary(record: Record, judged: str) -> str:
    c = record.criteria
    if c.failed[0]:
        return "diverged or given up"
    return f"rise {c.rise_time[0]:.3f} s; swing at the end {c.swing[0]:.2g} {_units([record], judged + '.position')}"
