"""The tables of operation counts for the terminal, with the papers' beside."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tauloop.codegen.operations import KINDS
from tauloop.mechanism.published import Published
from tauloop.model.costs import VELOCITY_MATRIX, Cost
from tauloop.model.operation_counts import OperationCounts, Ratio
from tauloop.report.tables import table

HEADINGS = ("+ -", "x", "/", "root", "trig", "other", "total", "per iteration")


def cost_tables(found: OperationCounts) -> Iterator[RenderableType]:
    """What was counted, what a paper prints, ratios, and what was left out."""
    yield Text(f"Operations of {found.machine}, from {found.options.entry} motion", style="bold")
    rows = found.costs
    for quantity in dict.fromkeys(row.quantity for row in rows):
        if quantity != VELOCITY_MATRIX:
            yield _listing(quantity, [row for row in rows if row.quantity == quantity])
    for frame in dict.fromkeys(row.frame for row in rows if row.quantity == VELOCITY_MATRIX):
        yield _matrix_listing([row for row in rows if row.quantity == VELOCITY_MATRIX and row.frame == frame])
    if found.published.counts:
        yield _published_listing(found.published)
    if found.ratios:
        yield _ratio_listing(found.ratios)
    for name, reason in found.left_out.items():
        yield f"left out: {name}: {reason}"


def _listing(quantity: str, rows: list[Cost]) -> Table:
    listing = table("", quantity, *HEADINGS, numeric=tuple(range(1, 9)))
    for row in rows:
        listing.add_row(row.formulation, *_counts(row))
    return listing


def _matrix_listing(rows: list[Cost]) -> Table:
    """Parts by formulation, the formulations of one part under each other."""
    title = f"Coriolis and centripetal terms V(x, x') as a matrix on the platform, {rows[0].frame}"
    listing = table(title, "part", "formulation", *HEADINGS, numeric=tuple(range(2, 10)))
    for part in dict.fromkeys(row.part for row in rows):
        for row in rows:
            if row.part == part:
                listing.add_row(part, row.formulation, *_counts(row))
    return listing


def _counts(row: Cost) -> tuple[str, ...]:
    iteration = sum(row.each_iteration.values())
    counts = (str(row.once[kind]) for kind in KINDS)
    return (*counts, str(row.total), f"+ {iteration}" if iteration else "")


def _published_listing(paper: Published) -> Table:
    sources = ", ".join(dict.fromkeys(row.source for row in paper.counts))
    title = f"As printed, for the paper's machine and program: {sources}"
    listing = table(title, "part", "formulation", "+ -", "x", "/", "total", numeric=(2, 3, 4, 5))
    for row in paper.counts:
        counts = (str(row.counts[kind]) for kind in ("additions", "multiplications", "divisions"))
        listing.add_row(row.called, row.formulation, *counts, str(row.total))
    return listing


def _ratio_listing(ratios: tuple[Ratio, ...]) -> Table:
    sources = "; ".join(dict.fromkeys(row.source for row in ratios if row.source))
    title = f"Ratios of totals (paper's machine and program: {sources})" if sources else "Ratios of totals"
    listing = table(title, "quantity", "part", "formulations", "ours", "paper's", numeric=(3, 4))
    for row in ratios:
        quantity = f"{row.quantity}, {row.frame}" if row.frame else row.quantity
        published = "" if row.published is None else f"{row.published:.2f}"
        listing.add_row(quantity, row.part, f"{row.formulation} / {row.against}", f"{row.ours:.2f}", published)
    return listing
