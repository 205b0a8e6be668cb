"""Notes of a conversion: differences from the mechanism."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.authoring import Conversion
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts


def conversion_tables(conversion: Conversion) -> Iterator[Printed]:
    """Yield a line for each note, and the reasons for doubt."""
    for note in conversion.written.notes:
        yield f"- {note}"
    yield from doubts(conversion)
