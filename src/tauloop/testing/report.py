"""Check of report parts."""

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

#: Width of a narrow terminal, characters.
TERMINAL_WIDTH = 80


def check_report_part(part: ReportPart, result: object) -> None:
    """Check a report part: its output is valid, and the part does not change the result.

    The output consists of text, JSON, a figure or None, and page pieces that can be written and
    read.

    Args:
        part: the part, as named by an entry point of the group `tauloop.parts`.
        result: a result for the part.

    Raises:
        ConformanceError: lists all violations.
    """
    problems = Problems()
    if not part.name.isidentifier():
        problems.add(
            "name",
            f"{part.name!r} is not an identifier",
            "use letters, digits and _, for keys and file names",
        )
    if part.takes not in {kind.__name__ for kind in type(result).__mro__}:
        problems.add(
            "takes",
            f"{part.takes!r} is not the class {type(result).__name__} of the result",
            "name the class of the result or a base class",
        )
    if any(part.name == other.name and part is not other for other in parts_of(result)):
        problems.add("name", f"another part is also named {part.name!r}", "choose another name")
    before = content(plain(result.as_dict())) if hasattr(result, "as_dict") else ""
    screen = Console(width=TERMINAL_WIDTH, file=StringIO(), markup=False)
    items: Iterable[object] = part.tables(result)
    for item in items:
        if not isinstance(item, str | Paragraph | Table):
            remedy = "yield `tauloop.display.Table`, `Paragraph` or strings"
            problems.add("tables", f"contain a {type(item).__name__}", remedy)
            continue
        screen.print(item)
    if not screen.file.getvalue().strip():  # type: ignore[attr-defined]
        problems.add("tables", "print nothing", "yield tables, paragraphs or strings")
    try:
        plain(part.data(result))
    except ValueError as error:
        problems.add("data", str(error), "return plain numbers, strings, lists and mappings")
    try:
        pieces_of(plain([tagged(piece) for piece in part.pieces(result)]), "pieces", problems)
    except (TypeError, ValueError, AttributeError) as error:
        problems.add(
            "pieces",
            str(error),
            "return pieces of `tauloop.display.pieces` with plain numbers and texts",
        )
    figure: object = part.figure(result)
    if not isinstance(figure, Figure | None):
        problems.add(
            "figure", f"is a {type(figure).__name__}", "return a Matplotlib Figure or None"
        )
    if before and content(plain(result.as_dict())) != before:  # type: ignore[attr-defined]
        problems.add("result", "was changed", "do not change the reported result")
    ConformanceError.raise_if_any(problems)
