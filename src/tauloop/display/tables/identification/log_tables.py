"""Tables of the description of a log, and of the two-run method."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import doubts, paragraphs, table
from tauloop.identification.log_description import LogDescription
from tauloop.identification.preparation.two_runs import TwoRuns
from tauloop.logs import channels, units

#: Text for each source of a column's unit.
_BASES = {
    "option": "option",
    "header": "header",
    "name": "name of the column",
    "reach": "range of motion of the machine",
    "derivative": "derivative of the position",
    "rate": "plausible sample rate",
    "unknown": "unknown",
}


def log_description_tables(result: LogDescription) -> Iterator[Printed]:
    """Yield the file, its columns, unused columns, and the missing information."""
    yield Paragraph(text=result.text, tone="code")
    rows = (
        (item.column, item.quantity, item.channel, item.unit, _BASES[item.basis])
        for item in result.columns
    )
    yield table("Columns", "column", "quantity", "actuator", "unit", "unit from", rows=rows)
    if result.unused:
        yield f"unused columns: {', '.join(result.unused)}"
    yield from paragraphs(result.problems, "doubtful")
    yield from doubts(result)


def two_runs_tables(result: TwoRuns) -> Iterator[Printed]:
    """Yield the fraction subtracted from each force, the motion mismatch, and ignored columns."""
    forces, positions = units(result.log, "force"), units(result.log, "position")
    rows = (
        (
            *(name, fraction, f"{result.motion_mismatch[name]:.3g} {positions[name]}"),
            *(result.noise.get(name, "needs --period"), forces[name]),
        )
        for name, fraction in result.removed.items()
    )
    heads = (
        ("motor's own force / total", ".1%"),
        ("motion mismatch", ""),
        ("noise of the structure's force", ".3g"),
    )
    yield table("Structure's forces", "actuator", *heads, "unit", rows=rows)
    averaged = (
        f"; averaged periods: {result.periods[0]} and {result.periods[1]}" if result.noise else ""
    )
    yield f"the disconnected run is {1e3 * result.delay:.4g} ms late{averaged}"
    if velocities := channels(result.log, "velocity"):
        yield (
            f"velocities are those of the connected run: {', '.join(velocities)}; the runs are aligned by "
            "their positions"
        )
    if result.dropped:
        yield f"ignored columns (neither motion nor force): {', '.join(result.dropped)}"
    if result.unmatched:
        yield f"ignored columns (measured in only one run): {', '.join(result.unmatched)}"
    yield from doubts(result)
