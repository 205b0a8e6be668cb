"""The tables of a workspace for the terminal: poses by reason, and what excludes them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from tauloop.kinematics.workspace_map import Reason, Workspace
from tauloop.report.tables import table

#: Elements that are listed.
MOST = 10


def workspace_tables(found: Workspace) -> Iterator[RenderableType]:
    """How many poses are usable, why others are not, and the size of what hangs together."""
    sizes = " x ".join(f"{len(axis)} {name}" for name, axis in found.axes.items())
    title = f"Workspace of {found.provenance.inputs['machine']}: {sizes}"
    rows = table(title, "pose", "number", "share", numeric=(1, 2))
    for reason in Reason:
        count = int((found.reason == reason).sum())
        rows.add_row(reason.text, str(count), f"{count / found.reason.size:.1%}")
    yield rows
    blamed = table("What excludes poses", "element", "poses", numeric=(1,))
    for name, count in list(found.excluded_by().items())[:MOST]:
        blamed.add_row(name, str(count))
    yield blamed
    size, unit = found.size
    yield f"usable and connected with the reference pose: {size:.4g} {unit}"
    yield from found.advice
