"""Drive lines of actuators as plain data of a machine file: sections in place, whatever file they came from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tauloop.mechanism import units
from tauloop.mechanism.drive_line import (
    Connection,
    Control,
    DriveLine,
    DualDrive,
    ElasticBacklash,
    ExactBacklash,
    LineInertia,
    LuGre,
    Pid,
    SingleDrive,
)
from tauloop.mechanism.drive_reader import FILTER
from tauloop.mechanism.expression import ONE, Call, Constant, Expression, divide
from tauloop.mechanism.units import Dimension

Text = Callable[[Expression, Dimension], str]
_TURN = Constant(2 * math.pi)
#: Dimension of each key, of what slides and of what turns.
_DIMENSIONS = {
    "viscous": (units.DAMPING, units.ANGULAR_DAMPING),
    "damping": (units.DAMPING, units.ANGULAR_DAMPING),
    "coulomb": (units.FORCE, units.TORQUE),
    "static": (units.FORCE, units.TORQUE),
    "torque": (units.FORCE, units.TORQUE),
    "preload": (units.FORCE, units.TORQUE),
    "stribeck": (units.SPEED, units.ANGULAR_SPEED),
    "rated_speed": (units.SPEED, units.ANGULAR_SPEED),
    "speed": (units.SPEED, units.ANGULAR_SPEED),
    "stiffness": (units.STIFFNESS, units.ANGULAR_STIFFNESS),
    "gap": (units.LENGTH, units.ANGLE),
    "resolution": (units.LENGTH, units.ANGLE),
    "integral_time": (units.TIME, units.TIME),
    "derivative_time": (units.TIME, units.TIME),
    "tracking_time": (units.TIME, units.TIME),
    "sample_time": (units.TIME, units.TIME),
}


def drive_data(line: DriveLine, text: Text) -> dict[str, Any]:
    """The sections of a drive line.

    Args:
        line: on an actuator.
        text: writes an expression of a dimension.
    """
    turns = {inertia.name: inertia.turns for inertia in line.inertias}
    load = line.performance.of
    written: dict[str, Any] = {"load": load}
    written["inertias"] = {item.name: _inertia(item, text) for item in line.inertias if item.name != load}
    if line.connections:
        written["connections"] = {item.name: _connection(item, turns, text) for item in line.connections}
    written["motors"] = {
        item.name: {"on": item.on} | _values(item, ("torque", "rated_speed", "speed"), turns[item.on], text)
        for item in line.motors
    }
    written["encoders"] = {
        item.name: {"on": item.on} | _values(item, ("resolution",), turns[item.on], text) for item in line.encoders
    }
    slave = line.control.drive.slave if isinstance(line.control.drive, DualDrive) else None
    on = next((motor.on for motor in line.motors if motor.name == slave), None)
    return written | {"control": _control(line.control, on is not None and turns[on], text)}


def _values(item: object, keys: tuple[str, ...], turns: bool, text: Text) -> dict[str, str]:
    """The values that are there; figures without a dimension of their own are plain."""
    found = {}
    for key in keys:
        expression = getattr(item, key)
        if expression is not None:
            found[key] = text(expression, _DIMENSIONS.get(key, (units.ONE, units.ONE))[turns])
    return found


def _inertia(inertia: LineInertia, text: Text) -> dict[str, Any]:
    kind, dimension = ("inertia", units.INERTIA) if inertia.turns else ("mass", units.MASS)
    written: dict[str, Any] = {kind: text(inertia.value, dimension)}
    law = inertia.friction
    if isinstance(law, LuGre):
        keys = ("stiffness", "damping", "viscous", "coulomb", "static", "stribeck")
        written["lugre"] = _values(law, keys, inertia.turns, text)
    elif law is not None:
        written["friction"] = _values(law, ("viscous", "coulomb", "static", "stribeck"), inertia.turns, text)
    return written


def _connection(item: Connection, turns: dict[str, bool], text: Text) -> dict[str, Any]:
    written: dict[str, Any] = {"first": item.first, "second": item.second}
    ratio = item.ratio
    if turns[item.first] and not turns[item.second]:
        if isinstance(ratio, Call) and ratio.operation == "/" and ratio.arguments[1] == _TURN:
            written["ball_screw"] = text(ratio.arguments[0], units.LENGTH)
        else:
            written["rack_and_pinion"] = text(ratio, units.LENGTH)
    elif ratio != ONE:
        is_quotient = isinstance(ratio, Call) and ratio.operation == "/" and ratio.arguments[0] == ONE
        reduction = ratio.arguments[1] if is_quotient and isinstance(ratio, Call) else divide(ONE, ratio)
        written["gear"] = text(reduction, units.ONE)
    law = item.compliance
    if law is None:
        return written | {"rigid": "yes"}
    key = "exact_backlash" if isinstance(law, ExactBacklash) else "shaft"
    key = "backlash" if isinstance(law, ElasticBacklash) else key
    keys = ("stiffness", "damping") if key == "shaft" else ("gap", "stiffness", "damping")
    return written | {key: _values(law, keys, turns[item.second], text)}


def _pid(law: Pid, encoder: str, text: Text) -> dict[str, Any]:
    keys = ("gain", "integral_time", "derivative_time", "filter", "limit", "tracking_time")
    found = _values(law, keys, False, text)
    if law.filter == Constant(FILTER):
        del found["filter"]
    return {"encoder": encoder} | found


def _control(control: Control, turns: bool, text: Text) -> dict[str, Any]:
    written: dict[str, Any] = {"position": _pid(control.position, control.encoder, text)}
    if control.speed is not None and control.speed_encoder is not None:
        written["speed"] = _pid(control.speed, control.speed_encoder, text)
    drive = control.drive
    if isinstance(drive, SingleDrive):
        written["motor"] = drive.motor
    else:
        keys = ("torque_share", "preload", "feed_forward_share", "switch_min", "switch_max")
        written["dual"] = {"master": drive.master, "slave": drive.slave} | _values(drive, keys, turns, text)
    return written | _values(control, ("sample_time",), False, text)
