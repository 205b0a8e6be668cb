"""Tables of a plan of measuring poses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.calibration import PosePlan
from tauloop.display.pieces import Printed, Table
from tauloop.display.tables import doubts, table

#: Parameters that are listed: those known least.
MAX_LISTED_PARAMETERS = 8


def planned(plan: PosePlan) -> str:
    """Return a short description of the plan."""
    (series,) = plan.problem.series
    what = f"{len(plan.problem.free)} parameters, {series.instrument.kind} measured"
    return f"{len(plan.selection.chosen)} poses of {plan.problem.mechanism.name} for {what}"


def poses_tables(plan: PosePlan) -> Iterator[Printed]:
    """Yield candidates, criterion, rod distances, least known parameters, the curve, and advice."""
    yield _summary(plan)
    yield from _clearance(plan)
    units = [plan.problem.unknowns[i].unit for i in plan.problem.free]
    weak = sorted(
        zip(
            plan.deviations / plan.problem.tolerances,
            plan.problem.names,
            plan.deviations,
            units,
            strict=True,
        )
    )
    worst = (
        (parameter, deviation if np.isfinite(deviation) else "not shown", unit)
        for _, parameter, deviation, unit in weak[::-1][:MAX_LISTED_PARAMETERS]
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
        goal = f"the error below {plan.options.goal:g} of the noise"
        yield (
            f"no number of poses here reaches {goal}"
            if plan.enough is None
            else f"{plan.enough} poses reach {goal}"
        )
    yield from doubts(plan)


def _summary(plan: PosePlan) -> Table:
    chosen = plan.selection
    rows = [("candidates", f"{len(plan.candidates)} of {plan.candidates.tried} tried")]
    for reason, number in plan.candidates.excluded.items():
        rows.append((f"  left out: {reason}", str(number)))
    values = f"{chosen.start_value:.4g} at first, {chosen.value:.4g} after"
    if len(plan.available_loads):
        used = len(np.unique(plan.loads, axis=0))
        rows.append(("loads", f"{used} of {len(plan.available_loads)} available"))
    rows.append((f"{plan.criterion}-criterion, tolerances", values))
    rows.append(("exchanges", f"{chosen.exchanges} in {chosen.rounds} rounds"))
    for index in ("O1", "O2", "O3", "O4", "O5"):
        rows.append((f"observability {index}", f"{getattr(chosen.indices, index):.4g}"))
    rows.append(("directions that no candidate shows", str(chosen.n_unobservable)))
    rows.append(("expected error over the noise", f"{plan.error:.3f}"))
    return table(planned(plan), "quantity", "value", rows=rows)


def _clearance(plan: PosePlan) -> Iterator[str]:
    apart = plan.candidates.clearance
    if apart is None:
        yield "interference of rods was not checked: no two rods are separate"
    elif not apart:
        yield "interference of rods was not checked (--clearance 0)"
    elif plan.options.limits.clearance is None:
        yield (
            f"rods have no thickness in machine files: center lines were kept {1e3 * apart:.3g} mm apart "
            "(--clearance states another distance)"
        )


def _curve(plan: PosePlan) -> Table:
    rows = (
        (point.count, point.error, "-" if point.random_error is None else point.random_error)
        for point in plan.curve
    )
    heads = (("poses", ""), ("expected error over noise", ".3f"), ("random poses", ".3f"))
    return table("Number of poses that is enough", *heads, rows=rows)
