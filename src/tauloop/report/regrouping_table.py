"""The table of a machine's base parameters as formulas for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tauloop.identification import AnalyticRegrouping
from tauloop.report.tables import table


def regrouping_tables(found: AnalyticRegrouping) -> Iterator[RenderableType]:
    """Base parameters with their values, and the parameters that no force shows."""
    rows = table(f"{len(found.base)} base parameters of {len(found.parameters)}", "formula", "value", "unit")
    values = [None] * len(found.base) if found.base_values is None else found.base_values
    for parameter, value in zip(found.base, values, strict=True):
        rows.add_row(parameter.name, "" if value is None else f"{value:.6g}", parameter.unit)
    yield rows
    if found.no_effect:
        yield Text(f"without effect: {', '.join(found.no_effect)}")
    yield Text(f"in the lengths: {', '.join(f'{name} {value:g} m' for name, value in found.lengths.items())}")
    for line in found.advice:
        yield Text(f"doubtful: {line}", style="red")
