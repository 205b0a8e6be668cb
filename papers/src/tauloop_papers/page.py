"""Results of papers as a page of `tauloop.pages`: tables in their layout, figures, films, C, and what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tauloop.pages import Film, Section, write_page as write_sections
from tauloop.report import Picture, Piece, Rows, Words
from tauloop_papers.kept import Kept
from tauloop_papers.reproduction import Experiment

TITLE = "Five papers on parallel robots, done again"
INTRODUCTION = (
    "What the papers print, what comes out here, and why they differ. In tables that have the paper's layout the upper "
    "figure of a cell is the printed one, the lower ours."
)
HEADS = ("quantity", "unit", "stated", "ours", "why they differ")

CONTROLLER_HEADS = ("function", "what it computes", "operations", "each Newton step", "self-check", "ns per call here")
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
    introduction = [INTRODUCTION, *(f"{item.title} ({item.name}): not done yet" for item in missing)]
    sections = [_section(kept) for kept in there]
    return write_sections(path, TITLE if len(there) != 1 else there[0].experiment.title, sections, introduction)


def _section(kept: Kept) -> Section:
    item = kept.experiment
    return Section(
        title=item.title,
        name=item.name,
        status=kept.status.value,
        pieces=tuple(_pieces(kept)),
        made=(Words(text=f"tauloop reproduce {item.name}", tone="code"), *_programs(item)),
    )


def _programs(item: Experiment) -> Iterator[Words]:
    program = f"papers/src/tauloop_papers/{item.procedure.replace('.', '/')}.py"
    yield Words(text=f"About {item.budget:.0f} s of processor time, by the program {program}.")


def _pieces(kept: Kept) -> Iterator[Piece | Film]:
    result = kept.data["result"]
    yield Words(text=kept.experiment.source, tone="note")
    for line in kept.data["advice"]:
        yield Words(text=line, tone="doubtful")
    for table in result["printed"]:
        yield _printed(table)
    keys = ("quantity", "unit", "stated", "ours", "why")
    cells = (tuple(item[key] or "–" for key in keys) for item in result["comparisons"])
    yield Rows(title="Stated and ours", heads=HEADS, cells=tuple(cells))
    for name, caption in kept.data["captions"].items():
        yield Picture(svg=kept.figure(name).read_text(encoding="utf-8"), caption=caption)
    for name, caption in kept.data["films"].items():
        yield Film(page=kept.figure(name, "html").read_text(encoding="utf-8"), caption=caption)
    if kept.data["controllers"]:
        yield from _controllers(kept)
    yield Words(text="Chosen here, because the paper does not say", tone="heading")
    for choice in result["choices"]:
        yield Words(text=choice, tone="item")


def _printed(printed: Mapping[str, Any]) -> Rows:
    """A table of the paper: the printed figure above ours in every cell."""
    cells = (
        (row["name"], *(f"{s or '–'}\n{o or '–'}" for s, o in zip(row["stated"], row["ours"], strict=True)))
        for row in printed["rows"]
    )
    heads = tuple(printed["columns"])
    numeric = (False, *[True] * (len(heads) - 1))
    title = f"{printed['name']}: {printed['title']}"
    return Rows(title=title, heads=heads, cells=tuple(cells), numeric=numeric, note=printed["why"])


def controller_rows(kept: Kept) -> list[tuple[str, ...]]:
    """Functions in the controller: name, meaning, operations, those of each Newton step, self-check, time of a call."""
    rows: list[tuple[str, ...]] = []
    for item in kept.data["controllers"]:
        run = kept.measured.get(item["name"], {"agrees": None, "verdict": "not run here", "nanoseconds": {}})
        for function in item["functions"]:
            time = run["nanoseconds"].get(function["name"])
            counts = (str(function["total"]), str(function["each_newton_step"] or ""))
            rows.append((function["name"], function["meaning"], *counts, run["verdict"], f"{time:.0f}" if time else ""))
    return rows


def _controllers(kept: Kept) -> Iterator[Piece]:
    """What stands in the controller, as C."""
    folders = ", ".join(sorted({str(Path(file).parent) for c in kept.data["controllers"] for file in c["files"]}))
    title = "In the controller: C99, with its own check"
    rows = tuple(tuple(cell or "–" for cell in row) for row in controller_rows(kept))
    yield Rows(title=title, heads=CONTROLLER_HEADS, cells=rows, note=f"{CONTROLLER_WORDS} The files lie in {folders}.")
