"""Table of the description of a log."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import doubts, paragraphs, table
from tauloop.identification.log_description import LogDescription

#: What the unit of a column follows from, by the basis.
_BASES = {
    "option": "option",
    "header": "header",
    "name": "name of the column",
    "reach": "reach of the machine",
    "derivative": "derivative of the position",
    "rate": "plausible sample rate",
    "unknown": "unknown",
}


def log_description_tables(result: LogDescription) -> Iterator[Printed]:
    """Yield the file, its columns, columns without use, and what remains to be stated."""
    yield Paragraph(text=result.text, tone="code")
    rows = (
        (item.column, item.quantity, item.channel, item.unit, _BASES[item.basis])
        for item in result.columns
    )
    yield table("Columns", "column", "quantity", "actuator", "unit", "unit from", rows=rows)
    if result.unused:
        yield f"not used: {', '.join(result.unused)}"
    yield from paragraphs(result.problems, "doubtful")
    yield from doubts(result)
