"""The picture of an excitation: its motion over one period inside the limits, and how much of each limit it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import (
    COLOURS,
    FAINT,
    LARGE,
    MEASURED,
    NORMAL,
    PREDICTED,
    RESIDUAL,
    SMALL,
    TEXT,
    blank,
    clean,
    in_degrees,
)
from tauloop.identification.excitation.result import POINTS, Excitation, LimitUse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Limits shown at most.
SHOWN = 16


def excitation_figure(excitation: Excitation) -> Figure:
    """Positions from the centre, speeds and accelerations of all moving channels, and the use of all limits.

    Channels of one unit share a panel.
    """
    moving = [i for i, name in enumerate(excitation.channels) if name not in excitation.task.held]
    units = dict.fromkeys(excitation.units[i] for i in moving)
    figure = blank(10.5, 6.6 * max(1.0, len(units) / 1.5), layout="constrained")
    grid = figure.add_gridspec(3 * len(units), 2, width_ratios=(1.5, 1.0))
    panels = [figure.add_subplot(grid[k, 0]) for k in range(3 * len(units))]
    motion = excitation.series.sample(np.linspace(0.0, excitation.series.period, POINTS))
    levels = (motion.position - excitation.series.center, motion.velocity, motion.acceleration)
    kinds = (("position from the centre", ""), ("speed", "/s"), ("acceleration", "/s²"))
    rows = [
        (values, *kind, unit) for values, kind in zip(levels, kinds, strict=True) for unit in units
    ]
    for axes, (values, what, suffix, unit) in zip(panels, rows, strict=True):
        clean(axes)
        written = unit
        for k, i in enumerate(moving):
            if excitation.units[i] == unit:
                written, drawn = in_degrees(unit, values[:, i])
                colour = COLOURS[k % len(COLOURS)]
                axes.plot(
                    motion.time, drawn, color=colour, linewidth=1.2, label=excitation.channels[i]
                )
        axes.set_ylabel(f"{what} [{written}{suffix}]", fontsize=SMALL, color=TEXT)
        axes.set_xlim(0.0, excitation.series.period)
        axes.axhline(0.0, color=FAINT, linewidth=0.8)
    for axes in panels[: len(units)]:
        axes.legend(
            fontsize=SMALL, frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0.0, 1.0)
        )
    panels[-1].set_xlabel("time [s], one period", fontsize=SMALL, color=TEXT)
    _uses(figure.add_subplot(grid[:, 1]), excitation)
    figure.suptitle(
        f"Excitation of {excitation.machine}\n", fontsize=LARGE, color=TEXT, x=0.01, ha="left"
    )
    figure.text(0.01, 0.945, _summary(excitation), fontsize=NORMAL, color=TEXT, va="top")
    return figure


def _summary(excitation: Excitation) -> str:
    random = excitation.random
    return (
        f"condition number of {excitation.base.rank} base parameters: {excitation.conditions.si:.3g} in SI units "
        f"(best of {random.tried} random series {random.best_si:.3g}), {excitation.conditions.unit_norm:.3g} with "
        f"unit-norm columns ({random.best_unit_norm:.3g})"
    )


def _uses(axes: Axes, excitation: Excitation) -> None:
    """Range of every bounded quantity inside its limits, on a scale from lower (-1) to upper limit (1)."""
    shown = sorted(excitation.limits, key=limit_share, reverse=True)[:SHOWN]
    clean(axes)
    for row, limit in enumerate(shown):
        low, high = _scaled(limit)
        axes.barh(
            row,
            high - low,
            left=low,
            height=0.5,
            color=PREDICTED if limit_share(limit) > 0.99 else MEASURED,
        )
    axes.axvline(1.0, color=RESIDUAL, linewidth=1.0)
    axes.axvline(-1.0, color=RESIDUAL, linewidth=1.0)
    axes.set_yticks(range(len(shown)), [limit.name for limit in shown], fontsize=SMALL)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(-1.1, 1.1)
    hidden = len(excitation.limits) - len(shown)
    more = f"\n{hidden} less used ones not shown" if hidden else ""
    axes.set_xticks((-1, 0, 1), ("lower limit", "middle", "upper limit"))
    axes.set_xlabel(
        f"range of every quantity; dark where a limit is reached{more}", fontsize=SMALL, color=TEXT
    )


def _scaled(limit: LimitUse) -> tuple[float, float]:
    """Extremes on a scale where the limits are -1 and 1; a distance with a floor counts as floor over value."""
    if limit.lower is not None and limit.upper is not None:
        middle, half = 0.5 * (limit.upper + limit.lower), 0.5 * (limit.upper - limit.lower)
        return (limit.least - middle) / half, (limit.greatest - middle) / half
    if limit.upper is None and limit.lower is not None and limit.lower > 0:
        return -limit.lower / limit.least, -limit.lower / limit.greatest
    size = abs(limit.upper if limit.upper is not None else limit.lower or 1.0) or 1.0
    return limit.least / size, limit.greatest / size


def limit_share(limit: LimitUse) -> float:
    """How much of a limit is used; one is all of it."""
    return max(abs(value) for value in _scaled(limit))
