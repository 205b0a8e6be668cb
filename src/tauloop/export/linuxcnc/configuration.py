"""A headless simulation for LinuxCNC: INI file, HAL files, tool table and G-code."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence

from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import comment
from tauloop.export.linuxcnc.machine import MachineJoint, MachineLayout, Pin, WorldAxis

#: Maximum speed of linear axes, mm/s.
LINEAR_AXIS_SPEED = 500.0
#: Maximum speed of angular axes, deg/s.
ANGULAR_AXIS_SPEED = 90.0
#: Maximum speed of linear joints for which the machine file gives none, mm/s.
LINEAR_JOINT_SPEED = 2000.0
#: Maximum speed of angular joints for which the machine file gives none, deg/s.
ANGULAR_JOINT_SPEED = 720.0
#: Acceleration of angular axes divided by that of linear axes, deg/mm.
ANGULAR_ACCELERATION_RATIO = 0.36
#: Acceleration of joints divided by that of axes.
JOINT_ACCELERATION_RATIO = 10.0
#: Feed of the program, mm/min.
FEED = 15000.0


def geometry_text(module: str, note: str, pins: Iterable[Pin]) -> str:
    """Return HAL lines that set the geometry and its hash. A calibration replaces them.

    Args:
        module: name of the component.
        note: comment at the top.
        pins: pins with their values.
    """
    lines = [
        f"# {comment(note)}",
        "# Load it after the component and before homing: a new geometry makes the joint positions jump.",
    ]
    pins = tuple(pins)
    for pin in pins:
        lines += [
            f"# {comment(pin.parameter)}, {pin.unit}",
            f"setp {module}.{pin.name} {pin.value!r}",
        ]
    lines += ["# The module accepts these values only; with 0 here it accepts any values."]
    return "\n".join([*lines, f"setp {module}.geometry.asked {geometry_hash(pins)}", ""])


def geometry_hash(pins: Iterable[Pin]) -> int:
    """Return the 32-bit FNV-1a hash of the values, as `tauloop_hash` in the module. It is never 0."""
    hashed = 2166136261
    for byte in b"".join(struct.pack("<d", pin.value) for pin in pins):
        hashed = (hashed ^ byte) * 16777619 % 2**32
    return hashed or 1


def joints_text(note: str, layout: MachineLayout, acceleration: float) -> str:
    """Return the joint sections of an INI file: limits, speeds and home positions."""
    lines = [f"# {comment(note)}; mm and degrees", ""]
    for name, entries in _joint_sections(layout, acceleration).items():
        lines += [f"[{name}]", *entries, ""]
    return "\n".join(lines)


def _joint_sections(layout: MachineLayout, acceleration: float) -> dict[str, Sequence[str]]:
    sections: dict[str, Sequence[str]] = {}
    for k, joint in enumerate(layout.joints):
        ratio = JOINT_ACCELERATION_RATIO
        if joint.is_angular:
            ratio *= ANGULAR_ACCELERATION_RATIO
        sections[f"JOINT_{k}"] = tuple(_joint_lines(joint, ratio * acceleration))
    return sections


def hal_text(stem: str, module: str, layout: MachineLayout) -> str:
    """Return HAL lines of the simulation, in which every joint's command is also its feedback."""
    lines = [
        f"# {stem}: headless simulation, made by Tauloop",
        f"loadrt {module}",
        "loadrt [EMCMOT]EMCMOT servo_period_nsec=[EMCMOT]SERVO_PERIOD num_joints=[KINS]JOINTS",
        "addf motion-command-handler servo-thread",
        "addf motion-controller servo-thread",
    ]
    for k, joint in enumerate(layout.joints):
        lines += [
            f"# {comment(joint.name)}",
            f"net joint-{k}-pos joint.{k}.motor-pos-cmd => joint.{k}.motor-pos-fb",
        ]
    lines += [
        "net estop-loop iocontrol.0.user-enable-out => iocontrol.0.emc-enable-in",
        "net tool-prepare-loop iocontrol.0.tool-prepare => iocontrol.0.tool-prepared",
        "net tool-change-loop iocontrol.0.tool-change => iocontrol.0.tool-changed",
    ]
    return "\n".join([*lines, ""])


def ini_text(
    stem: str, module: str, layout: MachineLayout, acceleration: float, period: float
) -> str:
    """Return the text of the INI file.

    Args:
        stem: first part of all file names.
        module: name of the component.
        layout: joints and axes.
        acceleration: acceleration of linear axes, mm/s^2.
        period: period of the servo thread, s.
    """
    letters = "".join(axis.letter for axis in layout.axes)
    homes = {axis.number: axis.home for axis in layout.axes}
    home = " ".join(_decimal(homes.get(k, 0.0)) for k in range(6 if max(homes) > 2 else 3))
    angular_acceleration = ANGULAR_ACCELERATION_RATIO * acceleration
    sections: dict[str, Sequence[str]] = {
        "EMC": ("VERSION = 1.1", f"MACHINE = {stem}", "DEBUG = 0"),
        "DISPLAY": (
            f"DISPLAY = ./{stem}_headless.py",
            f"OPEN_FILE = {stem}.ngc",
            "CYCLE_TIME = 0.1",
        ),
        "RS274NGC": (f"PARAMETER_FILE = {stem}.var",),
        "EMCMOT": (
            "EMCMOT = motmod",
            "COMM_TIMEOUT = 4.0",
            f"SERVO_PERIOD = {round(1e9 * period)}",
        ),
        "TASK": ("TASK = milltask", "CYCLE_TIME = 0.01"),
        "HAL": (f"HALFILE = {stem}.hal", f"HALFILE = {stem}_geometry.hal"),
        "KINS": (f"KINEMATICS = {module}", f"JOINTS = {len(layout.joints)}"),
        "TRAJ": (
            f"COORDINATES = {letters}",
            f"HOME = {home}",
            "LINEAR_UNITS = mm",
            "ANGULAR_UNITS = degree",
            f"DEFAULT_LINEAR_VELOCITY = {_decimal(LINEAR_AXIS_SPEED / 5)}",
            f"MAX_LINEAR_VELOCITY = {_decimal(LINEAR_AXIS_SPEED)}",
            f"DEFAULT_LINEAR_ACCELERATION = {_decimal(acceleration)}",
            f"MAX_LINEAR_ACCELERATION = {_decimal(acceleration)}",
            f"MAX_ANGULAR_VELOCITY = {_decimal(ANGULAR_AXIS_SPEED)}",
            f"MAX_ANGULAR_ACCELERATION = {_decimal(angular_acceleration)}",
        ),
        "EMCIO": ("EMCIO = io", "CYCLE_TIME = 0.1", f"TOOL_TABLE = {stem}.tbl"),
    }
    for axis in layout.axes:
        sections[f"AXIS_{axis.letter}"] = tuple(
            _axis_lines(axis, acceleration if axis.number < 3 else angular_acceleration)
        )
    sections |= _joint_sections(layout, acceleration)
    lines = [f"# {stem}: headless simulation in LinuxCNC, made by Tauloop; mm and degrees", ""]
    for name, entries in sections.items():
        lines += [f"[{name}]", *entries, ""]
    return "\n".join(lines)


def headless_text() -> str:
    """Return the program that replaces the user interface. It homes, runs the G-code and ends."""
    return c_file("tauloop.export.linuxcnc", "headless.txt")


def _axis_lines(axis: WorldAxis, acceleration: float) -> Iterator[str]:
    yield from _limits(axis.lower, axis.upper)
    speed = LINEAR_AXIS_SPEED if axis.number < 3 else ANGULAR_AXIS_SPEED
    yield f"MAX_VELOCITY = {_decimal(speed)}"
    yield f"MAX_ACCELERATION = {_decimal(acceleration)}"


def _joint_lines(joint: MachineJoint, acceleration: float) -> Iterator[str]:
    yield f"# {comment(joint.name)}"
    yield f"TYPE = {'ANGULAR' if joint.is_angular else 'LINEAR'}"
    if not joint.is_stop and math.isfinite(joint.upper - joint.lower):
        yield "# nominal range of the drawing, not a stop: enter the real joint limits"
    yield from _limits(joint.lower, joint.upper)
    speed = joint.speed
    if not math.isfinite(speed):
        yield "# no maximum speed in the machine file: enter the maximum speed of the joint"
        speed = ANGULAR_JOINT_SPEED if joint.is_angular else LINEAR_JOINT_SPEED
    yield f"MAX_VELOCITY = {_decimal(speed)}"
    yield f"MAX_ACCELERATION = {_decimal(acceleration)}"
    yield from ("FERROR = 1.0", "MIN_FERROR = 0.5")
    yield "# without switches, a joint is at home at its start position"
    yield f"HOME = {_decimal(joint.home)}"
    yield f"HOME_OFFSET = {_decimal(joint.home)}"
    yield from ("HOME_SEARCH_VEL = 0", "HOME_LATCH_VEL = 0", "HOME_SEQUENCE = 0")


def _limits(lower: float, upper: float) -> Iterator[str]:
    """Yield the finite limits of a range."""
    if math.isfinite(lower):
        yield f"MIN_LIMIT = {_decimal(lower)}"
    if math.isfinite(upper):
        yield f"MAX_LIMIT = {_decimal(upper)}"


def _decimal(value: float) -> str:
    """Return a number in decimal notation, without an exponent."""
    return f"{value:.12f}".rstrip("0").rstrip(".") if value else "0"
