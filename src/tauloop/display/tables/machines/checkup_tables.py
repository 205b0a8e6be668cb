"""Lines of a checkup: installed and missing parts of the environment."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.verification import Checkup


def checkup_tables(health: Checkup) -> Iterator[Printed]:
    """Yield a line for each installed part, then missing parts with commands to install them."""
    width = max(len(part.name) for part in health.parts)
    for part in health.parts:
        if part.state:
            yield (f"{part.name:<{width}}  {part.state}" + (f"  ({part.use})" if part.use else ""))
    if health.missing:
        yield ""
        yield Paragraph(text="Missing, and needed only for the stated use:", tone="strong")
    for part in health.missing:
        yield f"{part.name:<{width}}  {part.use}"
        # Code is not wrapped, so that users can copy the command.
        yield Paragraph(text=f"{'':<{width}}  $ {part.remedy}", tone="code")
    yield ""
    for item in health.diagnostics:
        yield Paragraph(text=str(item), tone="plain" if item.is_good else "doubtful")
