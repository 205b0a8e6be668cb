"""The list of shipped machines."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.mechanism.shipped import MachineIndex


def index_tables(index: MachineIndex) -> Iterator[Printed]:
    """Yield a table with a row for each machine."""
    cells = (
        (
            machine.name,
            machine.bodies,
            machine.joints,
            machine.rods,
            machine.actuators,
            machine.summary,
        )
        for machine in index.machines
    )
    heads = ((head, "") for head in ("bodies", "joints", "rods", "motors"))
    yield table("Shipped machines", "name", *heads, "description", rows=cells, unbroken=(0,))
