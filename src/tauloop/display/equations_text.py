"""Written equations for the terminal: their text, in lines that are not broken."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tauloop.model import WrittenEquations


def equations_lines(written: WrittenEquations) -> Iterator[RenderableType]:
    """The text, and what makes it doubtful."""
    yield Text(written.text.rstrip("\n"), no_wrap=True, overflow="ignore")
    yield from written.advice
