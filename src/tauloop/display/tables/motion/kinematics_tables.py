"""Tables of poses and Jacobians."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.equations.ports import Port
from tauloop.kinematics.named_kinematics import Jacobian, Poses


def poses_tables(poses: Poses) -> Iterator[Printed]:
    """Yield a table for each pose: actuators, platform, other coordinates, tool and outputs."""
    listed = {*poses.actuator_port.columns, *poses.platform_port.columns}
    others = [k for k, name in enumerate(poses.coordinates) if name not in listed]
    joints = Port(
        name="joints",
        columns=tuple(poses.coordinates[k] for k in others),
        units=tuple(poses.units[k] for k in others),
    )
    orientation = poses.tool_rotation_vector
    if not len(poses.q):
        yield "The loops do not close at this position."
    for i, beyond in enumerate(poses.beyond):
        title = (
            poses.machine
            if len(poses.q) == 1
            else f"{poses.machine}, pose {i + 1} of {len(poses.q)}"
        )
        rows = []
        for port, values in (
            (poses.actuator_port, poses.actuator_position[i]),
            (poses.platform_port, poses.platform_position[i]),
            (joints, poses.q[i, others]),
            (_TOOL, poses.tool[i]),
            (_ORIENTATION, orientation[i]),
            (poses.output_port, poses.output_values[i]),
        ):
            for name, unit, value in zip(port.columns, port.units, values, strict=True):
                rows.append((name, *_shown(float(value), unit)))
        yield table(title, "position", ("value", ""), "unit", rows=rows)
        yield from (f"beyond a stop: {item}" for item in beyond)
    if poses.resting:
        yield f"at rest under gravity and springs: {', '.join(poses.resting)}"
    if poses.at_stops:
        yield f"pressed against a stop: {', '.join(poses.at_stops)}"
    yield from doubts(poses)


def jacobian_tables(jacobian: Jacobian) -> Iterator[Printed]:
    """Yield the matrix with its names and units."""
    heads = [
        (f"{name}\n{unit}", ".6g")
        for name, unit in zip(jacobian.columns.columns, jacobian.columns.units, strict=True)
    ]
    labeled_rows = zip(
        jacobian.rows.columns, jacobian.rows.units, np.round(jacobian.matrix, 12) + 0.0, strict=True
    )
    title = f"Jacobian of {jacobian.machine}: rows {jacobian.rows.name}, columns {jacobian.columns.name}"
    yield table(
        title,
        "",
        "unit",
        *heads,
        rows=((name, unit, *values) for name, unit, values in labeled_rows),
    )
    yield from (str(item) for item in jacobian.diagnostics)


_TOOL = Port(name="tool", columns=("tool x", "tool y", "tool z"), units=("m",) * 3)
_ORIENTATION = Port(
    name="orientation", columns=("tool rx", "tool ry", "tool rz"), units=("rad",) * 3
)


def _shown(value: float, unit: str) -> tuple[str, str]:
    """Return a value and its unit, angles in degrees."""
    if unit == "rad":
        value, unit = float(np.degrees(value)), "deg"
    return f"{round(value, 6) + 0.0:.6f}", "" if unit == "1" else unit
