"""Functions that build tables and paragraphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tauloop.common.result import Result, Status
from tauloop.display.pieces import Paragraph, Table

#: A head, alone or with a format.
Column = str | tuple[str, str]


def table(
    title: str,
    *columns: Column,
    rows: Iterable[Iterable[Any]] = (),
    note: str = "",
    unbroken: tuple[int, ...] = (),
) -> Table:
    """Return a table.

    Args:
        title: heading.
        columns: heads; a head with a format, such as ``("force", ".5g")``, is of a column of
            numbers, which are aligned to the right and never broken.
        rows: cells: numbers in the format of their column, texts as they are, nothing for None.
        note: below the table.
        unbroken: numbers of further columns whose cells are never broken into several lines.
    """
    heads = [(column, "") if isinstance(column, str) else column for column in columns]
    formats = [form for _, form in heads]
    cells = []
    for row in rows:
        pairs = zip(row, formats, strict=True)
        cells.append(tuple(_cell(value, form) for value, form in pairs))
    return Table(
        title=title,
        heads=tuple(head for head, _ in heads),
        cells=tuple(cells),
        numeric=tuple(not isinstance(column, str) for column in columns),
        unbroken=unbroken,
        note=note,
    )


def _cell(value: Any, form: str) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else format(value, form)


def paragraphs(lines: Iterable[object], tone: str = "plain") -> Iterator[Paragraph]:
    """Yield a paragraph for each line."""
    for line in lines:
        yield Paragraph(text=str(line), tone=tone)


def status_line(result: Result) -> Paragraph:
    """Return the status of a result."""
    tone = "passed" if result.status is Status.OK else "doubtful"
    return Paragraph(text=f"status: {result.status.value}", tone=tone)


def doubts(result: Result) -> Iterator[Paragraph]:
    """Yield a line for each diagnostic outside its limits."""
    yield from paragraphs((f"doubtful: {line}" for line in result.advice), "doubtful")
