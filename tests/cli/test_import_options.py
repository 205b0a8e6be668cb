"""Options by which machines of other tools' files are read: one group on every command, and what they choose."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest
from command_line import problems, run_json, text_of
from commands import function_of
from extras import extra
from scipy.spatial.transform import Rotation

from tauloop.cli.commands import COMMANDS

#: Angles that a Newton iteration in this file and Tauloop's agree to, rad.
CLOSED = 1e-9
GROUP = (
    *(
        "side",
        "platform_body",
        "independent",
        "motors",
        "rods",
        "gravity",
        "keyframe",
        "model_name",
        "origins",
    ),
    *("xacro", "package_folder"),
)

PIN = '<joint name="{}" axis="{}"/>'
INERTIAL = '<inertial pos="0 0 0.05" mass="0.1" diaginertia="1e-4 1e-4 1e-5"/>'
#: An ankle: two cranks in front of a foot that pitches and rolls move it by rods with a ball at
#: both ends.
ANKLE = f"""<mujoco model="ankle"><compiler angle="radian"/><worldbody>
<body name="cross">{PIN.format("pitch", "0 1 0")}{INERTIAL}<body name="foot">{PIN.format("roll", "1 0 0")}{INERTIAL}
<body name="rod_1" pos="-0.05 0.04 0"><joint name="ball_1" type="ball"/>{INERTIAL}</body>
<body name="rod_2" pos="-0.05 -0.04 0"><joint name="ball_2" type="ball"/>{INERTIAL}</body></body></body>
<body name="crank_1" pos="-0.02 0.04 0.2">{PIN.format("drive_1", "0 1 0")}{INERTIAL}</body>
<body name="crank_2" pos="-0.02 -0.04 0.2">{PIN.format("drive_2", "0 1 0")}{INERTIAL}</body></worldbody>
<equality><connect body1="crank_1" body2="rod_1" anchor="-0.03 0 0"/>
<connect body1="crank_2" body2="rod_2" anchor="-0.03 0 0"/></equality>
<actuator><motor name="left" joint="drive_1"/><motor name="right" joint="drive_2"/></actuator></mujoco>"""


def crank_angle(pitch: float, roll: float, side: float) -> float:
    """The angle of a crank whose rod keeps its length, by bisection."""
    R = Rotation.from_euler("YX", [pitch, roll]).as_matrix()
    foot = R @ [-0.05, side, 0.0]

    def gap(angle: float) -> float:
        pin = np.array([-0.02 - 0.03 * np.cos(angle), side, 0.2 + 0.03 * np.sin(angle)])
        return float(np.linalg.norm(pin - foot)) - 0.2

    low, high = -1.2, 1.2
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if (gap(middle) < 0.0) == (gap(low) < 0.0) else (low, middle)
    return 0.5 * (low + high)


@pytest.fixture
def ankle(tmp_path: Path) -> Path:
    path = tmp_path / "ankle.xml"
    path.write_text(ANKLE)
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_takes_a_machine_has_the_group(name: str) -> None:
    parameters = inspect.signature(function_of(name)).parameters
    if "machine" in parameters:
        assert set(GROUP) <= set(parameters)
        assert {"values", "parameters"} & set(parameters)


def test_a_xacro_takes_arguments_and_folders(tmp_path: Path) -> None:
    extra("xacro")
    head = '<robot name="r" xmlns:xacro="http://ros.org/wiki/xacro">'
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "mass.xacro").write_text(
        f'{head}<xacro:property name="mass" value="2"/></robot>'
    )
    (tmp_path / "machine").mkdir()
    path = tmp_path / "machine" / "arm.xacro"
    path.write_text(
        f"""{head}<xacro:arg name="length" default="0.3"/><xacro:include filename="$(find tools)/mass.xacro"/>
        <link name="base"/><link name="arm"><inertial><origin xyz="$(arg length) 0 0"/><mass value="${{mass}}"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint></robot>"""
    )
    (problem,) = problems("dynamics", path)
    assert "--package-folder FOLDER" in problem["remedy"]
    words = ("--package-folder", tmp_path / "tools", "--xacro", "length:=0.5")
    assert run_json("dynamics", path, *words)["force"] == [pytest.approx([-9.81], rel=1e-12)]
    (problem,) = problems("check", path, *words, "--xacro", "len:=1")
    assert (problem["where"], problem["what"]) == ("--xacro", "there is no argument len")


def test_an_imported_machine_is_moved_by_the_joints_of_its_platform(ankle: Path) -> None:
    """The joints on the path to the foot are independent, not the motors' and not the spins of rods alone."""
    result = run_json("ik", ankle, "--platform-body", "foot", "--pose", "pitch=0.2,roll=0.1")
    expected = [crank_angle(0.2, 0.1, side) for side in (0.04, -0.04)]
    np.testing.assert_allclose(result["poses"][0]["actuators"], expected, atol=CLOSED)


def test_independent_coordinates_may_be_named(ankle: Path) -> None:
    names = ["--independent", "drive_1,drive_2,ball_1.wz,ball_2.wz"]
    angles = f"drive_1={crank_angle(0.2, 0.1, 0.04)},drive_2={crank_angle(0.2, 0.1, -0.04)}"
    result = run_json("ik", ankle, "--platform-body", "foot", *names, "--pose", angles)
    pose = dict(zip(result["coordinates"], result["poses"][0]["q"], strict=True))
    np.testing.assert_allclose([pose["pitch"], pose["roll"]], [0.2, 0.1], atol=CLOSED)


def test_kinematics_print_orientation_and_all_joints(ankle: Path) -> None:
    """As rotation vector, quaternion and matrix, which agree."""
    result = run_json("ik", ankle, "--platform-body", "foot", "--pose", "pitch=0.2,roll=0.1")[
        "poses"
    ][0]
    turn = Rotation.from_euler("YX", [0.2, 0.1])
    np.testing.assert_allclose(result["tool_rotation"], turn.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(result["tool_rotation_vector_rad"], turn.as_rotvec(), atol=1e-12)
    np.testing.assert_allclose(
        result["tool_quaternion"], turn.as_quat(scalar_first=True), atol=1e-12
    )
    text = text_of("fk", ankle, "--platform-body", "foot", "--actuators", "left=0.1")
    for name in (
        "pitch",
        "roll",
        "drive_1",
        "drive_2",
        "ball_1.first",
        "tool rx",
        "tool ry",
        "tool rz",
    ):
        assert f" {name} " in text


def test_platform_stays_an_alias_and_empty_names_are_refused(ankle: Path) -> None:
    assert text_of("check", ankle, "--platform-body", "foot") == text_of(
        "check", ankle, "--platform-body", "foot"
    )
    assert "empty name" in text_of("check", ankle, "--motors", "left,,right", code=2)
