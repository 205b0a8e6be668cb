"""Tables of results for the terminal."""

from __future__ import annotations

from rich.table import Table


def table(title: str, *columns: str, numeric: tuple[int, ...] = ()) -> Table:
    """An empty table; the columns with the given indices hold numbers, which are never cut off."""
    result = Table(
        title=title, title_justify="left", header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0)
    )
    for i, column in enumerate(columns):
        result.add_column(column, justify="right" if i in numeric else "left", no_wrap=i in numeric)
    return result
