"""Tables of a drive line's fitted parameters."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.drives import FittedPlant


def plant_tables(plant: FittedPlant) -> Iterator[Printed]:
    """Yield parameters before and after, criteria, and undetermined parameters."""
    units = plant.units
    parameter_rows = (
        (name, plant.before[name], value, units.get(name, ""))
        for name, value in plant.fit.values.items()
    )
    yield table(
        f"{plant.drive_line}: parameters",
        "",
        ("before", ".6g"),
        ("fitted", ".6g"),
        "unit",
        rows=parameter_rows,
    )
    rows = (
        (
            *(step, name.replace("_", " "), measured, computed),
            units.get(name) or "1",
            *(computed / measured - 1.0 if measured else None, "held out" if held_out else ""),
        )
        for step, name, measured, computed, held_out in plant.fit.rows
    )
    heads = (("measured", ".5g"), ("fitted", ".5g"), "unit", ("error", "+.2%"))
    yield table("Criteria", "step", "criterion", *heads, "", rows=rows)
    yield counted(plant.fit.evaluations, "simulation")
    for finding in plant.findings:
        yield f"note: {finding}"
    yield from doubts(plant)
