"""Written equations, in lines that are not broken."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.model import WrittenEquations


def equations_lines(written: WrittenEquations) -> Iterator[Printed]:
    """Yield the text, and what makes it doubtful."""
    yield Paragraph(text=written.text.rstrip("\n"), tone="code")
    yield from written.advice
