"""The picture of a pose plan: where to measure, and how many poses are enough."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from tauloop.calibration.pose_selection.plan import PosePlan
from tauloop.display.figures import (
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
from tauloop.display.poses_table import planned
from tauloop.model import Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
#: Letters of a heading beside each other above a panel.
COLUMNS = 40


def poses_figure(plan: PosePlan) -> Figure:
    """Selected poses among the candidates in two sections, and the curve of how many are enough (where it was made)."""
    columns = plan.candidates.columns
    sections = [(0, j) for j in (1, 2) if j < len(columns)] or [(0, 0)]
    panels = len(sections) + bool(plan.curve)
    figure = blank(4.4 * panels, 4.3, layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for panel, (i, j) in zip(axes, sections, strict=False):
        _section(plan, panel, i, j)
    if plan.curve:
        _curve(plan, axes[-1])
    title = textwrap.fill(planned(plan), COLUMNS * panels)
    figure.suptitle(title, fontsize=LARGE, color=TEXT, x=0.01, ha="left")
    return figure


def _section(plan: PosePlan, axes: Axes, i: int, j: int) -> None:
    clean(axes)
    ports = Model(plan.problem.mechanism).platform.ports.position.units
    units, everything = zip(
        *(in_degrees(ports[k], plan.candidates.position[:, k]) for k in (i, j)), strict=True
    )
    chosen = [in_degrees(ports[k], plan.positions[:, k])[1] for k in (i, j)]
    axes.plot(*everything, ".", color=FAINT, markersize=2, label=f"{len(everything[0])} candidates")
    axes.plot(*chosen, "o", color=RESIDUAL, markersize=4.5, label=f"{len(chosen[0])} selected")
    names = [name.rpartition(".")[2] for name in plan.candidates.columns]
    axes.set_xlabel(f"{names[i]} [{units[0]}]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel(f"{names[j]} [{units[1]}]", fontsize=NORMAL, color=TEXT)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.16 * (high - low))
    axes.legend(
        fontsize=SMALL,
        frameon=False,
        loc="upper left",
        ncols=2,
        handletextpad=0.2,
        columnspacing=1.0,
    )


def _curve(plan: PosePlan, axes: Axes) -> None:
    clean(axes)
    counts = np.array([point.count for point in plan.curve])
    axes.loglog(
        counts,
        [point.error for point in plan.curve],
        "o-",
        color=PREDICTED,
        markersize=4,
        label="selected",
    )
    drawn = [point for point in plan.curve if point.random_error is not None]
    errors = [point.random_error for point in drawn]
    axes.loglog(
        [point.count for point in drawn],
        errors,
        "s--",
        color=MEASURED,
        markersize=3.5,
        label="random (median)",
    )
    axes.axhline(
        plan.options.goal,
        color=RESIDUAL,
        linewidth=0.9,
        linestyle="--",
        label=f"goal {plan.options.goal:g}",
    )
    if plan.enough is not None:
        axes.axvline(
            plan.enough,
            color=RESIDUAL,
            linewidth=0.9,
            linestyle=":",
            label=f"enough: {plan.enough} poses",
        )
    values = [point.error for point in plan.curve] + [
        error for error in errors if error is not None
    ]
    low, high = min(*values, plan.options.goal), max(*values, plan.options.goal)
    ticks = [
        v
        for v in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
        if low / 1.5 <= v <= high * 1.5
    ]
    axes.set_yticks(ticks, [f"{value:g}" for value in ticks])
    axes.set_yticks([], minor=True)
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("number of poses", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel(
        "expected error of the calibrated machine\n[standard deviations of the noise]",
        fontsize=NORMAL,
        color=TEXT,
    )
    axes.legend(fontsize=SMALL, frameon=False)
