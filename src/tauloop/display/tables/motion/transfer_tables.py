"""Tables of a transfer, in addition to the tables of a fastest motion: energy and distances."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.simulation.planned.transfers import Transfer


def transfer_tables(result: Transfer) -> Iterator[Printed]:
    """Yield distances from obstacles, the energy, and the distance from singularities."""
    rows = ((item.name, 1e3 * item.distance, 1e3 * item.time) for item in result.nearest)
    if result.nearest:
        yield table(
            "Smallest distances", "from", ("distance [mm]", ".3f"), ("time [ms]", ".1f"), rows=rows
        )
    losses = f"; losses in motors and friction: {result.energy:.4g} J" if result.energy else ""
    units = set(result.trajectory.stroke.model.output_ports("actuators")[1])
    travel_unit = "m" if units == {"N"} else "rad"
    wear = (
        f"; wear of the drives: equal to that of {result.wear:.4g} {travel_unit} at full force"
        if len(units) == 1 and result.wear
        else ""
    )
    yield f"minimized: {result.objective}{losses}{wear}"
    condition = f"{result.measure:.3g} (allowed: {result.allowed:.3g})"
    yield f"largest bound on the condition number: {condition}"
