"""Numbers with units read alike wherever they stand."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

import tauloop as tl
from tauloop.calibration import read_instrument
from tauloop.common.errors import InputError, Problems, TauloopError
from tauloop.common.options import pairs
from tauloop.equations.named_values import TOOL_PORT, named_values
from tauloop.equations.ports import Port
from tauloop.formats import load_urdf
from tauloop.logs import load_recording
from tauloop.mechanism.description.drives.drive_file import read_drive
from tauloop.mechanism.description.units import (
    ANGLE,
    ANGULAR_SPEED,
    FREQUENCY,
    LENGTH,
    ONE,
    UnitError,
    interval,
    quantity,
    read_quantity,
)
from tauloop.simulation.planned.limit_options import motor_curve

#: What people write for one length, m. Oracle: by hand.
LENGTHS = {
    "0.5 mm": 5e-4,
    "0.5mm": 5e-4,
    "  .5   mm ": 5e-4,
    "+5e-1mm": 5e-4,
    "-5E-1 mm": -5e-4,
    "- 0.5 mm": -5e-4,
    "500 um": 5e-4,
    "5e-4 m": 5e-4,
    "0 mm": 0.0,
    "0": 0.0,
}
#: What is no length, and what is said.
NO_LENGTHS = {
    "0.5": "'0.5' has no unit where a length (m) is needed",
    "0.5 deg": "'0.5 deg' is an angle (rad) where a length (m) is needed",
    "0.5 mmm": "unknown unit 'mmm'",
    "0.5mmm": "unknown unit 'mmm'",
    "0.5 µm": "'µm' is not a unit",
    "half a mm": "'half a mm' is not a number with a unit",
    "": "'' is not a number with a unit",
    "nan": "nan is not a finite number",
    "-inf": "-inf is not a finite number",
    "1e999 mm": "the number 1e999 is too large",
    "0.5 m/s s": "is ambiguous",
}


@pytest.mark.parametrize(("text", "value"), LENGTHS.items())
def test_a_length_is_read_however_it_is_spaced(text: str, value: float) -> None:
    assert read_quantity(text, LENGTH).value == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(("text", "says"), NO_LENGTHS.items())
def test_what_is_no_length_is_refused_with_its_reason(text: str, says: str) -> None:
    with pytest.raises(UnitError) as error:
        read_quantity(text, LENGTH)
    assert says in error.value.what
    assert error.value.remedy


def test_a_number_keeps_all_its_digits_before_a_unit_that_begins_with_one() -> None:
    assert read_quantity("2 1/s", FREQUENCY).value == 2.0
    assert read_quantity("21 1/s", FREQUENCY).value == 21.0
    with pytest.raises(UnitError, match="'21/s' is not a number with a unit"):
        read_quantity("21/s", FREQUENCY)


def test_a_unit_with_a_slip_is_guessed() -> None:
    with pytest.raises(InputError, match="did you mean deg"):
        quantity("--turn", "5 degrees", ANGLE)
    with pytest.raises(InputError, match="did you mean kHz"):
        quantity("--rate", "1 khz", FREQUENCY)


def test_a_number_alone_is_in_si_units_on_the_command_line_only() -> None:
    assert quantity("--step", "0.5", LENGTH) == 0.5
    with pytest.raises(UnitError, match="has no unit"):
        read_quantity("0.5", LENGTH)


def test_an_angle_is_said_to_be_one() -> None:
    with pytest.raises(InputError, match="has no angular unit"):
        quantity("--speed", "5 1/s", ANGULAR_SPEED)


def test_the_first_dimension_that_suits_is_taken() -> None:
    assert read_quantity("30 deg", LENGTH, ANGLE, ONE).dimension == ANGLE
    assert read_quantity("3", LENGTH, ANGLE, ONE).dimension == ONE


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("1.2 m:1300mm", 1.2, 1.3),
        ("200:230 mm", 0.2, 0.23),
        (":5 mm", -math.inf, 0.005),
        ("-5 mm:", -0.005, math.inf),
        ("0:5 mm", 0.0, 0.005),
    ],
)
def test_ends_of_an_interval_are_quantities(text: str, lower: float, upper: float) -> None:
    values = interval(text, ":", LENGTH, ANGLE)
    assert (values.lower, values.upper) == pytest.approx((lower, upper), rel=1e-15)
    assert values.dimension == LENGTH


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (":", "is not LOW:HIGH"),
        ("5 mm", "is not LOW:HIGH"),
        ("1 mm:2 deg", "have different dimensions"),
        ("3 mm:2 mm", "lower end 0.003 m is above the upper end 0.002 m"),
        ("a:2 mm", "is not a number with a unit"),
    ],
)
def test_what_is_no_interval_is_refused(text: str, says: str) -> None:
    with pytest.raises(UnitError, match=says):
        interval(text, ":", LENGTH, ANGLE)


def test_pairs_are_split_and_all_that_is_wrong_is_said() -> None:
    problems = Problems()
    assert pairs("--from", " a=1 mm, b = 2 ,", problems) == {"a": "1 mm", "b": "2"}
    assert not problems
    pairs("--from", "a,=1,b=1,b=2", problems)
    assert [problem.what for problem in problems] == [
        "'a' is not NAME=VALUE",
        "'=1' is not NAME=VALUE",
        "b is given twice",
    ]


POSE = Port(
    name="position",
    columns=("arm", *(f"platform.{name}" for name in ("x", "y", "z", "qw", "qx", "qy", "qz"))),
    units=("rad", "m", "m", "m", "1", "1", "1", "1"),
)
START = np.array([0.1, 0.0, 0.0, -0.5, 1.0, 0.0, 0.0, 0.0])


def test_positions_take_units_and_short_names() -> None:
    values = named_values(POSE, "--position", "arm=30 deg, x=100mm, platform.z=-0.4", START)
    assert values == pytest.approx([np.pi / 6, 0.1, 0.0, -0.4, 1.0, 0.0, 0.0, 0.0], rel=1e-15)
    assert named_values(POSE, "position", {"y": 0.25}, START)[2] == 0.25


def test_a_rotation_vector_turns_the_orientation_that_is_there() -> None:
    """Oracle: a turn by 90 degrees about z, then one by 90 degrees about x of the base, written out by hand."""
    turned = named_values(POSE, "--position", "rz=90 deg", START)
    assert turned[4:] == pytest.approx([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)], abs=1e-15)
    twice = named_values(POSE, "--position", "platform.rx=90deg", turned)
    assert twice[4:] == pytest.approx([0.5, 0.5, -0.5, 0.5], abs=1e-15)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x=1,platform.x=2", "platform.x is given twice"),
        ("xx=1", "no coordinate 'xx'"),
        ("x=5 deg", "--position x: '5 deg' is an angle (rad) where a length (m) is needed"),
        ("rz=200 deg", "is a rotation of 200 deg"),
        ("rz=20 deg,qw=1", "has both a rotation vector and a quaternion"),
        ("x=nan", "nan is not a finite number"),
    ],
)
def test_what_is_no_position_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        named_values(POSE, "--position", text, START)
    assert says in str(error.value)


def test_values_that_are_neither_numbers_nor_text_are_refused_all_at_once() -> None:
    with pytest.raises(InputError) as refused:
        tl.inverse_kinematics(tl.load("delta"), {"x": None, "y": [1, 2], "z": np.array([1, 2])})  # type: ignore[dict-item]
    assert [problem.where for problem in refused.value.problems] == [
        "pose x",
        "pose y",
        "pose z",
    ]
    assert refused.value.problems[0].what == "is None"


def test_a_wrench_has_forces_and_moments() -> None:
    values = named_values(TOOL_PORT, "--wrench", "fz=-2 kN,mx=30 N mm", np.zeros(6))
    assert values == pytest.approx([0, 0, -2000, 0.03, 0, 0])


# The same texts wherever numbers stand

MACHINE = """
format: tauloop-machine/1
name: slider
provenance: {{status: chosen, source: test}}
gravity: [0, 0, 0]
bodies: {{cart: {{mass: 1 kg}}}}
joints: {{slide: {{type: prismatic, axis: x, parent: {{on: base, at: [{0!r}, 0, 0]}}, child: cart}}}}
platform: {{body: cart, independent: [slide]}}
"""
URDF = """<robot name="cart"><link name="root"/><link name="cart"><inertial><mass value="1"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<joint name="slide" type="prismatic"><parent link="root"/><child link="cart"/><axis xyz="0 0 1"/>
<limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>"""
DRIVE = """
format: tauloop-drive/1
name: line
provenance: {{status: chosen, source: test}}
inertias: {{cart: {{mass: 1 kg}}}}
motors: {{motor: {{on: cart, torque: 5 N}}}}
encoders: {{encoder: {{on: cart}}}}
control: {{position: {{encoder: encoder, gain: 1}}, motor: motor}}
performance: {{of: cart, band: {0!r}}}
"""


def in_a_machine_file(text: str, folder: Path) -> float:
    mechanism = tl.loads(MACHINE.format(text))
    return mechanism.value(mechanism.joint("slide").parent.position[0])


def in_a_side_file(text: str, folder: Path) -> float:
    (folder / "cart.urdf").write_text(URDF, encoding="utf-8")
    side = folder / "side.yaml"
    side.write_text(
        f"format: tauloop-urdf-side/1\noffsets: {{slide: {text!r}}}\n", encoding="utf-8"
    )
    mechanism = load_urdf(folder / "cart.urdf", side)
    return -mechanism.joint("slide").reference[0]


def in_measurements(text: str, folder: Path) -> float:
    path = folder / "measurements.yaml"
    path.write_text(f"kind: contact\ntarget: [0, {text!r}, 0]\n", encoding="utf-8")
    return read_instrument(path).target[1]


def in_a_recording(text: str, folder: Path) -> float:
    path = folder / "recording.yaml"
    known = f"known_forces: {{m: {{polynomial: [1 N], about: {text!r}}}}}"
    path.write_text(f"format: tauloop-log/1\nfiles: [{{path: a.csv}}]\n{known}\n", encoding="utf-8")
    (force,) = load_recording(path).known_forces
    return force.law.about


def in_a_drive_file(text: str, folder: Path) -> float:
    line = read_drive(DRIVE.format(text))
    return line.parameters["performance.band"].value


PLACES = {
    "machine file": in_a_machine_file,
    "side file": in_a_side_file,
    "measurements": in_measurements,
    "recording": in_a_recording,
    "drive file": in_a_drive_file,
    "command line": lambda text, folder: quantity("--length", text, LENGTH),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_length_is_the_same_wherever_it_stands(place: str, tmp_path: Path) -> None:
    for text, value in LENGTHS.items():
        if place == "drive file" and value <= 0.0:
            continue  # a band is positive
        assert PLACES[place](text, tmp_path) == pytest.approx(value, rel=1e-15), text


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_length_is_refused_alike_wherever_it_stands(place: str, tmp_path: Path) -> None:
    """All but what files take for an expression, and what is no length of a law whose position may be an angle."""
    for text, says in NO_LENGTHS.items():
        is_expression = not text or text == "half a mm" or (place != "command line" and "µ" in text)
        if is_expression or (place in ("command line", "recording") and text in ("0.5", "0.5 deg")):
            continue
        with pytest.raises(TauloopError) as error:
            PLACES[place](text, tmp_path)
        assert says in str(error.value), text


@pytest.mark.parametrize(
    ("columns", "units", "example"),
    [
        (("track1.motor",), ("rad",), "write for example track1.motor=10deg"),
        (("slide", "arm"), ("m", "rad"), "write for example slide=10mm"),
        (("platform.x",), ("m/s",), "write for example 'platform.x=0.1 m/s'"),
        (
            ("platform.qw", "platform.qx", "platform.qy", "platform.qz"),
            ("1",) * 4,
            "write for example platform.rx=10deg",
        ),
    ],
)
def test_the_example_of_a_refusal_names_a_coordinate_of_the_machine(
    columns: tuple[str, ...], units: tuple[str, ...], example: str
) -> None:
    port = Port(name="position", columns=columns, units=units)
    default = np.zeros(len(columns))
    with pytest.raises(InputError, match=r"'0\.5' is not NAME=VALUE") as refused:
        named_values(port, "position", "0.5", default)
    assert refused.value.problems[0].remedy == example


def test_speeds_of_motor_curves_take_units() -> None:
    assert motor_curve("0:1,20:1,3000rpm:0.3") == (
        (0.0, 1.0),
        (20.0, 1.0),
        (pytest.approx(100.0 * np.pi), 0.3),
    )
    with pytest.raises(InputError, match="'2kg' is a mass"):
        motor_curve("0:1,2kg:1")
    with pytest.raises(InputError, match="is not a list of SPEED:SHARE"):
        motor_curve("0:1,2")


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: tl.certify("delta", ranges="x=-2deg:2deg"), "ranges x"),
        (lambda: tl.certify("delta", ranges={"x": ("-5 deg", "50 mm")}), "ranges x"),
        (lambda: tl.certify("delta", ranges="x=-1mm:1mm", pose="z=5deg"), "pose z"),
        (
            lambda: tl.certify("delta", ranges="x=-1mm:1mm", deviations="arm_length=1deg"),
            "deviations arm_length",
        ),
        (lambda: tl.workspace("delta", ranges="x=-2deg:2deg", resolution=0.1), "ranges x"),
        (lambda: tl.workspace("delta", pose="z=-30deg", resolution=0.1), "pose z"),
        (
            lambda: tl.backlash_map("five_bar", backlash={"motor_1": 1e-4}, ranges="x=-1deg:1deg"),
            "ranges x",
        ),
        (
            lambda: tl.plan_poses("linear_delta", count=4, ranges="x=-1deg:1deg", parameters="*"),
            "ranges platform.x",
        ),
    ],
)
def test_values_by_name_keep_their_unit(call, where):
    """An angle for a length was read as its number of radians, in meters."""
    with pytest.raises(TauloopError, match=f"{where}: .* is an angle .* where a length"):
        call()


def test_values_with_units_are_copied_with_them():
    options = tl.CertifyOptions(ranges="x=-2deg:2deg")
    copied = pickle.loads(pickle.dumps(options))
    assert copied == options
    assert copied.ranges["x"][1].dimension == ANGLE
    assert json.dumps(dict(options.ranges)) == json.dumps(
        {"x": list(map(float, options.ranges["x"]))}
    )
