"""``tauloop cost``: how many operations the functions of a machine take, by formulation, beside the papers' figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from tauloop.assembly.entry import PLATFORM, Entry
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import JsonOption, console, print_json, reports_errors, table
from tauloop.codegen.operations import KINDS
from tauloop.mechanism.published import Published, published_operations
from tauloop.model import Model
from tauloop.model.costs import ADDED_UP, ALL, ON_PLATFORM, SAMPLED, VELOCITY_MATRIX, Cost, costs

HEADINGS = ("+ -", "x", "/", "root", "trig", "other", "total", "per iteration")
#: Ratios that are shown: quantity, formulation, and the one that it is held against.
RATIOS = (
    (VELOCITY_MATRIX, "generalized-momentum", "lagrange"),
    (VELOCITY_MATRIX, "generalized-momentum", ON_PLATFORM),
    ("inverse dynamics", "hamilton", "lagrange"),
    ("inverse dynamics", SAMPLED, "lagrange"),
)
#: What our rows stand beside: a paper's total is the sum of its rows, its Lagrange and its Hamilton are one each.
PRINTED = {ADDED_UP: ALL, ON_PLATFORM: "lagrange", SAMPLED: "hamilton"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Operations of one formulation over those of another.

    Attributes:
        quantity, frame, part: what is computed.
        formulation, against: the two formulations.
        ours: the ratio of our totals.
        published: a paper's for its own machine, where it prints one.
        source: that paper.
    """

    quantity: str
    frame: str
    part: str
    formulation: str
    against: str
    ours: float
    published: float | None
    source: str


@reports_errors
def cost(
    machine: MachineArgument,
    side: SideOption = None,
    entry: Annotated[Entry, typer.Option(help="What moves as given.")] = PLATFORM,
    as_json: JsonOption = False,
) -> None:
    """Count the operations of a machine's functions, all numbers baked in, after sharing common subexpressions.

    Kinematics are included in every row, so the parts of a velocity matrix do not add up to the whole; a Newton
    block is counted apart, per iteration. What a paper prints of its own machine stands below ours.
    """
    mechanism = load_machine(machine, side)
    announced(Model(mechanism))
    rows, left_out = costs(mechanism, entry)
    paper = published_operations(mechanism.name)
    ratios = list(_ratios(rows, paper))
    if as_json:
        found = {"costs": rows, "ratios": ratios, "published": paper, "left_out": left_out}
        print_json({"machine": mechanism.name, "entry": entry, **found})
        return
    screen = console()
    screen.print(f"Operations of {mechanism.name}, from {entry} motion", style="bold")
    for quantity in dict.fromkeys(row.quantity for row in rows):
        if quantity != VELOCITY_MATRIX:
            screen.print(_listing(quantity, [row for row in rows if row.quantity == quantity]))
    for frame in dict.fromkeys(row.frame for row in rows if row.quantity == VELOCITY_MATRIX):
        screen.print(_matrix_listing([row for row in rows if row.quantity == VELOCITY_MATRIX and row.frame == frame]))
    if paper.counts:
        screen.print(_published_listing(paper))
    if ratios:
        screen.print(_ratio_listing(ratios))
    for name, reason in left_out.items():
        screen.print(f"left out: {name}: {reason}", markup=False)


def _ratios(rows: tuple[Cost, ...], paper: Published) -> Iterator[Ratio]:
    totals = {(row.quantity, row.frame, row.part, row.formulation): row.total for row in rows}
    for wanted, formulation, against in RATIOS:
        for (quantity, frame, part, name), total in totals.items():
            other = totals.get((quantity, frame, part, against), 0)
            if (quantity, name) == (wanted, formulation) and other:
                printed = (PRINTED.get(name, name) for name in (part, formulation, against))
                published, source = _published_ratio(paper, quantity, *printed)
                yield Ratio(
                    quantity=quantity,
                    frame=frame,
                    part=part,
                    formulation=formulation,
                    against=against,
                    ours=total / other,
                    published=published,
                    source=source,
                )


def _published_ratio(
    paper: Published, quantity: str, part: str, formulation: str, against: str
) -> tuple[float | None, str]:
    """A ratio as printed, or of two printed totals, and where it stands."""
    rows = {row.formulation: row for row in paper.counts if (row.quantity, row.part) == (quantity, part)}
    if formulation in rows and against in rows:
        return rows[formulation].total / rows[against].total, rows[formulation].source
    for row in paper.ratios:
        if (row.quantity, row.formulation, row.against) == (quantity, formulation, against) and part == ALL:
            return row.ratio, row.source
    return None, ""


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


def _ratio_listing(ratios: list[Ratio]) -> Table:
    sources = "; ".join(dict.fromkeys(row.source for row in ratios if row.source))
    title = f"Ratios of totals (paper's machine and program: {sources})" if sources else "Ratios of totals"
    listing = table(title, "quantity", "part", "formulations", "ours", "paper's", numeric=(3, 4))
    for row in ratios:
        quantity = f"{row.quantity}, {row.frame}" if row.frame else row.quantity
        published = "" if row.published is None else f"{row.published:.2f}"
        listing.add_row(quantity, row.part, f"{row.formulation} / {row.against}", f"{row.ours:.2f}", published)
    return listing
