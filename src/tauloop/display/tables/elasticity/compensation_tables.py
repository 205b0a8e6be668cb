"""Tables of corrected motor positions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.elasticity.compensation.compensate import CompensatedPoses
from tauloop.elasticity.compensation.lookup_table import CompensationTable
from tauloop.elasticity.static_analysis.stiffness import DIRECTIONS
from tauloop.equations.ports import motor_port

#: Units of small displacements (translation and rotation vector) in the table.
DISPLACEMENT_UNITS = ("um",) * 3 + ("urad",) * 3


def compensated_tables(result: CompensatedPoses) -> Iterator[Printed]:
    """Yield motor positions and tool errors at the sample with the largest displacement."""
    count = len(result.tool)
    worst = int(np.argmax(np.linalg.norm((result.deflection + result.heat)[:, :3], axis=1)))
    name = result.model.mechanism.name
    if count > 1:
        name = f"{name}, sample {worst + 1} of {count} (the largest displacement)"
    motors = motor_port(result.model.assembly, "position", "rad", "m")
    rows: list[tuple[object, ...]] = []
    for k, (motor, unit) in enumerate(zip(motors.columns, motors.units, strict=True)):
        rigid, corrected = result.rigid_actuators[worst, k], result.actuators[worst, k]
        change = 1e6 * result.correction[worst, k]
        rows.append((motor, unit, rigid, corrected, change, f"u{unit}"))
    heads = (("rigid", ".9g"), ("corrected", ".9g"), ("correction", ".4g"))
    yield table(f"Motor positions of {name}", "motor", "unit", *heads, "unit", rows=rows)
    parts = np.stack(
        [result.deflection[worst], result.heat[worst], result.remaining[worst]], axis=-1
    )
    displacements = [
        (direction, DISPLACEMENT_UNITS[k], *(1e6 * parts[k]).tolist())
        for k, direction in enumerate(DIRECTIONS)
    ]
    heads = (("by loads", ".4g"), ("by heat", ".4g"), ("remaining", ".4g"))
    note = f"neglected second-order part: about {1e9 * result.second_order.max():.3g} nm"
    yield table("Tool", "direction", "unit", *heads, rows=displacements, note=note)
    yield from (f"note: {text}" for text in result.notes)
    yield from doubts(result)


def lookup_tables(result: CompensationTable) -> Iterator[Printed]:
    """Yield the grid of a table of corrections and its interpolation error."""
    rows = [
        (name, float(axis[0]), float(axis[-1]), str(len(axis)))
        for name, axis in zip(result.axes, result.grid, strict=True)
    ]
    error = 1e6 * result.interpolation_error
    yield table(
        f"Corrections of {result.model.mechanism.name} over poses",
        "position",
        ("from", ".4g"),
        ("to", ".4g"),
        "points",
        rows=rows,
        note=f"largest error of the tool at the grid's midpoints, under the largest loads: {error:.3g} um",
    )
    yield from doubts(result)
