"""What commands print of a result, from the tables that they print."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType


def printed(tables: Iterable[RenderableType]) -> str:
    """The text of tables, in lines of 160 characters."""
    console = Console(
        width=160, color_system=None, legacy_windows=False, file=io.StringIO(), record=True
    )
    console.print(*tables)
    return console.export_text()
