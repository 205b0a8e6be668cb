"""Tables of a plan of measurement poses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration import PosePlan
from tauloop.common.counts import counted
from tauloop.display.pieces import Printed, Table
from tauloop.display.tables import doubts, table

#: Number of listed parameters, the least accurately known ones.
MAX_LISTED_PARAMETERS = 8


def plan_summary(plan: PosePlan) -> str:
    """Return a short description of the plan."""
    (series,) = plan.problem.series
    poses = counted(len(plan.selection.chosen), "pose")
    parameters = counted(len(plan.problem.free), "parameter")
    machine = plan.problem.mechanism.name
    return f"{poses} of {machine} for {parameters}, {series.instrument.kind} measured"


def poses_tables(plan: PosePlan) -> Iterator[Printed]:
    """Yield summary, rod distances, least accurately known parameters, the curve, and doubts."""
    yield _summary(plan)
    yield from _clearance(plan)
    units = [plan.problem.unknowns[i].unit for i in plan.problem.free]
    by_relative_deviation = sorted(
        zip(
            plan.deviations / plan.problem.tolerances,
            plan.problem.names,
            plan.deviations,
            units,
            strict=True,
        )
    )
    worst = (
        (parameter, deviation if np.isfinite(deviation) else "undetermined", unit)
        for _, parameter, deviation, unit in by_relative_deviation[::-1][:MAX_LISTED_PARAMETERS]
    )
    yield table(
        "Least accurately known parameters",
        "parameter",
        ("expected deviation", ".3g"),
        "unit",
        rows=worst,
    )
    if plan.curve:
        yield _curve(plan)
        goal = f"an error below {plan.options.goal:g} times the noise"
        if plan.enough is None:
            yield f"none of these numbers of poses gives {goal}"
        else:
            yield f"{counted(plan.enough, 'pose')} give {goal}"
    yield from doubts(plan)


def _summary(plan: PosePlan) -> Table:
    selection = plan.selection
    rows = [("candidates", f"{len(plan.candidates)} of {plan.candidates.tried} tried")]
    for reason, number in plan.candidates.excluded.items():
        rows.append((f"  left out: {reason}", str(number)))
    values = f"{selection.start_value:.4g} at the start, {selection.value:.4g} at the end"
    if len(plan.available_loads):
        used = len(np.unique(plan.loads, axis=0))
        rows.append(("loads", f"{used} of {len(plan.available_loads)} available"))
    rows.append((f"{plan.criterion}-criterion, tolerances", values))
    rows.append(("exchanges", f"{selection.exchanges} in {counted(selection.rounds, 'round')}"))
    for index in ("O1", "O2", "O3", "O4", "O5"):
        rows.append((f"observability {index}", f"{getattr(selection.indices, index):.4g}"))
    rows.append(("directions that no candidate determines", str(selection.n_unobservable)))
    rows.append(("expected error / noise", f"{plan.error:.3f}"))
    return table(plan_summary(plan), "quantity", "value", rows=rows)


def _clearance(plan: PosePlan) -> Iterator[str]:
    clearance = plan.candidates.clearance
    if clearance is None:
        yield "interference of rods was not checked: no two rods are separate"
    elif not clearance:
        yield "interference of rods was not checked (--clearance 0)"
    elif plan.options.limits.clearance is None:
        yield (
            f"rods have no thickness in machine files; their center lines are at least {1e3 * clearance:.3g} mm "
            "apart (--clearance sets another distance)"
        )


def _curve(plan: PosePlan) -> Table:
    rows = (
        (point.count, point.error, "-" if point.random_error is None else point.random_error)
        for point in plan.curve
    )
    heads = (("poses", ""), ("expected error / noise", ".3f"), ("random poses", ".3f"))
    return table("Error by number of poses", *heads, rows=rows)
