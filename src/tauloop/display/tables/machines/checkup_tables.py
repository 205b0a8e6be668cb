"""What a computer has for Tauloop, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.verification import Checkup


def checkup_tables(health: Checkup) -> Iterator[Printed]:
    """What is there, a line each, then what is missing and how to get it."""
    wide = max(len(part.name) for part in health.parts)
    for part in health.parts:
        if part.state:
            yield (f"{part.name:<{wide}}  {part.state}" + (f"  ({part.use})" if part.use else ""))
    if health.missing:
        yield ""
        yield Paragraph(text="Missing, and needed only for the use that is named:", tone="strong")
    for part in health.missing:
        yield f"{part.name:<{wide}}  {part.use}"
        # copied whole
        yield Paragraph(text=f"{'':<{wide}}  $ {part.remedy}", tone="code")
    yield ""
    for item in health.diagnostics:
        yield Paragraph(text=str(item), tone="plain" if item.is_good else "doubtful")
