"""Tables of results for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import gt
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tauloop.common.result import Result

#: A head, alone or with a format.
Column = str | tuple[str, str]


class FittingTable(Table):
    """A table that cuts no name and no number: texts wrap between words, and what is still too wide is a list."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table where its longest words stand side by side; else rows upright, after their heads."""
        gap = sum(self.padding[1::2])
        cells = [[column.header, *column.cells] for column in self.columns]
        sizes = [[Measurement.get(console, options, cell) for cell in column] for column in cells]
        widths = [max(size.maximum for size in column) + gap for column in sizes]
        least = [
            width if column.no_wrap else max(size.minimum for size in each) + gap
            for column, each, width in zip(self.columns, sizes, widths, strict=True)
        ]
        if sum(least) - gap > options.max_width:
            yield from self._list(console, options)
            return
        while sum(widths) > options.max_width and any(map(gt, widths, least)):
            widest = max(
                (i for i, width in enumerate(widths) if width > least[i]), key=widths.__getitem__
            )
            widths[widest] -= 1
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width - gap
        title, self.title = self.title, None  # it may be wider than the table
        if title:
            yield Text(str(title), style="table.title")
        try:
            yield from super().__rich_console__(console, options)
        finally:
            self.title = title

    def _list(self, console: Console, options: ConsoleOptions) -> Iterator[Text | Table]:
        """Blocks with the heads on the left and as many rows upright beside each other as there is room for."""
        if self.title:
            yield Text(str(self.title), style="table.title")
        heads = [
            Text(str(column.header).replace("\n", " "), style="bold") for column in self.columns
        ]
        rows = list(zip(*(column.cells for column in self.columns), strict=True))
        widths = [
            2 + max(Measurement.get(console, options, cell).maximum for cell in row) for row in rows
        ]
        left = options.max_width - max(head.cell_len for head in heads)
        while rows:
            count = max(sum(total <= left for total in accumulate(widths)), 1)
            cells = Table.grid(padding=(0, 2, 0, 0))
            cells.add_column(no_wrap=True)
            for _ in range(count):
                cells.add_column(justify="right" if count > 1 else "left", no_wrap=count > 1)
            for head, *row in zip(heads, *rows[:count], strict=True):
                if any(row):
                    cells.add_row(head, *row)
            yield cells
            yield Text()
            rows, widths = rows[count:], widths[count:]


def table(title: str, *columns: Column, rows: Iterable[Iterable[Any]] = ()) -> Table:
    """A table of some rows; more can be added to it.

    Args:
        title: heading.
        columns: heads; one with a format, such as ``("force", ".5g")``, is of numbers, which are
            never cut off.
        rows: cells: numbers in the format of their column, texts as they are, nothing for None.
    """
    result = FittingTable(
        title=title,
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
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
    """One line for each diagnostic outside its limits."""
    for line in result.advice:
        yield Text(f"doubtful: {line}", style="yellow")
