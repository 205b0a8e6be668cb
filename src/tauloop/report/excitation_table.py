"""The tables of an optimised excitation for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tauloop.identification.excitation import Excitation
from tauloop.report.tables import table


def excitation_tables(excitation: Excitation) -> Iterator[RenderableType]:
    """Conditions beside those of random series, base parameters, use of the limits, starts, and evidence."""
    names, units = excitation.outputs
    series = excitation.series
    yield Text(f"Excitation of {excitation.machine}", style="bold")
    outputs = ", ".join(f"{name} [{unit}]" for name, unit in zip(names, units, strict=True))
    channels = ", ".join(excitation.channels)
    yield f"{series.harmonics} harmonics, period {series.period:g} s, in {channels}; regressor rows: {outputs}"
    yield from _conditions(excitation)
    rows = table(f"{excitation.base.rank} base parameters", "base parameter", "unit")
    for parameter in excitation.base.base:
        rows.add_row(parameter.short_name(70), parameter.unit)
    yield rows
    rows = table("Limits", "quantity", "least", "greatest", "lower", "upper", "unit", numeric=(1, 2, 3, 4))
    for limit in excitation.limits:
        values = (limit.least, limit.greatest, limit.lower, limit.upper)
        rows.add_row(limit.name, *("-" if value is None else f"{value:.5g}" for value in values), limit.unit)
    yield rows
    if excitation.starts:
        yield _starts(excitation)
    for item in excitation.evidence:
        yield str(item) if item.is_good else Text(f"doubtful: {item}", style="red")


def _conditions(excitation: Excitation) -> Iterator[RenderableType]:
    random, conditions, beside = excitation.random, excitation.conditions, excitation.options.beside
    rows = table("Condition number", "columns", "this motion", "best random", "median random", numeric=(1, 2, 3))
    figures = (
        ("SI units", conditions.si, random.best_si, random.median_si),
        ("unit norm", conditions.unit_norm, random.best_unit_norm, random.median_unit_norm),
    )
    for name, *values in figures:
        rows.add_row(name, *(f"{value:.4g}" for value in values))
    yield rows
    yield (
        f"random: {random.kept} of {random.tried} series keep all limits (seed {excitation.options.seed}); "
        f"log det / 2r = {conditions.log_determinant:.4g}"
    )
    if beside is not None:
        yield (
            f"stated elsewhere: {beside:g}; not comparable unless columns, units, output and limits are the same: the "
            "condition number depends on all of them"
        )


def _starts(excitation: Excitation) -> Table:
    rows = table("Starts (criterion)", "before", "after", "iterations", "solver", numeric=(0, 1, 2))
    for start in (*excitation.starts, *excitation.polished):
        polished = "polished: " if start in excitation.polished else ""
        reached = ("-" if value is None else f"{value:.4g}" for value in (start.started, start.reached))
        rows.add_row(*reached, str(start.iterations), polished + start.status)
    return rows
