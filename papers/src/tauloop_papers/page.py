"""Results of papers as records and pages: tables, figures, films, C code and choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tauloop.display import MotionScene, PageRecord, Paragraph, Picture, Piece, Table
from tauloop.viewer.pages import write_page as write_records
from tauloop_papers.kept import Kept
from tauloop_papers.reproduction import Experiment

TITLE = "Reproductions of five papers on parallel robots"
INTRODUCTION = (
    "Values printed in the papers, our values, and why they differ. In tables with the paper's layout the upper "
    "value of a cell is the printed one, the lower one ours."
)
OWN_MACHINE = "Our values are for {file}, the stated ones for the paper's machine: they differ because the machines do."
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
    "Operations are for one sample, with shared common subexpressions. The check compares calls and batches "
    "with the interpreter's results at assembled states. Times are the smallest of seven runs of 20 000 calls, with "
    "cc -O2, on the computer that made this page, with its other load."
)


def write_page(path: Path, there: Sequence[Kept], missing: Sequence[Experiment] = ()) -> Path:
    """Write the page of results with a section for each; missing results are listed.

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
    """Return the record of a result for the pages of this command and of `tauloop report`."""
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
    cells = []
    for item in result["comparisons"]:
        cells.append(tuple(item[key] or "–" for key in keys))
    yield Table(title="Stated and ours", heads=HEADS, cells=tuple(cells))
    for name, caption in kept.data["captions"].items():
        yield Picture(svg=kept.figure(name).read_text(encoding="utf-8"), caption=caption)
    for scene in kept.data["films"].values():
        yield MotionScene(**scene)
    if kept.data["controllers"]:
        yield from _controllers(kept)
    if kept.data["undrawn"]:
        yield Paragraph(text="Figures of the paper without data", tone="heading")
        for figure, what in kept.data["undrawn"].items():
            yield Paragraph(text=f"{figure}: {what}", tone="item")
    yield Paragraph(text="Our choices, which the paper leaves open", tone="heading")
    for choice in result["choices"]:
        yield Paragraph(text=choice, tone="item")


def _printed(printed: Mapping[str, Any]) -> Table:
    """Return a table of the paper with the printed value above ours in every cell."""
    cells = []
    for row in printed["rows"]:
        pairs = zip(row["stated"], row["ours"], strict=True)
        cells.append((row["name"], *(f"{stated or '–'}\n{ours or '–'}" for stated, ours in pairs)))
    heads = tuple(printed["columns"])
    numeric = (False, *[True] * (len(heads) - 1))
    title = f"{printed['name']}: {printed['title']}"
    return Table(title=title, heads=heads, cells=tuple(cells), numeric=numeric, note=printed["why"])


def controller_rows(kept: Kept) -> list[tuple[str, ...]]:
    """Return name, meaning, operations, self-check and time of the functions of a controller."""
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
    """Yield the pieces about the C code of the controller."""
    folders = ", ".join(
        sorted({str(Path(file).parent) for c in kept.data["controllers"] for file in c["files"]})
    )
    own = f" --machine {kept.data['machine']}" if kept.data["machine"] else ""
    where = f"`tauloop paper reproduce {kept.experiment.name}{own} --out FOLDER` writes the files into {folders}."
    title = "In the controller: C99, with its own check"
    rows = []
    for row in controller_rows(kept):
        rows.append(tuple(cell or "–" for cell in row))
    note = f"{CONTROLLER_WORDS} {where}"
    yield Table(title=title, heads=CONTROLLER_HEADS, cells=tuple(rows), note=note)
