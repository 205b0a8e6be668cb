"""Starts of imported machines: within the ranges of their joints, or at a keyframe; MuJoCo and planes by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

from tauloop import Model, load
from tauloop.common.errors import DescriptionError, InputError
from tauloop.common.result import Status
from tauloop.formats.mjcf.reader import load_mjcf
from tauloop.formats.options import ImportOptions, RodRecognition
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.kinematics import check, describe, random_states

CASES = Path(__file__).parents[1] / "cases"
#: Positions by two routes through a short chain of rotations, m.
SAME_PLACE = 1e-12


def distinct(states: np.ndarray) -> int:
    return len(np.unique(states.round(9), axis=0))


def test_an_arm_whose_zero_is_outside_a_range_starts_inside():
    model = Model(load(CASES / "arm_range.xml"))
    assert np.degrees(model.assembly.q) == pytest.approx([0, 65])
    assert (
        "j2 starts at 65 deg, because its position in the file, 0 deg, is outside its range"
        in model.mechanism.description
    )
    assert distinct(model.assembly.states) == 37
    assert distinct(random_states(model, 60, np.random.default_rng(0)).q) > 30


def test_a_loop_whose_zero_is_outside_a_range_starts_inside_and_its_states_differ():
    """In the plane of the hinges, by hand: crank, rod and foot close the triangle of their pins."""
    model = Model(load(CASES / "plantar_limits.xml"))
    assert not model.assembly.findings
    assert model.assembly.mobility == 1
    assert model.assembly.passive == ()
    assert distinct(model.assembly.states) > 20
    q = dict(zip(model.topology.coordinate_names, model.assembly.q, strict=True))
    assert -140 < np.degrees(q["foot_joint"]) < -30

    def turned(vector: list[float], angle: float) -> np.ndarray:
        c, s = np.cos(angle), np.sin(angle)
        return np.array([[c, -s], [s, c]]) @ vector

    both = q["crank_joint"] + q["rod_joint"]
    anchor = [0.35012, 0]
    crank = np.array([0.058, -0.034]) + turned([0.055, 0], q["crank_joint"]) + turned(anchor, both)
    on_foot = np.array([0.058 + 0.055 + 0.35012, -0.034]) - [0.408, -0.04]
    assert crank == pytest.approx(
        np.array([0.408, -0.04]) + turned(on_foot, q["foot_joint"]), abs=1e-9
    )
    checked = check(model)
    assert (checked.status, checked.as_dict()["undriven"]) == (Status.OK, [])


EVERY_KIND = """
<mujoco model="every"><compiler angle="degree"/>
  <worldbody>
    <body name="hull" pos="0 0 1"><freejoint name="float"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
      <frame pos="0.1 0 0" euler="0 30 0">
        <body name="arm" pos="0.2 0 0"><joint name="turn" axis="0 1 1" ref="15" range="10 90" pos="0.01 0.02 0"/>
          <joint name="slide" type="slide" axis="1 0 0"/>
          <inertial pos="0.1 0 0.02" mass="1" diaginertia="0.01 0.02 0.02"/>
          <body name="hand" pos="0.3 0 0"><joint name="ball" type="ball"/>
            <inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
            <body name="finger" pos="0.1 0.1 0"><joint name="bend" axis="1 0 0"/>
              <inertial pos="0 0.1 0" mass="1" diaginertia="0.01 0.02 0.02"/></body></body></body>
      </frame></body>
  </worldbody>
  <actuator><motor joint="turn"/><motor joint="bend"/></actuator>
  <keyframe>
    <key name="zero"/>
    <key name="home" qpos="0.3 -0.2 1.4  0.5 0.5 -0.5 0.5  0.9 0.07  1.6 0 1.2 0  -0.4"/>
    <key name="short" qpos="0 0 0"/>
  </keyframe>
</mujoco>
"""


def test_a_keyframe_is_the_pose_that_mujoco_has_there(tmp_path):
    mujoco = extra("mujoco")
    path = tmp_path / "every.xml"
    path.write_text(EVERY_KIND, encoding="utf-8")
    theirs = mujoco.MjModel.from_xml_string(
        EVERY_KIND.replace('<key name="short" qpos="0 0 0"/>', "")
    )
    data = mujoco.MjData(theirs)
    mujoco.mj_resetDataKeyframe(theirs, data, 1)
    mujoco.mj_kinematics(theirs, data)
    machine = load(path, options=ImportOptions(keyframe="home"))
    assert "the start pose is keyframe home" in machine.description
    model = Model(machine)
    geometry = machine_geometry(model, model.assembly.q)
    for name in ("hull", "arm", "hand", "finger"):
        i, body = geometry.shape.index[name], data.body(name)
        assert geometry.origins[0, i] == pytest.approx(body.xpos, abs=SAME_PLACE)
        assert geometry.rotations[0, i] == pytest.approx(body.xmat.reshape(3, 3), abs=SAME_PLACE)


def test_keyframes_are_listed_and_wrong_ones_refused(tmp_path):
    path = tmp_path / "every.xml"
    path.write_text(EVERY_KIND, encoding="utf-8")
    machine = load_mjcf(path)
    assert "keyframes available as start: zero, home, short" in machine.description
    assert load_mjcf(path, options=ImportOptions(keyframe="zero")).joints == machine.joints
    with pytest.raises(DescriptionError, match="there is no keyframe 'hoem'") as wrong:
        load_mjcf(path, options=ImportOptions(keyframe="hoem"))
    assert "home" in wrong.value.problems[0].remedy
    with pytest.raises(
        DescriptionError, match="qpos has 3 numbers, but the joints have 14 coordinates"
    ):
        load_mjcf(path, options=ImportOptions(keyframe="short"))
    with pytest.raises(InputError, match="machine file"):
        load("delta", options=ImportOptions(keyframe="home"))


def test_a_keyframe_beyond_a_range_is_moved_to_its_near_end(tmp_path):
    path = tmp_path / "every.xml"
    path.write_text(EVERY_KIND.replace("0.9 0.07", "1.8 0.07"), encoding="utf-8")
    machine = load_mjcf(path, options=ImportOptions(keyframe="home"))
    (turn,) = (joint for joint in machine.joints if joint.name == "turn")
    assert turn.reference == pytest.approx([np.pi / 2])
    assert (
        "turn starts at 90 deg, because its position in the file, 103.1 deg" in machine.description
    )


def test_a_keyframe_is_the_reference(tmp_path):
    """Also where rods are made of links afterwards."""
    path = tmp_path / "every.xml"
    path.write_text(EVERY_KIND, encoding="utf-8")
    reference = describe(load(path, options=ImportOptions(keyframe="home"))).as_dict()["assembly"][
        "reference"
    ]
    assert reference["turn"] == pytest.approx(0.9)
    assert [reference[f"ball.q{axis}"] for axis in "wxyz"] == pytest.approx([0.8, 0, 0.6, 0])
    made = load(path, options=ImportOptions(keyframe="home", rods=RodRecognition()))
    assert Model(made).assembly.q == pytest.approx(list(reference.values()))


URDF = """
<robot name="arm"><link name="world"/>
  <link name="a"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="world"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="0.2" upper="1.0" effort="1" velocity="1"/></joint>
</robot>
"""


def test_a_urdf_says_that_its_start_was_moved(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF, encoding="utf-8")
    machine = load(path)
    assert (
        "j starts at 34.38 deg, because its position in the file, 0 deg, is outside its range"
        in machine.description
    )
    assert Model(machine).assembly.q == pytest.approx([0.6])


FREE = """<mujoco><compiler %s/><worldbody><body name="a"><freejoint %s/><geom size="0.1" pos="0.3 0 0"/>
%s</body></worldbody><keyframe><key name="up" qpos="0 0 2 1 0 0 0"/></keyframe></mujoco>"""
CHILD = '<body name="b"><geom size="0.1"/></body>'


@pytest.mark.parametrize(
    ("compiler", "joint", "child"),
    [
        ("", "", ""),
        ('alignfree="true"', "", ""),
        ('alignfree="true"', 'align="false"', ""),
        ("", 'align="true"', ""),
        ("", 'align="true"', CHILD),
    ],
)
def test_a_keyframe_of_a_body_that_mujoco_aligns_is_refused(
    tmp_path: Path, compiler: str, joint: str, child: str
) -> None:
    """MuJoCo's own position of the body's geom in the keyframe, where the file is read."""
    mujoco = extra("mujoco")
    text = FREE % (compiler, joint, child)
    data = mujoco.MjData(engine := mujoco.MjModel.from_xml_string(text))
    mujoco.mj_resetDataKeyframe(engine, data, 0)
    mujoco.mj_kinematics(engine, data)
    is_aligned = data.geom_xpos[0][0] != pytest.approx(0.3)
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    if is_aligned:
        with pytest.raises(DescriptionError, match="aligns this body with its inertia"):
            load(tmp_path / "m.xml", keyframe="up")
    else:
        assert load(tmp_path / "m.xml", keyframe="up").joints[0].reference[2] == 2.0
    load(tmp_path / "m.xml")
