"""Tables of an optimized excitation."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Printed, Table
from tauloop.display.tables import doubts, table
from tauloop.identification.excitation import Excitation


def excitation_tables(excitation: Excitation) -> Iterator[Printed]:
    """Yield condition numbers, base parameters, limits, optimizer starts, and diagnostics."""
    names, units = excitation.outputs
    series = excitation.series
    yield Paragraph(text=f"Excitation of {excitation.machine}", tone="strong")
    outputs = ", ".join(f"{name} [{unit}]" for name, unit in zip(names, units, strict=True))
    channels = ", ".join(excitation.channels)
    harmonics = counted(series.harmonics, "harmonic")
    yield f"{harmonics}, period {series.period:g} s, in {channels}; regressor rows: {outputs}"
    yield from _conditions(excitation)
    rows = ((parameter.short_name(70), parameter.unit) for parameter in excitation.base.base)
    title = counted(excitation.base.rank, "base parameter")
    yield table(title, "base parameter", "unit", rows=rows)
    uses = (
        (
            limit.name,
            *map(_number, (limit.least, limit.greatest, limit.lower, limit.upper)),
            limit.unit,
        )
        for limit in excitation.limits
    )
    heads = ((head, ".5g") for head in ("smallest", "largest", "lower", "upper"))
    yield table("Limits", "quantity", *heads, "unit", rows=uses)
    if excitation.starts:
        yield _starts(excitation)
    yield from (str(item) for item in excitation.diagnostics if item.is_good)
    yield from doubts(excitation)


def _conditions(excitation: Excitation) -> Iterator[Printed]:
    random, conditions = excitation.random, excitation.conditions
    stated = excitation.options.stated_condition
    rows = (
        ("SI units", conditions.si, random.best_si, random.median_si),
        ("unit norm", conditions.unit_norm, random.best_unit_norm, random.median_unit_norm),
    )
    heads = ((head, ".4g") for head in ("this motion", "best random", "median random"))
    yield table("Condition number", "columns", *heads, rows=rows)
    yield (
        f"random: {random.kept} of {random.tried} series are within all limits (seed {excitation.options.seed}); "
        f"log det / 2r = {conditions.log_determinant:.4g}"
    )
    if stated is not None:
        yield (
            f"stated elsewhere: {stated:g}; comparable only if columns, units, outputs and limits are the "
            "same"
        )


def _starts(excitation: Excitation) -> Table:
    cells = []
    for start in (*excitation.starts, *excitation.polished):
        prefix = "polished: " if start in excitation.polished else ""
        before, after = _number(start.started), _number(start.reached)
        cells.append((before, after, start.iterations, prefix + start.status))
    return table(
        "Starts (criterion)",
        ("before", ".4g"),
        ("after", ".4g"),
        ("iterations", ""),
        "solver",
        rows=cells,
    )


def _number(value: float | None) -> float | str:
    return "-" if value is None else value
