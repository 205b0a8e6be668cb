"""A conversion for the terminal: what is not as in the mechanism."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from tauloop.conversion import Conversion


def conversion_lines(conversion: Conversion) -> Iterator[Text]:
    """One line for each note."""
    for note in conversion.written.notes:
        yield Text(f"- {note}")
