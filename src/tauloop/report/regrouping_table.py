"""The table of a machine's base parameters as formulas for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tauloop.identification import AnalyticRegrouping
from tauloop.report.tables import doubts, table


def regrouping_tables(found: AnalyticRegrouping) -> Iterator[RenderableType]:
    """Base parameters with their values, and the parameters that no force shows."""
    values = [None] * len(found.base) if found.base_values is None else found.base_values
    rows = ((parameter.name, value, parameter.unit) for parameter, value in zip(found.base, values, strict=True))
    title = f"{len(found.base)} base parameters of {len(found.parameters)}"
    yield table(title, "formula", ("value", ".6g"), "unit", rows=rows)
    if found.no_effect:
        yield Text(f"without effect: {', '.join(found.no_effect)}")
    yield Text(f"in the lengths: {', '.join(f'{name} {value:g} m' for name, value in found.lengths.items())}")
    yield from doubts(found)
