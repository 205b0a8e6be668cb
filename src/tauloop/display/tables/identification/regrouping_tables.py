"""Table of a machine's base parameters as formulas."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.identification import AnalyticRegrouping


def regrouping_tables(regrouping: AnalyticRegrouping) -> Iterator[Printed]:
    """Yield base parameters with their values, and the parameters without effect on forces."""
    values = (
        [None] * len(regrouping.base) if regrouping.base_values is None else regrouping.base_values
    )
    rows = (
        (parameter.name, value, parameter.unit)
        for parameter, value in zip(regrouping.base, values, strict=True)
    )
    title = f"{counted(len(regrouping.base), 'base parameter')} of {len(regrouping.parameters)}"
    yield table(title, "formula", ("value", ".6g"), "unit", rows=rows)
    if regrouping.no_effect:
        yield f"without effect: {', '.join(regrouping.no_effect)}"
    yield (
        f"lengths: {', '.join(f'{name} {value:g} m' for name, value in regrouping.lengths.items())}"
    )
    yield from doubts(regrouping)
