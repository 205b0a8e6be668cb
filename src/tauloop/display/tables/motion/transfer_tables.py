"""Tables of a free motion, in addition to those of a fastest motion: energy and distances."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.simulation.planned.transfers import Transfer


def transfer_tables(result: Transfer) -> Iterator[Printed]:
    """Yield the energy, and distances from obstacles and singularities."""
    rows = ((item.name, 1e3 * item.distance, 1e3 * item.time) for item in result.nearest)
    if result.nearest:
        yield table(
            "Least distances", "from", ("distance [mm]", ".3f"), ("time [ms]", ".1f"), rows=rows
        )
    lost = f"; {result.energy:.4g} J are lost in motors and friction" if result.energy else ""
    units = set(result.trajectory.stroke.model.output_ports("actuators")[1])
    travel = "m" if units == {"N"} else "rad"
    worn = (
        f"; drives wear like {result.wear:.4g} {travel} at full force"
        if len(units) == 1 and result.wear
        else ""
    )
    yield f"least {result.objective}{lost}{worn}"
    yield f"bound of the condition number at most {result.measure:.3g}, allowed {result.allowed:.3g}"
