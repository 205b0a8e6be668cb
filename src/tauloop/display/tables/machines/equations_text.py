"""Text of written equations, whose lines are not wrapped."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.model import WrittenEquations


def equations_lines(written: WrittenEquations) -> Iterator[Printed]:
    """Yield the text, and the reasons for doubt."""
    yield Paragraph(text=written.text.rstrip("\n"), tone="code")
    yield from written.advice
