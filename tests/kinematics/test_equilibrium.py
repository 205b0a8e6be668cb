"""Passive freedoms that come to rest while motors hold their positions: against MuJoCo's damped motion and statics."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from extras import extra
from scipy.optimize import brentq

import tauloop as tl
from tauloop.common.result import Status

GRIPPER = Path(__file__).parents[1] / "cases" / "robotiq_gripper.xml"
#: MuJoCo's stops and loops are springs: what they give way to the forces of this gripper, rad.
SOFTNESS = 2e-4

HANGING = """<mujoco><compiler angle="radian"/>{option}<worldbody>
 <body name="arm"><joint name="motor" axis="0 1 0"/><inertial mass="1" pos="0.2 0 0" diaginertia="0.01 0.01 0.01"/>
  <body name="bob" pos="0.4 0 0">
   <joint name="sprung" axis="0 1 0" {spring}/>
   <inertial mass="0.5" pos="0.1 0 0" diaginertia="0.002 0.002 0.002"/>
  </body>
 </body></worldbody>
 <actuator><motor name="drive" joint="motor"/></actuator></mujoco>"""


def at_rest(path: Path, actuators: dict[str, float | str]) -> tuple[tl.Poses, dict[str, float]]:
    """The poses, and the coordinates of the first by name."""
    poses = tl.forward_kinematics(tl.load(path), actuators)
    return poses, dict(zip(poses.coordinates, poses.q[0].tolist(), strict=True))


def mujoco_rest(path: Path, motor: float) -> dict[str, float]:
    """Joint angles at which MuJoCo's damped motion ends, its motor a stiff servo."""
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.timestep = 2e-4
    model.dof_damping[:] += 0.005
    model.eq_solref[:] = (0.0005, 1.0)
    model.eq_solimp[:] = (0.9999, 0.99999, 1e-4, 0.5, 2.0)
    model.jnt_solref[:] = (0.0005, 1.0)
    model.jnt_solimp[:] = (0.9999, 0.99999, 1e-4, 0.5, 2.0)
    model.actuator_forcelimited[:] = 0
    data = mujoco.MjData(model)
    for _ in range(20000):
        data.ctrl[0] = 200.0 * (motor - data.actuator_length[0]) - 2.0 * data.actuator_velocity[0]
        mujoco.mj_step(model, data)
    assert np.abs(data.qvel).max() < 1e-9
    return {model.joint(i).name: float(data.qpos[i]) for i in range(model.njnt)}


@pytest.mark.parametrize("motor", [0.3, 0.6])
def test_a_sprung_gripper_rests_where_mujocos_damped_motion_ends(motor):
    expected = mujoco_rest(GRIPPER, motor)
    # the servo gives way too: the comparison is at the angle that it holds
    held = 0.5 * (expected["right_crank"] + expected["left_crank"])
    poses, coordinates = at_rest(GRIPPER, {"fingers": held})
    assert poses.status is Status.OK, poses.advice
    assert poses.resting == ("right_fingertip_joint", "left_fingertip_joint")
    assert set(poses.at_stops) == {"right_knuckle_joint", "left_knuckle_joint"}
    for name, angle in expected.items():
        assert coordinates[f"{name}_joint"] == pytest.approx(angle, abs=SOFTNESS), name


def test_a_sprung_pendulum_rests_where_its_torques_balance(tmp_path):
    path = tmp_path / "hanging.xml"
    path.write_text(HANGING.format(option="", spring='stiffness="2" springref="0.3"'))
    poses, coordinates = at_rest(path, {"drive": 0.4})

    def torque(angle: float) -> float:
        return 2.0 * (angle - 0.3) - 0.5 * 9.81 * 0.1 * np.cos(0.4 + angle)

    assert poses.status is Status.OK, poses.advice
    assert poses.at_stops == ()
    assert coordinates["sprung"] == pytest.approx(brentq(torque, -1.0, 1.0), abs=1e-9)


def test_a_pendulum_comes_to_rest_at_the_stop_before_it_hangs(tmp_path):
    path = tmp_path / "stopped.xml"
    path.write_text(HANGING.format(option="", spring='range="-3 3" limited="true"'))
    poses, coordinates = at_rest(path, {"drive": -np.pi / 2})
    assert poses.status is Status.OK, poses.advice
    assert coordinates["sprung"] == pytest.approx(3.0, abs=1e-9)
    assert poses.at_stops == ("sprung",)


def test_a_freedom_that_nothing_holds_is_named(tmp_path):
    path = tmp_path / "loose.xml"
    path.write_text(HANGING.format(option='<option gravity="0 0 0"/>', spring=""))
    poses, coordinates = at_rest(path, {"drive": 0.4})
    assert poses.status is Status.DOUBTFUL
    assert "sprung" in poses.advice[0]
    assert "give their positions too" in poses.advice[0]
    assert coordinates["sprung"] == 0.0


def test_positions_that_are_stated_stay(tmp_path):
    path = tmp_path / "stated.xml"
    path.write_text(HANGING.format(option="", spring='stiffness="2"'))
    poses, coordinates = at_rest(path, {"drive": 0.4, "sprung": "10 deg"})
    assert poses.status is Status.OK
    assert poses.resting == ()
    assert coordinates["sprung"] == pytest.approx(np.radians(10))


FALLING = """<mujoco><worldbody>
 <body name="cart"><joint name="rail" type="slide" axis="0 0 1" {range}/>
  <inertial mass="1" pos="0 0 0" diaginertia="0.01 0.01 0.01"/>
  <body name="arm"><joint name="motor" axis="0 1 0"/>
   <inertial mass="1" pos="0.2 0 0" diaginertia="0.01 0.01 0.01"/></body>
 </body></worldbody>
 <actuator><motor name="drive" joint="motor"/></actuator></mujoco>"""


def test_what_falls_without_end_stays_at_the_reference_and_is_named(tmp_path):
    path = tmp_path / "falling.xml"
    path.write_text(FALLING.format(range=""))
    poses, coordinates = at_rest(path, {"drive": 0.4})
    assert poses.status is Status.DOUBTFUL
    assert "reached no equilibrium of rail" in poses.advice[0]
    assert (coordinates["rail"], poses.resting) == (0.0, ())
    json.loads(json.dumps(poses.as_dict(), allow_nan=False))


def test_what_lies_on_its_stop_stays_there(tmp_path):
    path = tmp_path / "lying.xml"
    path.write_text(FALLING.format(range='limited="true" range="0 1"'))
    poses, coordinates = at_rest(path, {"drive": 0.4})
    assert poses.status is Status.OK, poses.advice
    assert coordinates["rail"] == pytest.approx(0.0, abs=1e-12)
    assert poses.at_stops == ("rail",)
