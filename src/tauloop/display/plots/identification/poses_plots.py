"""Plots of a plan of poses: positions among the candidates, number of poses, deviations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration.pose_selection.plan import PosePlan
from tauloop.common.counts import counted
from tauloop.display.palette import RESIDUAL
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotTrace
from tauloop.display.plots.building import by_name, motion, rounded
from tauloop.display.sampling import in_degrees
from tauloop.display.tables.identification.poses_tables import plan_summary
from tauloop.mechanism.description.units import in_usual_unit
from tauloop.model import Model


def poses_scene(plan: PosePlan) -> Iterator[Piece]:
    """Yield the machine at each selected pose."""
    selected = plan.chosen_poses
    yield from motion(
        Model(plan.problem.mechanism),
        np.arange(1.0, len(selected) + 1),
        plan.candidates.q[selected],
        "Selected poses",
        is_motion=False,
    )


def poses_plots(plan: PosePlan) -> Iterator[Paragraph | Plot]:
    """Yield projections of the poses, the error by number of poses, and expected deviations."""
    yield Paragraph(text=f"{plan_summary(plan)}.", tone="note")
    columns = plan.candidates.columns
    others = [j for j in (1, 2) if j < len(columns)]
    for j in others or [0]:
        yield _section(plan, 0, j)
    if plan.curve:
        yield _curve(plan)
    names, bars = [], []
    for unknown, deviation in zip(plan.problem.unknowns, plan.deviations, strict=True):
        value, unit = in_usual_unit(float(deviation), unknown.unit)
        names.append(f"{unknown.name} [{unit}]".removesuffix(" []"))
        bars.append(value)
    label = "standard deviation [unit in the labels]"
    yield by_name(
        "Expected standard deviations", label, names, {"expected": bars}, style="bars", log_y=True
    )


def _section(plan: PosePlan, i: int, j: int) -> Plot:
    """Return a plot of the candidates and the selected poses over positions i and j."""
    units = Model(plan.problem.mechanism).platform.ports.position.units
    names = [plan.candidates.columns[k].rpartition(".")[2] for k in (i, j)]
    labels = [
        f"{name} [{in_degrees(units[k], np.zeros(1))[0]}]"
        for name, k in zip(names, (i, j), strict=True)
    ]
    drawn = []
    for name, values, style, color in (
        ("candidates", plan.candidates.position, "dots", ""),
        ("selected", plan.positions, "after", RESIDUAL),
    ):
        x, y = (rounded(in_degrees(units[k], values[:, k])[1]) for k in (i, j))
        label = f"{name} ({len(values)})"
        drawn.append(PlotTrace(name=label, x=x, y=y, style=style, color=color))
    return Plot(
        title=f"Selected poses:  {', '.join(dict.fromkeys(names))}",
        x=labels[0],
        y=labels[1],
        traces=tuple(drawn),
    )


def _curve(plan: PosePlan) -> Plot:
    counts = rounded([point.count for point in plan.curve])
    errors = {
        "selected": [point.error for point in plan.curve],
        "random (median)": [
            np.nan if point.random_error is None else point.random_error for point in plan.curve
        ],
    }
    drawn = [
        PlotTrace(name=name, x=counts, y=rounded(values), style="linked")
        for name, values in errors.items()
    ]
    goal = plan.options.goal
    line = (counts[0], counts[-1])
    drawn.append(PlotTrace(name=f"goal {goal:g}", x=line, y=(goal, goal), style="limit"))
    note = ""
    if plan.enough is not None:
        note = f"Sufficient number of poses: {plan.enough}."
        known = [value for values in errors.values() for value in values if np.isfinite(value)]
        ends = rounded([min(*known, goal), max(*known, goal)])
        x = (float(plan.enough), float(plan.enough))
        name = f"sufficient: {counted(plan.enough, 'pose')}"
        drawn.append(PlotTrace(name=name, x=x, y=ends, style="dotted"))
    return Plot(
        title="Error by number of poses",
        x="number of poses",
        y="expected error [deviations of the noise]",
        traces=tuple(drawn),
        log_x=True,
        log_y=True,
        note=note,
    )
