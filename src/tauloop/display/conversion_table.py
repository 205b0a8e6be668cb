"""A conversion for the terminal: what is not as in the mechanism."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from tauloop.authoring import Conversion
from tauloop.display.tables import doubts


def conversion_lines(conversion: Conversion) -> Iterator[Text]:
    """Yield a line for each note, and what makes the conversion doubtful."""
    for note in conversion.written.notes:
        yield Text(f"- {note}")
    yield from doubts(conversion)
