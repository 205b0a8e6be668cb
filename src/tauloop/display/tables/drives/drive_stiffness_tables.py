"""Tables of identified drives."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.identification.drive_stiffness import DriveStiffness


def drive_stiffness_tables(result: DriveStiffness) -> Iterator[Printed]:
    """Yield stiffness, damping and inertia of each drive with their intervals."""
    unit_of = dict(zip(*result.model.output_ports("actuators"), strict=True))
    rows: list[tuple[str, str, float, float, float, str]] = []
    for drive in result.drives:
        is_rotary = unit_of[drive.actuator] == "N m"
        units = ("N m/rad", "N m s/rad", "kg m^2") if is_rotary else ("N/m", "N s/m", "kg")
        for name, unit in zip(("stiffness", "damping", "inertia"), units, strict=True):
            low, high = getattr(drive, f"{name}_interval")
            rows.append((drive.actuator, name, getattr(drive, name), low, high, unit))
    yield table(
        f"Drives of {result.model.mechanism.name}",
        "actuator",
        "quantity",
        ("value", ".4g"),
        ("from", ".4g"),
        ("to", ".4g"),
        "unit",
        rows=rows,
        note="intervals of 95 %",
    )
    for drive in result.drives:
        if drive.stated is not None:
            change = 100.0 * (drive.stiffness / drive.stated - 1.0)
            yield f"{drive.actuator}: {change:+.1f} % from the stiffness in the machine file"
    yield from doubts(result)
