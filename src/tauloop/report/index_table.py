"""The list of shipped machines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from tauloop.mechanism.index import MachineIndex
from tauloop.report.tables import table


def index_tables(index: MachineIndex) -> Iterator[RenderableType]:
    """One row for each machine."""
    rows = table("Shipped machines", "name", "bodies", "joints", "rods", "motors", "what it is", numeric=(1, 2, 3, 4))
    rows.columns[0].no_wrap = True
    for machine in index.machines:
        counts = (machine.bodies, machine.joints, machine.rods, machine.actuators)
        rows.add_row(machine.name, *map(str, counts), machine.summary)
    yield rows
