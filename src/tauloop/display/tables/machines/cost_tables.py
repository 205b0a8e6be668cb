"""Tables of operation counts, with the counts printed in papers."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.compiler.c.printing.operations import OPERATION_KINDS
from tauloop.display.pieces import Paragraph, Printed, Table
from tauloop.display.tables import table
from tauloop.model.equation_text.costs import VELOCITY_MATRIX, Cost
from tauloop.model.equation_text.operation_counts import OperationCounts, Ratio
from tauloop.model.equation_text.published import Published

#: Heads of the columns of counts.
HEADINGS = tuple(
    (head, "") for head in ("+ -", "x", "/", "root", "trig", "other", "total", "per iteration")
)


def cost_tables(counts: OperationCounts) -> Iterator[Printed]:
    """Yield counts, counts printed in papers, ratios, and quantities that were not counted."""
    yield Paragraph(
        text=f"Operations of {counts.machine}, from {counts.options.coordinates} motion",
        tone="strong",
    )
    rows = counts.costs
    for quantity in dict.fromkeys(row.quantity for row in rows):
        if quantity != VELOCITY_MATRIX:
            yield _listing(quantity, [row for row in rows if row.quantity == quantity])
    for frame in dict.fromkeys(row.frame for row in rows if row.quantity == VELOCITY_MATRIX):
        yield _matrix_listing(
            [row for row in rows if row.quantity == VELOCITY_MATRIX and row.frame == frame]
        )
    if counts.published.counts:
        yield _published_listing(counts.published)
    if counts.ratios:
        yield _ratio_listing(counts.ratios)
    for name, reason in counts.left_out.items():
        yield f"left out: {name}: {reason}"
    by_option: dict[str, list[str]] = {}
    for name, option in counts.not_requested.items():
        by_option.setdefault(option, []).append(name)
    for option, names in by_option.items():
        yield f"not requested (--{option.replace('_', '-')}): {', '.join(names)}"


def _listing(quantity: str, rows: list[Cost]) -> Table:
    return table("", quantity, *HEADINGS, rows=((row.formulation, *_counts(row)) for row in rows))


def _matrix_listing(rows: list[Cost]) -> Table:
    """Return a table of the counts of each part; rows of the same part are adjacent."""
    title = f"Coriolis and centripetal terms V(x, x') as a matrix on the platform, {rows[0].frame}"
    parts = list(dict.fromkeys(row.part for row in rows))
    ordered = sorted(rows, key=lambda row: parts.index(row.part))
    cells = ((row.part, row.formulation, *_counts(row)) for row in ordered)
    return table(title, "part", "formulation", *HEADINGS, rows=cells)


def _counts(row: Cost) -> tuple[object, ...]:
    iteration = sum(row.each_iteration.values())
    return (
        *(row.once[kind] for kind in OPERATION_KINDS),
        row.total,
        f"+ {iteration}" if iteration else "",
    )


def _published_listing(paper: Published) -> Table:
    sources = ", ".join(dict.fromkeys(row.source for row in paper.counts))
    title = f"As printed, for the paper's machine and program: {sources}"
    kinds = ("additions", "multiplications", "divisions")
    cells = []
    for row in paper.counts:
        counts = (row.counts[kind] for kind in kinds)
        cells.append((row.called, row.formulation, *counts, row.total))
    return table(
        title, "part", "formulation", ("+ -", ""), ("x", ""), ("/", ""), ("total", ""), rows=cells
    )


def _ratio_listing(ratios: tuple[Ratio, ...]) -> Table:
    sources = "; ".join(dict.fromkeys(row.source for row in ratios if row.source))
    title = (
        f"Ratios of totals (paper's machine and program: {sources})"
        if sources
        else "Ratios of totals"
    )
    cells = (
        (
            f"{row.quantity}, {row.frame}" if row.frame else row.quantity,
            *(row.part, f"{row.formulation} / {row.against}", row.ours, row.published),
        )
        for row in ratios
    )
    return table(
        title, "quantity", "part", "formulations", ("ours", ".2f"), ("paper's", ".2f"), rows=cells
    )
