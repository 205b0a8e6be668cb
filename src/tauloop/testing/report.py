"""Checks of what is added to reports: parts that packages bring."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO

from matplotlib.figure import Figure
from rich.console import Console

from tauloop.common.errors import Problems
from tauloop.common.result import content, plain
from tauloop.display.page_records import tagged
from tauloop.display.parts import ReportPart, parts_of
from tauloop.display.pieces import Paragraph, Table
from tauloop.display.record_reading import pieces_of
from tauloop.testing.conformance import ConformanceError

#: Columns of a narrow terminal.
COLUMNS = 80


def check_report_part(part: ReportPart, result: object) -> None:
    """Check a part of reports: it takes the result and leaves it as it was, prints, and gives what it should.

    That is: JSON, a figure or none, and pieces of a page that can be written and read.

    Args:
        part: as an entry point of the group `tauloop.parts` names it.
        result: one that it takes.

    Raises:
        ConformanceError: all that is wrong.
    """
    problems = Problems()
    if not part.name.isidentifier():
        problems.add(
            "name",
            f"{part.name!r} is no word",
            "letters, digits and _: it is a key, and part of file names",
        )
    if part.takes not in {kind.__name__ for kind in type(result).__mro__}:
        problems.add(
            "takes",
            f"{part.takes!r} is not {type(result).__name__}",
            "name the class of the result",
        )
    if any(part.name == other.name and part is not other for other in parts_of(result)):
        problems.add(
            "name", f"{part.name!r} is that of another part", "choose another: that one comes first"
        )
    before = content(plain(result.as_dict())) if hasattr(result, "as_dict") else ""
    screen = Console(width=COLUMNS, file=StringIO(), markup=False)
    items: Iterable[object] = part.tables(result)
    for item in items:
        if not isinstance(item, str | Paragraph | Table):
            remedy = "yield `tauloop.display.Table`, `Paragraph` or texts"
            problems.add("tables", f"have a {type(item).__name__}", remedy)
            continue
        screen.print(item)
    if not screen.file.getvalue().strip():  # type: ignore[attr-defined]
        problems.add("tables", "print nothing", "yield tables, texts or lines")
    try:
        plain(part.data(result))
    except ValueError as error:
        problems.add("data", str(error), "give plain numbers, texts, lists and mappings")
    try:
        pieces_of(plain([tagged(piece) for piece in part.pieces(result)]), "pieces", problems)
    except (TypeError, ValueError, AttributeError) as error:
        problems.add(
            "pieces",
            str(error),
            "give pieces of `tauloop.display.pieces`, of plain numbers and texts",
        )
    figure: object = part.figure(result)
    if not isinstance(figure, Figure | None):
        problems.add(
            "figure", f"is a {type(figure).__name__}", "give a Figure of Matplotlib, or None"
        )
    if before and content(plain(result.as_dict())) != before:  # type: ignore[attr-defined]
        problems.add("result", "is another afterwards", "change nothing of what is reported")
    ConformanceError.raise_if_any(problems)
