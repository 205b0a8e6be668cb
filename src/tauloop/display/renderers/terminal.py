"""Output of paragraphs and tables in a terminal, with Rich."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import gt

from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

#: Rich styles by the tone of a paragraph.
STYLES = {
    "heading": "bold",
    "strong": "bold",
    "doubtful": "yellow",
    "passed": "green",
    "failed": "red",
}


def printed_paragraph(text: str, tone: str) -> RenderableType:
    """Return a paragraph for Rich; see `tauloop.display.Paragraph`."""
    printed = Text(text, style=STYLES.get(tone, ""))
    if tone == "code":  # lines stay whole, so that users can copy them
        printed.no_wrap, printed.overflow = True, "ignore"
    return printed


def printed_table(
    title: str,
    heads: Sequence[str],
    cells: Iterable[Sequence[str]],
    *,
    numeric: Sequence[bool],
    unbroken: Sequence[int],
    note: str,
) -> RenderableType:
    """Return a table for Rich; see `tauloop.display.Table`."""
    result = FittingTable(
        title=title,
        title_justify="left",
        caption=note or None,
        caption_justify="left",
        header_style="bold",
        show_header=any(heads),
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    for k, (head, is_number) in enumerate(
        zip(heads, numeric or (False,) * len(heads), strict=True)
    ):
        justify: JustifyMethod = "right" if is_number else "left"
        result.add_column(Text(head), justify=justify, no_wrap=k in unbroken)
    for row in cells:
        result.add_row(*map(Text, row))
    return result


class FittingTable(RichTable):
    """A table that never cuts names and numbers: it wraps texts, and becomes a list if too wide."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table if its longest words fit next to each other, otherwise a list."""
        gap = sum(self.padding[1::2])
        cells = [[column.header, *column.cells] for column in self.columns]
        widths, min_widths = [], []
        for column, texts in zip(self.columns, cells, strict=True):
            measured = [Measurement.get(console, options, text) for text in texts]
            widths.append(max(width.maximum for width in measured) + gap)
            longest_word = max(width.minimum for width in measured) + gap
            min_widths.append(widths[-1] if column.no_wrap else longest_word)
        if sum(min_widths) - gap > options.max_width:
            yield from self._list(console, options)
            return
        while sum(widths) > options.max_width and any(map(gt, widths, min_widths)):
            shrinkable = [i for i, width in enumerate(widths) if width > min_widths[i]]
            widths[max(shrinkable, key=widths.__getitem__)] -= 1
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width - gap
        title, self.title = self.title, None  # the title may be wider than the table
        if title:
            yield Text(str(title), style="table.title")
        try:
            yield from super().__rich_console__(console, options)
        finally:
            self.title = title

    def _list(self, console: Console, options: ConsoleOptions) -> Iterator[Text | RichTable]:
        """Yield blocks with the heads at the left and several rows side by side, if they fit."""
        if self.title:
            yield Text(str(self.title), style="table.title")
        heads = [
            Text(str(column.header).replace("\n", " "), style="bold") for column in self.columns
        ]
        rows = list(zip(*(column.cells for column in self.columns), strict=True))
        row_widths: list[int] = []
        for texts in rows:
            cell_widths = [Measurement.get(console, options, text).maximum for text in texts]
            row_widths.append(2 + max(cell_widths))
        available_width = options.max_width - max(head.cell_len for head in heads)
        while rows:
            count = max(sum(total <= available_width for total in accumulate(row_widths)), 1)
            cells = RichTable.grid(padding=(0, 2, 0, 0))
            cells.add_column(no_wrap=True)
            for _ in range(count):
                cells.add_column(justify="right" if count > 1 else "left", no_wrap=count > 1)
            for head, *row in zip(heads, *rows[:count], strict=True):
                if any(row):
                    cells.add_row(head, *row)
            yield cells
            yield Text()
            rows, row_widths = rows[count:], row_widths[count:]
