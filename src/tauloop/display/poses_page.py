"""A plan of poses on a page: the machine at each, where they lie among the candidates, and how many are enough."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration.pose_selection.plan import PosePlan
from tauloop.display.calibration_table import shown
from tauloop.display.pieces import Piece, Plot, PlotTrace, by_name, motion, rounded
from tauloop.model import Model


def poses_page(plan: PosePlan) -> Iterator[Piece]:
    """What a technician who measures wants to see, and why these."""
    chosen = list(plan.selection.chosen)
    model = Model(plan.problem.mechanism)
    yield from motion(
        model,
        np.arange(1.0, len(chosen) + 1),
        plan.candidates.q[chosen],
        "The poses",
        is_motion=False,
    )
    columns = plan.candidates.columns
    for i, j in [(0, j) for j in (1, 2) if j < len(columns)]:
        drawn = []
        for name, values, look in (
            ("candidates", plan.candidates.position, "before"),
            ("selected", plan.positions, "after"),
        ):
            x, y = rounded(values[:, i]), rounded(values[:, j])
            drawn.append(PlotTrace(name=f"{len(values)} {name}", x=x, y=y, look=look))
        names = [columns[k].rpartition(".")[2] for k in (i, j)]
        labels = [f"{name} [m]" if name in ("x", "y", "z") else name for name in names]
        yield Plot(
            title=f"Where they lie: {names[0]}, {names[1]}",
            x=labels[0],
            y=labels[1],
            traces=tuple(drawn),
        )
    if plan.curve:
        yield _curve(plan)
    names, bars = [], []
    for unknown, deviation in zip(plan.problem.unknowns, plan.deviations, strict=True):
        value, unit = shown(float(deviation), unknown.unit)
        names.append(f"{unknown.name} [{unit}]".removesuffix(" []"))
        bars.append(value)
    label = "standard deviation [unit at the left]"
    yield by_name(
        "Expected standard deviations", label, names, {"expected": bars}, look="bars", log_y=True
    )


def _curve(plan: PosePlan) -> Plot:
    counts = rounded([point.count for point in plan.curve])
    errors = {
        "selected": [point.error for point in plan.curve],
        "random (median)": [
            np.nan if point.random_error is None else point.random_error for point in plan.curve
        ],
    }
    drawn = [PlotTrace(name=name, x=counts, y=rounded(values)) for name, values in errors.items()]
    ends = (counts[0], counts[-1])
    goal = plan.options.goal
    drawn.append(PlotTrace(name=f"goal {goal:g}", x=ends, y=(goal, goal), look="limit"))
    return Plot(
        title="How many poses are enough",
        x="number of poses",
        y="expected error [deviations of the noise]",
        traces=tuple(drawn),
        log_x=True,
        log_y=True,
        note="" if plan.enough is None else f"{plan.enough} poses are enough.",
    )
