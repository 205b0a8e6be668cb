"""Configurations of printers: motors where the firmware's own formulas put them, and back again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop import DescriptionError
from tauloop.formats.printers.from_machine import end_stops

#: Positions of motors, m or rad: sums of a few products of size one.
AGREEMENT = 1e-12
#: Files have nanometres; angles of 1e-6 degrees at half a metre are ten nanometres.
WRITTEN = 3e-8
POINTS = np.random.default_rng(5).uniform([-60, -60, 5], [60, 60, 90], (6, 3))

KLIPPER = """
[printer]
kinematics: delta
delta_radius: 174.75   # of the towers, less the effector's
print_radius = 120
[stepper_a]
rotation_distance: 40
microsteps: 16
position_endstop: 297.05
arm_length: 333.0
[stepper_b]
position_endstop: 296
arm_length: 333.4
angle: 331.5
[stepper_c]
#*# <---------------------- SAVE_CONFIG ---------------------->
#*# [stepper_c]
#*# position_endstop = 298.25
#*# angle = 89.25
"""
ROTARY = """
[printer]
kinematics: rotary_delta
shoulder_radius: 33.900
shoulder_height: 412.9
[stepper_a]
position_endstop: 252
upper_arm_length: 170.0
lower_arm_length: 320.0
[stepper_b]
angle: 151
lower_arm_length: 321
[stepper_c]
position_endstop: 254
"""
WINCH = """
[printer]
kinematics: winch
[stepper_a]
anchor_x: 0
anchor_y: -2000
anchor_z: -100
[stepper_b]
anchor_x: 2000
anchor_y: 1000
anchor_z: -110
[stepper_c]
anchor_x: -2010
anchor_y: 1000
anchor_z: -100
[stepper_d]
anchor_x: 0
anchor_y: 0
anchor_z: 3000
"""
MARLIN = """
#define DELTA
// #define DELTA_RADIUS 1.0
  #define DELTA_PRINTABLE_RADIUS 140.0    // (mm)
  #define DELTA_DIAGONAL_ROD 250.0        // (mm)
  #define DELTA_HEIGHT 250.00             // (mm) Get this value from G33 auto calibrate
  #define DELTA_ENDSTOP_ADJ { -0.4, 0.0, -1.2 } // Get these values from G33 auto calibrate
  #define DELTA_RADIUS 124.0              // (mm) Get this value from G33 auto calibrate
  #define DELTA_TOWER_ANGLE_TRIM { 0.5, -0.25, 0.0 }
  #define DELTA_RADIUS_TRIM_TOWER { 0.1, 0.0, -0.2 }
  #define DELTA_DIAGONAL_ROD_TRIM_TOWER { 0.0, 0.3, 0.0 }
"""
REPRAP = """
; config.g
M665 L288.100:288.2:288.3 R140.5 H250.25 B85 X0.3 Y-0.2 Z0.1 ; delta
M666 X-0.5 Y0.75 Z-0.25
"""
HANGPRINTER = "M669 K6 A0.0:-1620.0:-150.0 B1800.0:930.0:-170.0 C-1600.0:1000.0:-160 D2590 P2000\n"


def kossel(point: Sequence[float], tower: Sequence[float], arm: float) -> float:
    """Return the height of a carriage: the same expression in all three firmwares."""
    x, y, z = point
    return math.sqrt(arm**2 - (tower[0] - x) ** 2 - (tower[1] - y) ** 2) + z


def klipper_delta(point: Sequence[float]) -> list[float]:
    """Return heights of the carriages below their end stops, as `DeltaKinematics` in Klipper."""
    motors = []
    for angle, arm, stop in ((210, 333, 297.05), (331.5, 333.4, 296), (89.25, 333, 298.25)):
        radians = math.radians(angle)
        tower = (174.75 * math.cos(radians), 174.75 * math.sin(radians))
        top = stop + math.sqrt(arm**2 - 174.75**2)
        motors.append((top - kossel(point, tower, arm)) * 1e-3)
    return motors


def two_arms(x: float, y: float, upper: float, lower2: float) -> float:
    """Return the angle of an upper arm whose elbow is outside: |elbow - (x, y)|^2 = lower2."""
    c = (x * x + y * y + upper * upper - lower2) / (2.0 * upper)
    # x cos(angle) + y sin(angle) = c
    middle, spread = math.atan2(y, x), math.acos(c / math.hypot(x, y))
    return max(middle + spread, middle - spread, key=math.cos)


def klipper_rotary(point: Sequence[float]) -> list[float]:
    """Return angles below the end stops, seen in the plane of each upper arm as in Klipper."""
    motors = []
    legs = ((30, 170.0, 320.0, 252), (151, 170.0, 321.0, 252), (270, 170.0, 320.0, 254))
    for angle, upper, lower, stop in legs:
        c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        angles = []
        for x, y, z in ((0.0, 0.0, stop), point):
            across = y * c - x * s
            outwards = x * c + y * s - 33.9
            angles.append(two_arms(outwards, z - 412.9, upper, lower**2 - across**2))
        motors.append(angles[0] - angles[1])
    return motors


def winches(anchors: Sequence[Sequence[float]]) -> Callable[[Sequence[float]], list[float]]:
    return lambda point: [1e-3 * math.dist(point, anchor) for anchor in anchors]


def marlin(point: Sequence[float]) -> list[float]:
    """Return heights below the end stops, as `recalc_delta_settings` and `inverse_kinematics`."""
    motors = []
    trims = ((210.5, 0.1, 0.0, -0.4), (329.75, 0.0, 0.3, 0.0), (90.0, -0.2, 0.0, -1.2))
    for angle, radius, rod, adjustment in trims:
        radians, distance, arm = math.radians(angle), 124.0 + radius, 250.0 + rod
        tower = (distance * math.cos(radians), distance * math.sin(radians))
        top = 250.0 + math.sqrt(arm**2 - distance**2) - adjustment
        motors.append((top - kossel(point, tower, arm)) * 1e-3)
    return motors


def reprap(point: Sequence[float]) -> list[float]:
    """Return heights below the homed carriages, as `LinearDeltaKinematics::Recalc`."""
    a, b, c = (math.radians(x) for x in (30.3, 30.2, 0.1))
    towers = (
        (-140.5 * math.cos(a), -140.5 * math.sin(a)),
        (140.5 * math.cos(b), -140.5 * math.sin(b)),
        (-140.5 * math.sin(c), 140.5 * math.cos(c)),
    )
    motors = []
    for tower, arm, adjustment in zip(
        towers, (288.1, 288.2, 288.3), (-0.5, 0.75, -0.25), strict=True
    ):
        top = 250.25 + math.sqrt(arm**2 - 140.5**2) + adjustment
        motors.append((top - kossel(point, tower, arm)) * 1e-3)
    return motors


KLIPPER_ANCHORS = ((0, -2000, -100), (2000, 1000, -110), (-2010, 1000, -100), (0, 0, 3000))
REPRAP_ANCHORS = ((0, -1620, -150), (1800, 930, -170), (-1600, 1000, -160), (0, 0, 2590))
FILES = {
    "klipper_delta.cfg": (KLIPPER, klipper_delta),
    "klipper_rotary.cfg": (ROTARY, klipper_rotary),
    "klipper_winch.cfg": (WINCH, winches(KLIPPER_ANCHORS)),
    "Configuration.h": (MARLIN, marlin),
    "config.g": (REPRAP, reprap),
    "hangprinter.g": (HANGPRINTER, winches(REPRAP_ANCHORS)),
}


@pytest.mark.parametrize("name", FILES)
def test_motors_are_where_the_firmware_puts_them(tmp_path: Path, name: str) -> None:
    """In the file, in the machine file made from it, and in the configuration written from that."""
    text, motors = FILES[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    tl.convert(tmp_path / name, tmp_path / "machine.yaml")
    again = tmp_path / f"again{Path(name).suffix}"
    tl.convert(tmp_path / "machine.yaml", again)
    expected = np.array([motors(point) for point in POINTS])
    for path, tolerance in (
        (tmp_path / name, AGREEMENT),
        (tmp_path / "machine.yaml", AGREEMENT),
        (again, WRITTEN),
    ):
        model = tl.Model(tl.load(path))
        q = model.inverse_kinematics(1e-3 * POINTS).q
        driven = [motor.drives[0][0] for motor in model.mechanism.actuators]
        columns = [model.topology.coordinate_names.index(name) for name in driven]
        assert q[:, columns] == pytest.approx(expected, abs=tolerance)


def test_marlin_also_reads_what_it_prints(tmp_path: Path) -> None:
    """Lines of M503; the radius trims of Configuration.h have no letter."""
    (tmp_path / "m503.h").write_text(
        "echo:  M665 L250.00 R124.00 H250.00 S200.00 X0.50 Y-0.25 Z0.00 A0.00 B0.30 C0.00\n"
        "echo:  M666 X-0.40 Y0.00 Z-1.20\n",
        encoding="utf-8",
    )
    without = MARLIN.replace("{ 0.1, 0.0, -0.2 }", "{ 0.0, 0.0, 0.0 }")
    (tmp_path / "Configuration.h").write_text(without, encoding="utf-8")
    machines = [tl.Model(tl.load(tmp_path / name)) for name in ("m503.h", "Configuration.h")]
    first, second = (model.inverse_kinematics(1e-3 * POINTS).q for model in machines)
    assert first == pytest.approx(second, abs=AGREEMENT)


def test_machine_files_of_others_become_configurations(tmp_path: Path) -> None:
    """The shipped printer's numbers, and a delta of arms whose rods end beside the middle of the plate."""
    tl.convert("linear_delta", tmp_path / "printer.cfg")
    text = (tmp_path / "printer.cfg").read_text(encoding="utf-8")
    for line in (
        "delta_radius: 172.000000",
        "arm_length: 340.000000",
        "position_endstop: 333.000000",
    ):
        assert line in text
    result = tl.convert("delta", tmp_path / "rotary.cfg")
    text = (tmp_path / "rotary.cfg").read_text(encoding="utf-8")
    for line in (
        "shoulder_radius: 164.000000",
        "upper_arm_length: 260.000000",
        "angle: 120.000000",
    ):
        assert line in text
    assert any("shoulder_height above zero" in note for note in result.written.notes)
    stops, senses = end_stops(tl.load("linear_delta"))
    assert stops.tolist() == [0.0, 0.0, 0.0]
    assert senses.tolist() == [1.0, 1.0, 1.0]


def test_one_radius_for_all_towers_is_noted(tmp_path: Path) -> None:
    (tmp_path / "Configuration.h").write_text(MARLIN, encoding="utf-8")
    notes = tl.convert(tmp_path / "Configuration.h", tmp_path / "printer.cfg").written.notes
    assert "delta_radius is one number for all towers, but their values differ by 0.3 mm" in notes


def test_forces_of_a_printer_without_masses_are_doubtful(tmp_path: Path) -> None:
    path = tmp_path / "printer.cfg"
    path.write_text(KLIPPER, encoding="utf-8")
    doubt = "dynamic parameters of the machine"
    result = tl.inverse_dynamics(path)
    assert result.status == "doubtful"
    assert doubt in [item.name for item in result.diagnostics]
    loaded = tl.inverse_dynamics(path, payload="1 kg")
    assert doubt not in [item.name for item in loaded.diagnostics]


def test_check_notes_that_a_printer_without_masses_has_kinematics_only(tmp_path: Path) -> None:
    path = tmp_path / "printer.cfg"
    path.write_text(KLIPPER, encoding="utf-8")
    inspection = tl.check(path)
    assert inspection.is_usable
    assert [note.what for note in inspection.notes if "only kinematics" in note.what]
    assert not [note for note in tl.check("delta").notes if "only kinematics" in note.what]


def test_a_file_name_with_quotes_and_a_line_break_stays_text(tmp_path: Path) -> None:
    path = tmp_path / "a'b\"c\nname: other.cfg"
    path.write_text(KLIPPER, encoding="utf-8")
    printer = tl.load(path)
    assert printer.name != "other"
    assert path.name in printer.description


@pytest.mark.parametrize(
    ("name", "text", "where", "what"),
    [
        ("p.cfg", "[printer]\nkinematics: corexy\n", "printer.kinematics", "is 'corexy'"),
        ("p.cfg", "[stepper_a]\n", "printer.kinematics", "is missing"),
        ("p.cfg", KLIPPER.replace("174.75", "x"), "printer.delta_radius", "'x' is not a number"),
        ("p.cfg", KLIPPER.replace("arm_length: 333.0", ""), "stepper_a.arm_length", "is missing"),
        ("p.cfg", KLIPPER.replace("333.4", "100"), "tower 2", "has arms of 100 mm at a radius of"),
        ("p.cfg", WINCH.replace("anchor_y: -2000", ""), "stepper_a.anchor_y", "is missing"),
        (
            "p.cfg",
            KLIPPER.replace("297.05", "-1"),
            "tower 1",
            "has its end stop at a nozzle height of -1",
        ),
        ("p.cfg", ROTARY.replace("254", "950"), "leg 3", "does not reach the center at a height"),
        ("p.cfg", KLIPPER.replace("331.5", "nan"), "stepper_b.angle", "'nan' is not a number"),
        (
            "p.h",
            "#define X_BED_SIZE 200\n",
            "DELTA_RADIUS",
            "the file has neither DELTA_... definitions",
        ),
        ("p.h", MARLIN.replace("DELTA_HEIGHT 250.00", "X 0"), "DELTA_HEIGHT", "is missing"),
        (
            "p.h",
            MARLIN.replace("{ 0.5, -0.25, 0.0 }", "{ 0.5 }"),
            "DELTA_TOWER_ANGLE_TRIM",
            "has 1 number",
        ),
        ("p.g", "G28\n", "M665", "the file has no M665"),
        ("p.g", REPRAP.replace("R140.5", ""), "M665", "has no R (radius)"),
        ("p.g", REPRAP.replace("Z-0.25", "Z-0.25 A0.2"), "M666", "specifies a tilt of the bed"),
        ("p.g", HANGPRINTER.replace(":-150.0", ""), "M669", "anchor A has 2 numbers"),
    ],
)
def test_wrong_files_are_refused(
    tmp_path: Path, name: str, text: str, where: str, what: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(DescriptionError) as caught:
        tl.load(tmp_path / name)
    problem = caught.value.problems[0]
    assert problem.where == where
    assert problem.what.startswith(what)


@pytest.mark.parametrize(
    ("machine", "what"), [("five_bar", "has 2 motors"), ("rcid", "has 6 motors")]
)
def test_machines_that_firmware_lacks_are_refused(tmp_path: Path, machine: str, what: str) -> None:
    with pytest.raises(DescriptionError, match=what):
        tl.convert(machine, tmp_path / "printer.cfg")
    assert not (tmp_path / "printer.cfg").exists()
