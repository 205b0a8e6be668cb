"""Results of papers as records and pages: tables in their layout, figures, machines in motion, C, what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tauloop.display import MotionScene, PageRecord, Paragraph, Picture, Piece, Table
from tauloop.viewer.pages import write_page as write_records
from tauloop_papers.kept import Kept
from tauloop_papers.reproduction import Experiment

TITLE = "Five papers on parallel robots, done again"
INTRODUCTION = (
    "What the papers print, what comes out here, and why they differ. In tables that have the paper's layout the upper "
    "figure of a cell is the printed one, the lower ours."
)
OWN_MACHINE = "What is ours is of {file}, what is stated of the paper's machine: they differ because the machines do."
HEADS = ("quantity", "unit", "stated", "ours", "why they differ")

CONTROLLER_HEADS = (
    "function",
    "what it computes",
    "operations",
    "each Newton step",
    "self-check",
    "ns per call here",
)
CONTROLLER_WORDS = (
    "Operations are those of one sample, after sharing of common subexpressions. The check compares calls and batches "
    "with the interpreter's numbers at assembled states. Times are the least of seven runs of 20 000 calls, by cc -O2, "
    "on the computer that made this page and with whatever else it did."
)


def write_page(path: Path, there: Sequence[Kept], missing: Sequence[Experiment] = ()) -> Path:
    """Write the page of results, one section each; those that are missing are named.

    Raises:
        InputError: the folder cannot be written.
    """
    introduction = [
        INTRODUCTION,
        *(f"{item.title} ({item.name}): not done yet" for item in missing),
    ]
    title = TITLE if len(there) != 1 else there[0].experiment.title
    return write_records(path, title, [record(kept) for kept in there], introduction)


def record(kept: Kept) -> PageRecord:
    """What a page shows of a result: of this command, and of `tauloop report`."""
    return PageRecord(
        kind="Reproduction",
        title=kept.experiment.title,
        status=kept.status.value,
        pieces=tuple(_pieces(kept)),
        made=tuple(_made(kept)),
    )


def _made(kept: Kept) -> Iterator[Piece]:
    item = kept.experiment
    own = f" --machine {kept.data['machine']}" if kept.data["machine"] else ""
    yield Paragraph(text=f"tauloop paper reproduce {item.name}{own}", tone="code")
    program = f"papers/src/tauloop_papers/{item.procedure.replace('.', '/')}.py"
    yield Paragraph(text=f"About {item.budget:.0f} s of processor time, by the program {program}.")
    versions = kept.data["result"]["provenance"]["versions"]
    yield Table(title="Versions", heads=("of", "version"), cells=tuple(versions.items()))


def _pieces(kept: Kept) -> Iterator[Piece]:
    result = kept.data["result"]
    yield Paragraph(text=kept.experiment.source, tone="note")
    if kept.data["machine"]:
        yield Paragraph(text=OWN_MACHINE.format(file=kept.data["machine"]), tone="note")
    for line in kept.data["advice"]:
        yield Paragraph(text=line, tone="doubtful")
    for table in result["printed"]:
        yield _printed(table)
    keys = ("quantity", "unit", "stated", "ours", "why")
    cells = (tuple(item[key] or "–" for key in keys) for item in result["comparisons"])
    yield Table(title="Stated and ours", heads=HEADS, cells=tuple(cells))
    for name, caption in kept.data["captions"].items():
        yield Picture(svg=kept.figure(name).read_text(encoding="utf-8"), caption=caption)
    for scene in kept.data["films"].values():
        yield MotionScene(**scene)
    if kept.data["controllers"]:
        yield from _controllers(kept)
    if kept.data["undrawn"]:
        yield Paragraph(text="Figures of the paper that hold no data", tone="heading")
        for figure, what in kept.data["undrawn"].items():
            yield Paragraph(text=f"{figure}: {what}", tone="item")
    yield Paragraph(text="Chosen here, because the paper does not say", tone="heading")
    for choice in result["choices"]:
        yield Paragraph(text=choice, tone="item")


def _printed(printed: Mapping[str, Any]) -> Table:
    """A table of the paper: the printed figure above ours in every cell."""
    cells = (
        (
            row["name"],
            *(f"{s or '–'}\n{o or '–'}" for s, o in zip(row["stated"], row["ours"], strict=True)),
        )
        for row in printed["rows"]
    )
    heads = tuple(printed["columns"])
    numeric = (False, *[True] * (len(heads) - 1))
    title = f"{printed['name']}: {printed['title']}"
    return Table(title=title, heads=heads, cells=tuple(cells), numeric=numeric, note=printed["why"])


def controller_rows(kept: Kept) -> list[tuple[str, ...]]:
    """Functions in the controller: name, meaning, operations, those of each Newton step, self-check, time of a call."""
    rows: list[tuple[str, ...]] = []
    for item in kept.data["controllers"]:
        run = kept.measured.get(
            item["name"], {"agrees": None, "verdict": "not run here", "nanoseconds": {}}
        )
        for function in item["functions"]:
            time = run["nanoseconds"].get(function["name"])
            counts = (str(function["total"]), str(function["each_newton_step"] or ""))
            rows.append(
                (
                    function["name"],
                    function["meaning"],
                    *counts,
                    run["verdict"],
                    f"{time:.0f}" if time else "",
                )
            )
    return rows


def _controllers(kept: Kept) -> Iterator[Piece]:
    """What stands in the controller, as C."""
    folders = ", ".join(
        sorted({str(Path(file).parent) for c in kept.data["controllers"] for file in c["files"]})
    )
    own = f" --machine {kept.data['machine']}" if kept.data["machine"] else ""
    where = f"`tauloop paper reproduce {kept.experiment.name}{own} --out FOLDER` writes the files into {folders}."
    title = "In the controller: C99, with its own check"
    rows = tuple(tuple(cell or "–" for cell in row) for row in controller_rows(kept))
    yield Table(title=title, heads=CONTROLLER_HEADS, cells=rows, note=f"{CONTROLLER_WORDS} {where}")
