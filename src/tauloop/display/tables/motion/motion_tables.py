"""Tables of a planned motion: duration, peaks, and fractions of the machine's limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.equations.ports import PLATFORM
from tauloop.motion.planning import PlannedMotion


def motion_tables(planned: PlannedMotion) -> Iterator[Printed]:
    """Yield duration, speeds, forces and limits."""
    trajectory = planned.trajectory
    stroke = trajectory.stroke
    units = stroke.functions.ports.velocity.units
    unit = "m/s" if stroke.functions.ports.name == PLATFORM.name and "m/s" in units else units[0]
    total = f" ({trajectory.total:.6g} s there and back)" if trajectory.returns else ""
    yield f"Stroke of {trajectory.duration:.6g} s{total}, law {planned.law}"
    yield f"peak speed {planned.peak_speed:.5g} {unit}, acceleration {planned.peak_acceleration:.5g} {unit}^2"
    rows = (
        (
            peak.actuator,
            peak.force,
            peak.limit if np.isfinite(peak.limit) else "-",
            peak.unit,
            peak.time,
        )
        for peak in planned.forces
    )
    yield table(
        "Peak forces",
        "actuator",
        ("force", ".5g"),
        ("limit", ".5g"),
        "unit",
        ("at [s]", ".4f"),
        rows=rows,
    )
    if planned.tightest_limit is not None:
        name, fraction = planned.tightest_limit
        yield f"{fraction:.1%} of the limit of {name}"
    yield f"worst condition number {stroke.condition:.3g} at {stroke.place(stroke.worst)}"
