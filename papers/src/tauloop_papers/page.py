"""Results as an HTML page: one file, nothing from outside, every name as text.

A tree of elements is built and written by the standard library, which escapes all text; figures are pictures in it.
"""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from tauloop.files import write_text
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
    html = ET.Element("html", lang="en")
    head = _add(html, "head")
    _add(head, "meta", charset="utf-8")
    _add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    title = TITLE if len(there) != 1 else there[0].experiment.title
    _add(head, "title", title)
    _add(head, "style", files("tauloop_papers").joinpath("page.css").read_text(encoding="utf-8"))
    body = _add(html, "body")
    if len(there) != 1:
        _add(body, "h1", TITLE)
    _add(body, "p", INTRODUCTION)
    if len(there) != 1 or missing:
        _contents(body, there, missing)
    for kept in there:
        _section(body, kept)
    return write_text(path, "<!doctype html>\n" + ET.tostring(html, encoding="unicode", method="html") + "\n")


def _contents(body: ET.Element, there: Sequence[Kept], missing: Sequence[Experiment]) -> None:
    links = _add(_add(body, "nav"), "ul")
    for kept in there:
        item = _add(links, "li")
        _add(item, "a", kept.experiment.title, href=f"#{kept.experiment.name}").tail = f" ({kept.experiment.name})"
    for experiment in missing:
        _add(links, "li", f"{experiment.title} ({experiment.name}): not done yet")


def _section(body: ET.Element, kept: Kept) -> None:
    experiment, result = kept.experiment, kept.data["result"]
    part = _add(body, "section", id=experiment.name)
    _add(part, "h2", experiment.title)
    _add(part, "p", experiment.source, class_="source")
    time = _add(part, "p", f"About {experiment.budget:.0f} s of processor time. Done by ", class_="time")
    _add(time, "code", f"tauloop reproduce {experiment.name}").tail = ", program "
    _add(time, "code", f"papers/src/tauloop_papers/{experiment.procedure.replace('.', '/')}.py").tail = "."
    for line in kept.data["advice"]:
        _add(part, "p", f"Doubtful: {line}", class_="doubtful")
    for table in result["printed"]:
        _printed(part, table)
    _add(part, "h3", "Stated and ours")
    _compared(part, result["comparisons"])
    for name, caption in kept.data["captions"].items():
        _figure(part, kept.figure(name), caption)
    for name, caption in kept.data["films"].items():
        figure = _add(part, "figure")
        film = kept.figure(name, "html").read_text(encoding="utf-8")
        _add(figure, "iframe", srcdoc=film, sandbox="allow-scripts", title=caption, loading="lazy")
        _add(figure, "figcaption", caption)
    if kept.data["controllers"]:
        _controllers(part, kept)
    _add(part, "h3", "Chosen here, because the paper does not say")
    choices = _add(part, "ul")
    for choice in result["choices"]:
        _add(choices, "li", choice)


def _printed(part: ET.Element, printed: Mapping[str, Any]) -> None:
    """A table of the paper: the printed figure above ours in every cell."""
    _add(part, "h3", f"{printed['name']}: {printed['title']}")
    table = _add(_add(part, "div", class_="wide"), "table", class_="printed")
    _heads(table, printed["columns"])
    rows = _add(table, "tbody")
    for row in printed["rows"]:
        line = _add(rows, "tr")
        _add(line, "th", row["name"], scope="row")
        for stated, ours in zip(row["stated"], row["ours"], strict=True):
            cell = _add(line, "td")
            _add(cell, "span", stated or "–", class_="stated")
            _add(cell, "span", ours or "–", class_="ours")
    if printed["why"]:
        _add(part, "p", printed["why"])


def _compared(part: ET.Element, comparisons: Sequence[Mapping[str, str]]) -> None:
    table = _add(_add(part, "div", class_="wide"), "table", class_="compared")
    _heads(table, HEADS)
    rows = _add(table, "tbody")
    for item in comparisons:
        line = _add(rows, "tr")
        _add(line, "th", item["quantity"], scope="row")
        for key, head in zip(("unit", "stated", "ours", "why"), HEADS[1:], strict=True):
            _add(line, "td", item[key] or "–", **{"data-head": head})


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


def _controllers(part: ET.Element, kept: Kept) -> None:
    """What stands in the controller, as C."""
    _add(part, "h3", "In the controller: C99, with its own check")
    folders = ", ".join(sorted({str(Path(file).parent) for c in kept.data["controllers"] for file in c["files"]}))
    _add(part, "p", f"{CONTROLLER_WORDS} The files lie in {folders}.")
    table = _add(_add(part, "div", class_="wide"), "table", class_="compared")
    _heads(table, CONTROLLER_HEADS)
    rows = _add(table, "tbody")
    for name, *cells in controller_rows(kept):
        line = _add(rows, "tr")
        _add(_add(line, "th", scope="row"), "code", name)
        for text, head in zip(cells, CONTROLLER_HEADS[1:], strict=True):
            _add(line, "td", text or "–", **{"data-head": head})


def _figure(part: ET.Element, path: Path, caption: str) -> None:
    figure = _add(part, "figure")
    data = base64.b64encode(path.read_bytes()).decode()
    _add(figure, "img", src=f"data:image/svg+xml;base64,{data}", alt=caption)
    _add(figure, "figcaption", caption)


def _heads(table: ET.Element, names: Iterable[str]) -> None:
    line = _add(_add(table, "thead"), "tr")
    for name in names:
        _add(line, "th", name, scope="col")


def _add(parent: ET.Element, tag: str, text: str = "", *, class_: str = "", **attributes: str) -> ET.Element:
    """A new element at the end of another, with a text."""
    element = ET.SubElement(parent, tag, attributes | ({"class": class_} if class_ else {}))
    element.text = text
    return element
