"""What a computer has for Tauloop, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from tauloop.verification import Checkup


def health_lines(health: Checkup) -> Iterator[RenderableType]:
    """What is there, a line each, then what is missing and how to get it."""
    wide = max(len(part.name) for part in health.parts)
    for part in health.parts:
        if part.state:
            yield Text(
                f"{part.name:<{wide}}  {part.state}" + (f"  ({part.use})" if part.use else "")
            )
    if health.missing:
        yield Text("\nMissing, and needed only for what is said:", style="bold")
    for part in health.missing:
        yield Text(f"{part.name:<{wide}}  {part.use}")
        # copied whole
        yield Text(f"{'':<{wide}}  $ {part.remedy}", no_wrap=True, overflow="ignore")
    yield Text("")
    for item in health.diagnostics:
        yield Text(str(item), style="" if item.is_good else "yellow")
