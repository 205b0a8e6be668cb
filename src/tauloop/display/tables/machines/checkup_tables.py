"""Tables of a checkup: what is installed for Tauloop, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.verification import Checkup


def checkup_tables(health: Checkup) -> Iterator[Printed]:
    """Yield a line for each part that is installed, then missing parts and how to get them."""
    wide = max(len(part.name) for part in health.parts)
    for part in health.parts:
        if part.state:
            yield (f"{part.name:<{wide}}  {part.state}" + (f"  ({part.use})" if part.use else ""))
    if health.missing:
        yield ""
        yield Paragraph(text="Missing, and needed only for the stated use:", tone="strong")
    for part in health.missing:
        yield f"{part.name:<{wide}}  {part.use}"
        # copied whole
        yield Paragraph(text=f"{'':<{wide}}  $ {part.remedy}", tone="code")
    yield ""
    for item in health.diagnostics:
        yield Paragraph(text=str(item), tone="plain" if item.is_good else "doubtful")
