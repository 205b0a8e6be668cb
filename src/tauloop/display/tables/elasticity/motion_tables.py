"""Tables of the motion of elastic machines."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.simulation.elastic.result import ElasticSimulation


def motion_tables(result: ElasticSimulation) -> Iterator[Printed]:
    """Yield deflection, vibration after the motion, and the largest forces of links and drives."""
    micro = 1e6
    rows: list[tuple[str, float, str]] = [
        ("largest deflection", micro * result.largest_deflection, "um"),
        ("vibration after the motion", micro * result.residual_vibration, "um"),
    ]
    settled = result.settling_time
    if settled is not None:
        rows.append(("settling time", 1e3 * settled, "ms"))
    yield table(
        f"Deformation of {result.model.mechanism.name} in motion",
        "tool",
        ("value", ".4g"),
        "unit",
        rows=rows,
        note=f"{result.time[-1]:.4g} s in {counted(result.steps, 'step')}, {counted(result.poses, 'pose')}",
    )
    if settled is None and result.options.settling_band is not None:
        yield "the tool has not settled by the end: simulate for longer"
    forces = [*zip(result.beams, result.axial.T, strict=True)]
    forces += zip(result.drives, result.drive_force.T, strict=True)
    loads = [(name, force.max(), force.min()) for name, force in forces]
    if loads:
        yield table(
            "Forces of links (tension is positive) and drives",
            "part",
            ("largest [N, N m]", ".4g"),
            ("smallest [N, N m]", ".4g"),
            rows=[(name, float(high), float(low)) for name, high, low in loads],
        )
    if result.motors:
        yield table(
            "Controlled motors",
            "motor",
            ("largest force [N, N m]", ".4g"),
            ("largest following error [m, rad]", ".3e"),
            rows=[
                (name, float(np.abs(force).max()), result.largest_following_error[name])
                for name, force in zip(result.motors, result.motor_force.T, strict=True)
            ],
        )
    lowest = ", ".join(f"{value:.4g}" for value in np.asarray(result.frequency[:3]))
    yield f"lowest frequencies at the start: {lowest} Hz"
    yield from result.notes
    yield from doubts(result)
