"""Drive lines of actuators as plain data of a machine file, with all their sections."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tauloop.formats.writing.expression_writer import keys_of
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import Shape
from tauloop.mechanism.description.drives.drive_grammar import (
    CONNECTION,
    CONTROL,
    DUAL,
    ENCODER,
    FRICTION,
    LUGRE,
    MOTOR,
)
from tauloop.mechanism.description.drives.drive_reader import FILTER
from tauloop.mechanism.description.units import Dimension
from tauloop.mechanism.drive_line import (
    Connection,
    Control,
    DriveLine,
    DualDrive,
    ElasticBacklash,
    ExactBacklash,
    LineInertia,
    LuGre,
    SingleDrive,
)
from tauloop.mechanism.expression import ONE, Call, Constant, Expression, divide

Text = Callable[[Expression, Dimension], str]
_TURN = Constant(2 * math.pi)


def drive_data(line: DriveLine, text: Text) -> dict[str, Any]:
    """Return the sections of a drive line.

    Args:
        line: drive line of an actuator.
        text: function (expression, dimension) -> text.
    """
    is_rotary = {inertia.name: inertia.is_rotary for inertia in line.inertias}
    load = line.performance.of
    data: dict[str, Any] = {"load": load}
    data["inertias"] = {
        item.name: _inertia(item, text) for item in line.inertias if item.name != load
    }
    if line.connections:
        data["connections"] = {
            item.name: _connection(item, is_rotary, text) for item in line.connections
        }
    data["motors"] = {
        item.name: keys_of(MOTOR, item, is_rotary[item.on], text) for item in line.motors
    }
    data["encoders"] = {
        item.name: keys_of(ENCODER, item, is_rotary[item.on], text) for item in line.encoders
    }
    slave = line.control.drive.slave if isinstance(line.control.drive, DualDrive) else None
    on = next((motor.on for motor in line.motors if motor.name == slave), None)
    return data | {"control": _control(line.control, on is not None and is_rotary[on], text)}


def _inertia(inertia: LineInertia, text: Text) -> dict[str, Any]:
    """Return the keys of an inertia of a drive line."""
    kind, dimension = ("inertia", units.INERTIA) if inertia.is_rotary else ("mass", units.MASS)
    data: dict[str, Any] = {kind: text(inertia.value, dimension)}
    law = inertia.friction
    if law is not None:
        key, shape = ("lugre", LUGRE) if isinstance(law, LuGre) else ("friction", FRICTION)
        data[key] = keys_of(shape, law, inertia.is_rotary, text)
    return data


def _connection(item: Connection, is_rotary: dict[str, bool], text: Text) -> dict[str, Any]:
    """Return the keys of a connection of two inertias, with its ratio and compliance."""
    data: dict[str, Any] = {"first": item.first, "second": item.second}
    ratio = item.ratio
    if is_rotary[item.first] and not is_rotary[item.second]:
        if isinstance(ratio, Call) and ratio.operation == "/" and ratio.arguments[1] == _TURN:
            data["ball_screw"] = text(ratio.arguments[0], units.LENGTH)
        else:
            data["rack_and_pinion"] = text(ratio, units.LENGTH)
    elif ratio != ONE:
        is_quotient = (
            isinstance(ratio, Call) and ratio.operation == "/" and ratio.arguments[0] == ONE
        )
        reduction = (
            ratio.arguments[1] if is_quotient and isinstance(ratio, Call) else divide(ONE, ratio)
        )
        data["gear"] = text(reduction, units.ONE)
    law = item.compliance
    if law is None:
        return data | {"rigid": "yes"}
    key = "exact_backlash" if isinstance(law, ExactBacklash) else "shaft"
    key = "backlash" if isinstance(law, ElasticBacklash) else key
    shape = next(part.kind for part in CONNECTION.fields if part.name == key)
    assert isinstance(shape, Shape)
    return data | {key: keys_of(shape, law, is_rotary[item.second], text)}


def _control(control: Control, is_rotary: bool, text: Text) -> dict[str, Any]:
    """Return the keys of the control; default filters are omitted."""
    data = keys_of(CONTROL, control, is_rotary, text)
    for key, encoder, law in (
        ("position", control.encoder, control.position),
        ("speed", control.speed_encoder, control.speed),
    ):
        if law is not None:
            data[key] = {"encoder": encoder} | data[key]
            if law.filter == Constant(FILTER):
                del data[key]["filter"]
    drive = control.drive
    if isinstance(drive, SingleDrive):
        return data | {"motor": drive.motor}
    return data | {"dual": keys_of(DUAL, drive, is_rotary, text)}
