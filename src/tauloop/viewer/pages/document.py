"""HTML pages of results: one file without external content, with all names escaped.

The standard library builds and writes a tree of elements, and escapes all text. Data of plots are
in JSON scripts, in which no text can end the script early.
"""

from __future__ import annotations

import base64
import gzip
import json
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from functools import singledispatch
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tauloop.common.errors import EngineError, TauloopError
from tauloop.common.files import write_text
from tauloop.common.progress import Progress, Stages
from tauloop.common.records import dataclass
from tauloop.display.page_records import PageRecord
from tauloop.display.pieces import (
    KeyNumbers,
    MotionScene,
    Paragraph,
    Picture,
    Piece,
    Plot,
    Table,
)
from tauloop.viewer.pages.plotly_renderer import figure
from tauloop.viewer.pages.scenes import scene_page

#: Content security policy: a page and its frames cannot fetch content from outside.
CONTENT_POLICY = "default-src data: blob: 'unsafe-inline' 'unsafe-eval'"
#: Length of a cell, characters, above which a table shows its rows as blocks on a narrow screen.
LONG_CELL = 48
#: Number of characters in a line on a phone, including a gap of two after each column.
NARROW_SCREEN = 40
#: Headings of the reasons for doubt, and of the provenance of a section.
DOUBTS_HEADING = "Reasons for doubt"
PROVENANCE_HEADING = "Diagnostics, files, versions and options"
#: Text for a result without doubts.
NO_DOUBTS = "All diagnostics are within their limits."


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A task with its command.

    Attributes:
        title: the task.
        text: description of the task.
        command: command line for the task.
    """

    title: str
    text: str
    command: str


def write_page(
    path: str | Path,
    title: str,
    records: Sequence[PageRecord],
    introduction: Iterable[str] = (),
    cards: Iterable[Card] = (),
    progress: Progress | None = None,
) -> Path:
    """Write an HTML page, through a temporary file that is renamed at the end.

    Args:
        path: the file.
        title: heading; a page with a single record and no introduction has only the record's
            heading.
        records: records, one per section: the machine next to its key numbers and doubts, then
            plots, the other pieces in order, and folded diagnostics and provenance.
        introduction: paragraphs below the heading.
        cards: tasks, shown below the first machine.
        progress: function (completed pieces, all pieces).

    Returns:
        The path.

    Raises:
        EngineError: the page shows plots or a machine in motion, and plotly or viser is not
            installed.
        InputError: the folder cannot be written.
    """
    html = ET.Element("html", lang="en")
    head = add(html, "head")
    add(head, "meta", charset="utf-8")
    add(head, "meta", **{"http-equiv": "Content-Security-Policy", "content": CONTENT_POLICY})
    add(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    add(head, "title", title)
    add(head, "style", _resource("page.css"))
    body = add(html, "body")
    paragraphs = list(introduction)
    if len(records) != 1 or paragraphs:
        add(body, "h1", title)
    for text in paragraphs:
        add(body, "p", text)
    if len(records) > 1:
        links = add(add(body, "nav"), "ul")
        for number, record in enumerate(records):
            item = add(links, "li")
            add(item, "a", record.title, href=f"#{number}")
            add(item, "span", record.status, class_=f"status {record.status}")
    stages = Stages(progress, 1 + sum(len(record.pieces) for record in records))
    for number, record in enumerate(records):
        heading = "" if len(records) == 1 and paragraphs else record.title
        _section(body, record, str(number), stages, heading, () if number else cards)
    if any(isinstance(piece, Plot) for record in records for piece in record.pieces):
        add(body, "script", _compressed_plotly(), type="text/plain", id="plotly")
        add(body, "script", _resource("page.js"))
    written = write_text(
        path, "<!doctype html>\n" + ET.tostring(html, encoding="unicode", method="html") + "\n"
    )
    stages.done()
    return written


def _section(
    body: ET.Element,
    record: PageRecord,
    name: str,
    stages: Stages,
    title: str,
    cards: Iterable[Card],
) -> None:
    """Write a record: first screen, plots over time, other pieces, and the folded provenance."""
    section = add(body, "section", id=name)
    if title:
        heading = add(section, "h2", title)
        add(heading, "span", record.status, class_=f"status {record.status}")
    doubts = [piece for piece in record.pieces if _is_doubt(piece)]
    numbers = [piece for piece in record.pieces if isinstance(piece, KeyNumbers)]
    scenes = [piece for piece in record.pieces if isinstance(piece, MotionScene)]
    plots = [piece for piece in record.pieces if getattr(piece, "over_time", False)]
    placed_above = [*doubts, *numbers, *scenes, *plots]
    first_screen = add(section, "div", class_="bench" if scenes else "")
    if scenes:
        _add_pieces(add(first_screen, "div", class_="scenes"), stages.over(scenes))
    answers = add(first_screen, "div", class_="answers")
    _add_pieces(answers, stages.over(numbers))
    _write_doubts(answers, record, list(stages.over(doubts)))
    _write_cards(section, cards)
    if plots:
        _add_pieces(add(section, "div", class_="plots"), stages.over(plots))
    _add_pieces(section, stages.over(piece for piece in record.pieces if piece not in placed_above))
    if record.made:
        details = add(section, "details")
        add(details, "summary", PROVENANCE_HEADING)
        _add_pieces(add(details, "div", class_="made"), record.made)


def _is_doubt(piece: Piece) -> bool:
    return isinstance(piece, Paragraph) and piece.tone == "doubtful"


def _write_doubts(parent: ET.Element, record: PageRecord, doubts: Sequence[Piece]) -> None:
    """Write the reasons for doubt, or that all diagnostics are within their limits."""
    texts = [piece.text for piece in doubts if isinstance(piece, Paragraph)]
    lines = [text for text in texts if not text.startswith("status: ")]
    if lines:
        careful = add(parent, "div", class_="careful")
        add(careful, "h3", DOUBTS_HEADING)
        items = add(careful, "ul")
        for line in lines:
            add(items, "li", line.removeprefix("doubtful: "))
    elif record.status == "ok" and _has_passed(record):
        add(parent, "p", NO_DOUBTS, class_="fine")


def _has_passed(record: PageRecord) -> bool:
    """Return whether a listed diagnostic has limits and is within them."""
    tables = [piece for piece in record.made if isinstance(piece, Table)]
    return any(row[-1] == "good" for table in tables if table.cells for row in table.cells)


def _write_cards(parent: ET.Element, cards: Iterable[Card]) -> None:
    row: ET.Element | None = None
    for card in cards:
        row = add(parent, "div", class_="cards") if row is None else row
        box = add(row, "div", class_="card")
        add(box, "h3", card.title)
        add(box, "p", card.text)
        add(add(box, "pre"), "code", card.command)


def _add_pieces(parent: ET.Element, pieces: Iterable[Piece]) -> None:
    """Add pieces one after the other; adjacent plots share a row if there is room."""
    row: ET.Element | None = None
    for piece in pieces:
        if isinstance(piece, Plot) and parent.get("class") is None and parent.tag == "section":
            row = add(parent, "div", class_="plots") if row is None else row
            _element(piece, row)
        else:
            row = None
            _element(piece, parent)


@singledispatch
def _element(piece: Any, parent: ET.Element) -> None:
    """Add a piece to an element."""
    raise TypeError(f"{type(piece).__name__} is not a piece of a page")


@_element.register
def _paragraph(piece: Paragraph, parent: ET.Element) -> None:
    if piece.tone == "code":
        add(add(parent, "pre"), "code", piece.text)
    elif piece.tone == "heading":
        add(parent, "h3", piece.text)
    elif piece.tone == "item":
        items = parent[-1] if len(parent) and parent[-1].tag == "ul" else add(parent, "ul")
        add(items, "li", piece.text)
    elif not piece.text.startswith("status: "):  # the heading shows the status
        add(parent, "p", piece.text, class_=piece.tone if piece.tone != "plain" else "")


@_element.register
def _key_numbers(piece: KeyNumbers, parent: ET.Element) -> None:
    numbers = add(parent, "dl", class_="numbers")
    for name, value, remark in piece.rows:
        number = add(numbers, "div")
        add(number, "dt", name)
        add(number, "dd", value, class_="value")
        if remark:
            add(number, "dd", remark, class_="note")


@_element.register
def _table(piece: Table, parent: ET.Element) -> None:
    longest = max((len(text) for cells in piece.cells for text in cells), default=0)
    heads = [_in_one_line(head) for head in piece.heads]
    columns = zip(heads, *piece.cells, strict=True)
    width = sum(2 + _width(column) for column in columns)
    is_long = longest > LONG_CELL or width > NARROW_SCREEN
    parent = add(parent, "div", class_="table long" if is_long else "table")
    if piece.title:
        add(parent, "h3", piece.title)
    table = add(add(parent, "div", class_="wide"), "table")
    kinds = [
        "number" if is_number else "" for is_number in piece.numeric or [False] * len(piece.heads)
    ]
    line = add(add(table, "thead"), "tr")
    for head, kind in zip(heads, kinds, strict=True):
        add(line, "th", head, scope="col", class_=kind)
    rows = add(table, "tbody")
    for cells in piece.cells:
        line = add(rows, "tr")
        for text, kind, head in zip(cells, kinds, heads, strict=True):
            cell = add(line, "td", text, class_=kind, **{"data-head": head})
            if "\n" in text:  # two values, such as a paper's value above Tauloop's
                cell.text = ""
                for i, value in enumerate(text.split("\n")):
                    add(cell, "span", value, class_="lower" if i else "upper")
    if piece.note:
        add(parent, "p", piece.note, class_="note")


def _width(column: Iterable[str]) -> int:
    """Return the number of characters in the longest line of a column."""
    return max(len(line) for text in column for line in text.split("\n"))


def _in_one_line(head: str) -> str:
    """Return the head of a column without the line breaks for the terminal."""
    return " ".join(head.replace("-\n", "").split())


@_element.register
def _plot(piece: Plot, parent: ET.Element) -> None:
    frame = add(parent, "figure", class_="plot" + (" moving" if piece.over_time else ""))
    add(frame, "figcaption", piece.title)
    drawing = figure(piece)
    add(frame, "div", class_="drawing", style=f"height: {drawing['layout']['height']}px")
    add(frame, "script", _inside_script(drawing), type="application/json")
    if piece.note:
        add(frame, "p", piece.note, class_="note")


@_element.register
def _scene(piece: MotionScene, parent: ET.Element) -> None:
    frame = add(parent, "figure", class_="scene")
    add(frame, "figcaption", piece.title)
    try:
        page, picture = scene_page(piece)
    except EngineError:
        raise
    except TauloopError as error:
        for problem in error.problems:
            add(frame, "p", f"The machine cannot be shown: {problem}", class_="doubtful")
        return
    frame.set("data-from", f"{piece.time[0]:.9g}")
    frame.set("data-to", f"{piece.time[-1]:.9g}")
    add(frame, "iframe", srcdoc=page, sandbox="allow-scripts", title=piece.title)
    data = base64.b64encode(picture).decode()
    alt = f"{piece.title}: at {piece.time[0]:.4g}"
    add(frame, "img", class_="still", src=f"data:image/png;base64,{data}", alt=alt)
    add(frame, "p", piece.note, class_="note")


@_element.register
def _picture(piece: Picture, parent: ET.Element) -> None:
    frame = add(parent, "figure", class_="picture")
    data = base64.b64encode(piece.svg.encode()).decode()
    add(frame, "img", src=f"data:image/svg+xml;base64,{data}", alt=piece.caption)
    add(frame, "figcaption", piece.caption)


def _inside_script(data: Any) -> str:
    """Return data as JSON that can neither end a script nor start a comment in it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _compressed_plotly() -> str:
    """Return the code of plotly.js, compressed from 4.8 MB to 1.9 MB; browsers decompress it."""
    if find_spec("plotly") is None:
        raise EngineError.of("plotly", "is not installed", "pip install 'tauloop[report]'")
    code = files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(code, mtime=0)).decode()


def _resource(name: str) -> str:
    return files("tauloop.viewer.pages").joinpath(name).read_text(encoding="utf-8")


def add(
    parent: ET.Element, tag: str, text: str = "", *, class_: str = "", **attributes: str
) -> ET.Element:
    """Append a new element with a text to a parent element, and return the new element."""
    element = ET.SubElement(parent, tag, attributes | ({"class": class_} if class_ else {}))
    element.text = text
    return element
