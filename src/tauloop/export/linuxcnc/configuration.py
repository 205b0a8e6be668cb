"""A headless simulation for LinuxCNC: its INI file, HAL files, tool table and G-code."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence

from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import comment
from tauloop.export.linuxcnc.machine import MachineJoint, MachineLayout, Pin, WorldAxis

#: Speeds of axes (mm/s, deg/s), and of joints whose largest speed the file does not say.
AXIS_SPEED, TURNING_SPEED = 500.0, 90.0
JOINT_SPEED, TURNING_JOINT_SPEED = 2000.0, 720.0
#: Accelerations of turning axes over those of sliding ones, deg per mm, and of joints over those of
#: axes.
TURNING_ACCELERATION, JOINT_ACCELERATION = 0.36, 10.0
#: Feed of the program, mm/min.
FEED = 15000.0


def geometry_text(module: str, note: str, pins: Iterable[Pin]) -> str:
    """HAL lines that set the geometry, and by which the module knows that it is whole: a calibration writes them anew.

    Args:
        module: name of the component.
        note: for the comment at the top.
        pins: with their values.
    """
    lines = [
        f"# {comment(note)}",
        "# Load it behind the component and before homing: joints jump with the geometry.",
    ]
    pins = tuple(pins)
    for pin in pins:
        lines += [
            f"# {comment(pin.parameter)}, {pin.unit}",
            f"setp {module}.{pin.name} {pin.value!r}",
        ]
    lines += ["# the module answers for these figures alone, and for any where this is 0"]
    return "\n".join([*lines, f"setp {module}.geometry.asked {geometry_hash(pins)}", ""])


def geometry_hash(pins: Iterable[Pin]) -> int:
    """What the figures come to: FNV-1a of 32 bits over their bytes, as `tauloop_hash` of the module has it; never 0."""
    hashed = 2166136261
    for byte in b"".join(struct.pack("<d", pin.value) for pin in pins):
        hashed = (hashed ^ byte) * 16777619 % 2**32
    return hashed or 1


def joints_text(note: str, layout: MachineLayout, acceleration: float) -> str:
    """The joints' sections of an INI file: limits, speeds, and where joints are at home."""
    lines = [f"# {comment(note)}; mm and degrees", ""]
    for name, entries in _joint_sections(layout, acceleration).items():
        lines += [f"[{name}]", *entries, ""]
    return "\n".join(lines)


def _joint_sections(layout: MachineLayout, acceleration: float) -> dict[str, Sequence[str]]:
    turning = TURNING_ACCELERATION * acceleration
    return {
        f"JOINT_{k}": tuple(
            _joint_lines(joint, JOINT_ACCELERATION * (turning if joint.turns else acceleration))
        )
        for k, joint in enumerate(layout.joints)
    }


def hal_text(stem: str, module: str, layout: MachineLayout) -> str:
    """HAL lines of the simulation: kinematics, motion, and every joint's command as its feedback."""
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
    """The INI file.

    Args:
        stem: first part of all files' names.
        module: name of the component.
        layout: joints and axes.
        acceleration: of sliding axes, mm/s^2.
        period: of the servo thread, s.
    """
    letters = "".join(axis.letter for axis in layout.axes)
    homes = {axis.number: axis.home for axis in layout.axes}
    home = " ".join(_figure(homes.get(k, 0.0)) for k in range(6 if max(homes) > 2 else 3))
    turning = TURNING_ACCELERATION * acceleration
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
            f"DEFAULT_LINEAR_VELOCITY = {_figure(AXIS_SPEED / 5)}",
            f"MAX_LINEAR_VELOCITY = {_figure(AXIS_SPEED)}",
            f"DEFAULT_LINEAR_ACCELERATION = {_figure(acceleration)}",
            f"MAX_LINEAR_ACCELERATION = {_figure(acceleration)}",
            f"MAX_ANGULAR_VELOCITY = {_figure(TURNING_SPEED)}",
            f"MAX_ANGULAR_ACCELERATION = {_figure(turning)}",
        ),
        "EMCIO": ("EMCIO = io", "CYCLE_TIME = 0.1", f"TOOL_TABLE = {stem}.tbl"),
    }
    for axis in layout.axes:
        sections[f"AXIS_{axis.letter}"] = tuple(
            _axis_lines(axis, acceleration if axis.number < 3 else turning)
        )
    sections |= _joint_sections(layout, acceleration)
    lines = [f"# {stem}: headless simulation in LinuxCNC, made by Tauloop; mm and degrees", ""]
    for name, entries in sections.items():
        lines += [f"[{name}]", *entries, ""]
    return "\n".join(lines)


def headless_text() -> str:
    """The program that stands in the place of a screen: it homes, runs the G-code and ends."""
    return c_file("tauloop.export.linuxcnc", "headless.txt")


def _axis_lines(axis: WorldAxis, acceleration: float) -> Iterator[str]:
    yield from _limits(axis.lower, axis.upper)
    yield f"MAX_VELOCITY = {_figure(AXIS_SPEED if axis.number < 3 else TURNING_SPEED)}"
    yield f"MAX_ACCELERATION = {_figure(acceleration)}"


def _joint_lines(joint: MachineJoint, acceleration: float) -> Iterator[str]:
    yield f"# {comment(joint.name)}"
    yield f"TYPE = {'ANGULAR' if joint.turns else 'LINEAR'}"
    if not joint.is_stop and math.isfinite(joint.upper - joint.lower):
        yield "# the machine file has this range for drawing, not as stops: put in your own"
    yield from _limits(joint.lower, joint.upper)
    known = math.isfinite(joint.speed)
    if not known:
        yield "# the machine file has no largest speed: put in your own"
    speed = joint.speed if known else TURNING_JOINT_SPEED if joint.turns else JOINT_SPEED
    yield f"MAX_VELOCITY = {_figure(speed)}"
    yield f"MAX_ACCELERATION = {_figure(acceleration)}"
    yield from ("FERROR = 1.0", "MIN_FERROR = 0.5")
    yield "# no switches: a joint is at home where it stands"
    yield f"HOME = {_figure(joint.home)}"
    yield f"HOME_OFFSET = {_figure(joint.home)}"
    yield from ("HOME_SEARCH_VEL = 0", "HOME_LATCH_VEL = 0", "HOME_SEQUENCE = 0")


def _limits(lower: float, upper: float) -> Iterator[str]:
    """Ends of a range, where it has any."""
    if math.isfinite(lower):
        yield f"MIN_LIMIT = {_figure(lower)}"
    if math.isfinite(upper):
        yield f"MAX_LIMIT = {_figure(upper)}"


def _figure(value: float) -> str:
    """A number as people write it, without an exponent."""
    return f"{value:.12f}".rstrip("0").rstrip(".") if value else "0"
