"""Stiffness of a drive with locked motors, stated in the file or computed from its drive line."""

from __future__ import annotations

from tauloop.mechanism.drive_line import Connection, DriveLine
from tauloop.mechanism.expression import (
    ONE,
    ZERO,
    Constant,
    Expression,
    add,
    divide,
    multiply,
)
from tauloop.mechanism.model import Actuator

#: Stiffness of a rigid element.
_RIGID = Constant(float("inf"))


def drive_stiffness(actuator: Actuator) -> Expression | None:
    """Return the stiffness of an actuator with locked motors, seen at its position.

    In a drive line, compliances in series add up, and branches with a motor are parallel. A shaft
    of stiffness k that moves by a factor f per motion of the load has the stiffness f^2 k at the
    load (equal power on both sides). Backlash gaps are assumed closed.

    Returns:
        Stiffness in N/m or N m/rad; None if it is rigid: the file states no stiffness, or the drive
        line has no compliance.
    """
    if actuator.drive is None:
        return actuator.stiffness
    line = actuator.drive
    stiffness = _seen_from(line, line.performance.of, None, line.ratios())
    return None if stiffness == _RIGID else stiffness


def _seen_from(
    line: DriveLine, name: str, parent: Connection | None, ratios: dict[str, Expression]
) -> Expression:
    """Return the stiffness, seen at the load, of all branches of an inertia except its parent's."""
    if any(motor.on == name for motor in line.motors):
        return _RIGID
    total: Expression = ZERO
    for connection in line.connections:
        if connection is parent or name not in (connection.first, connection.second):
            continue
        other = connection.first if connection.second == name else connection.second
        branch = _seen_from(line, other, connection, ratios)
        if connection.compliance is not None:
            # the deflection of a connection is measured at its second inertia
            factor = ratios[connection.second]
            shaft_stiffness = multiply(factor, factor, connection.compliance.stiffness)
            branch = _in_series(shaft_stiffness, branch)
        if branch == _RIGID:
            return _RIGID
        total = add(total, branch)
    return total


def _in_series(first: Expression, second: Expression) -> Expression:
    """Return the stiffness of two springs in series."""
    if second == ZERO:
        return ZERO
    if second == _RIGID:
        return first
    return divide(ONE, add(divide(ONE, first), divide(ONE, second)))
