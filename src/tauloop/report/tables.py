"""Tables of results for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich.table import Table
from rich.text import Text

from tauloop.result import Result

#: A head, alone or with a format.
Column = str | tuple[str, str]


def table(title: str, *columns: Column, rows: Iterable[Iterable[Any]] = ()) -> Table:
    """A table of some rows; more can be added to it.

    Args:
        title: heading.
        columns: heads; one with a format, such as ``("force", ".5g")``, is of numbers, which are never cut off.
        rows: cells: numbers in the format of their column, texts as they are, nothing for None.
    """
    result = Table(
        title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for column in columns:
        head, is_number = (column, False) if isinstance(column, str) else (column[0], True)
        result.add_column(head, justify="right" if is_number else "left", no_wrap=is_number)
    formats = ["" if isinstance(column, str) else column[1] for column in columns]
    for row in rows:
        result.add_row(*(_cell(value, form) for value, form in zip(row, formats, strict=True)))
    return result


def _cell(value: Any, form: str) -> str | Text:
    if isinstance(value, str | Text):
        return value
    return "" if value is None else format(value, form)


def doubts(result: Result) -> Iterator[Text]:
    """One line for each piece of evidence outside its limits."""
    for line in result.advice:
        yield Text(f"doubtful: {line}", style="yellow")
