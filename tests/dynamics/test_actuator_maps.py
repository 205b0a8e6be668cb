"""Actuator maps of ankles: by hand, by MuJoCo, both ways, and what is refused or reported.

The ankles are the examples of `examples/ankles`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from closed_in_mujoco import ClosedInMujoco, null_space

import tauloop as tl
from tauloop.compiler.c import Interpreted
from tauloop.dynamics import MapStatus

ANKLES = Path(__file__).parents[2] / "examples" / "ankles"
NAMES = ("two_rods", "four_bar", "linear")
JOINTS = ["pitch", "roll"]
#: Rounding of positions in rad, and of velocities and efforts of size one, through a Jacobian of
#: condition below 4 and gear ratios up to 1300.
ROUNDING = 1e-11
#: MuJoCo's loops are closed to 1e-13 m, levers are 0.05 m and gears have ratios up to 1300.
CLOSURE = 1e-8


@cache
def ankle(name: str) -> tl.ActuatorMap:
    return tl.ActuatorMap(ANKLES / f"{name}.yaml", joints=JOINTS)


def positions(actuator_map: tl.ActuatorMap, count: int) -> np.ndarray:
    """Return random joint positions within the limits."""
    rng = np.random.default_rng(3)
    lower, upper = actuator_map.joint_range.T
    return rng.uniform(lower, upper, size=(count, len(lower)))


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_lead_back(name):
    """Newton's iterations from fitted start values find every pose of the whole range."""
    actuator_map = ankle(name)
    rng = np.random.default_rng(0)
    q = np.concatenate([positions(actuator_map, 3000), actuator_map.joint_grid(9)])
    rates, efforts = rng.normal(size=(2, *q.shape))
    motors = actuator_map.joint_to_actuator(q, rates, efforts)
    joints = actuator_map.actuator_to_joint(motors.position, motors.velocity, motors.effort)
    assert motors.is_valid.all()
    assert joints.is_valid.all()
    assert joints.position == pytest.approx(q, abs=ROUNDING)
    assert joints.velocity == pytest.approx(rates, abs=ROUNDING)
    assert joints.effort == pytest.approx(efforts, abs=ROUNDING)
    power = np.einsum("ni,ni->n", motors.effort, motors.velocity)
    assert power == pytest.approx(np.einsum("ni,ni->n", efforts, rates), abs=ROUNDING)


def test_cranks_of_the_two_rods_by_hand():
    """The crank angle solves |A - B| = L with one equation A cos + B sin = C for each rod."""
    q = np.array([[0.3, -0.2], [-0.5, 0.1]])
    motors = ankle("two_rods").joint_to_actuator_position(q)
    crank, setback, half_width, heel, rise = 0.05, 0.01, 0.032, 0.045, 0.018
    for i, (pitch, roll) in enumerate(q):
        for k, (height, side) in enumerate(((0.26, 1.0), (0.18, -1.0))):
            turn_y = np.array(
                [[np.cos(pitch), 0, np.sin(pitch)], [0, 1, 0], [-np.sin(pitch), 0, np.cos(pitch)]]
            )
            turn_x = np.array(
                [[1, 0, 0], [0, np.cos(roll), -np.sin(roll)], [0, np.sin(roll), np.cos(roll)]]
            )
            heel_point = turn_y @ turn_x @ np.array([-heel, side * half_width, rise])
            length = np.hypot(setback + crank - heel, height - rise)
            x, y, z = heel_point - np.array([-setback, side * half_width, height])
            # |(-c cos a, 0, c sin a) - (x, y, z)|^2 = L^2
            constant = (length**2 - crank**2 - x**2 - y**2 - z**2) / (2 * crank)
            angle = np.arctan2(-z, x) + np.array([1, -1]) * np.arccos(constant / np.hypot(x, z))
            angle = (angle + np.pi) % (2 * np.pi) - np.pi
            assert motors[i, k] / 16 == pytest.approx(angle[np.abs(angle).argmin()], abs=1e-12)


@pytest.fixture(scope="module", params=NAMES)
def converted(request, tmp_path_factory) -> tuple[tl.ActuatorMap, Path]:
    """Return the map of an ankle, and its file for MuJoCo."""
    path = tmp_path_factory.mktemp(request.param) / "ankle.xml"
    tl.convert(ANKLES / f"{request.param}.yaml", path)
    return ankle(request.param), path


@pytest.fixture
def both(converted) -> tuple[tl.ActuatorMap, ClosedInMujoco]:
    """Return the map of an ankle, and the ankle in MuJoCo."""
    return converted[0], ClosedInMujoco(converted[1])


def closed_at(mujoco: ClosedInMujoco, q: np.ndarray) -> np.ndarray:
    """Close MuJoCo's loops at joint angles, in small steps from the reference; return its motions.

    They are velocities of all coordinates (n_v, n) per unit of the joints' velocities.
    """
    mujoco.data.qpos[:] = mujoco.model.qpos0
    for share in np.linspace(0.0, 1.0, 9):
        mujoco.close({"pitch": share * q[0], "roll": share * q[1]}, {})
    _, J = mujoco.equations()
    motions = null_space(J)
    places = [int(mujoco.model.joint(name).dofadr[0]) for name in JOINTS]
    return motions @ np.linalg.inv(motions[places])


def moments(mujoco: ClosedInMujoco) -> np.ndarray:
    """Return MuJoCo's motor velocities per velocity of all coordinates (n_u, n_v)."""
    data, model = mujoco.data, mujoco.model
    dense = np.zeros((model.nu, model.nv))
    mujoco.mujoco.mju_sparse2dense(
        dense, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    )
    return dense


def test_positions_and_velocities_are_those_of_mujoco(both):
    actuator_map, mujoco = both
    closed_at(mujoco, np.zeros(2))
    start = np.array(mujoco.data.actuator_length)
    zero = actuator_map.joint_to_actuator_position([0.0, 0.0])
    for q in positions(actuator_map, 6):
        motions = closed_at(mujoco, q)
        motors = actuator_map.joint_to_actuator(q)
        length = np.array(mujoco.data.actuator_length)
        assert motors.position - zero == pytest.approx(length - start, abs=CLOSURE)
        assert motors.jacobian == pytest.approx(moments(mujoco) @ motions, abs=100 * CLOSURE)
        back = actuator_map.actuator_to_joint_position(zero + length - start)
        assert back == pytest.approx(q, abs=CLOSURE)


def test_torques_that_hold_the_weight_are_those_of_mujoco(both):
    """MuJoCo's gravity at the joints, by virtual work, becomes its holding torques at the motors."""
    actuator_map, mujoco = both
    for q in positions(actuator_map, 4):
        motions = closed_at(mujoco, q)
        held, _ = mujoco.holding_forces(moments(mujoco))
        gravity = motions.T @ mujoco.data.qfrc_inverse
        assert np.abs(gravity).max() > 0.1
        efforts = actuator_map.joint_to_actuator_effort(q, gravity)
        assert efforts == pytest.approx(held, abs=CLOSURE)
        motors = actuator_map.joint_to_actuator_position(q)
        assert actuator_map.actuator_to_joint_effort(motors, held) == pytest.approx(
            gravity, abs=CLOSURE
        )


def test_reflected_inertia_is_that_of_mujoco(both):
    """The difference of joint-space mass matrices without armatures, and without cranks and rods."""
    actuator_map, mujoco = both
    model = mujoco.model
    armature, mass = np.array(model.dof_armature), np.array(model.body_mass)
    inertia = np.array(model.body_inertia)
    between = [i for i in range(model.nbody) if model.body(i).name not in ("cross", "foot")]
    for q in positions(actuator_map, 3):
        motions = closed_at(mujoco, q)
        whole = joint_inertia(mujoco, motions)
        model.dof_armature[:] = 0.0
        without_motors = joint_inertia(mujoco, motions)
        model.body_mass[between], model.body_inertia[between] = 0.0, 0.0
        carried = joint_inertia(mujoco, motions)
        model.dof_armature[:], model.body_mass[:], model.body_inertia[:] = armature, mass, inertia
        motors = actuator_map.reflected_inertia(q)
        every = actuator_map.reflected_inertia(q, include_links=True)
        assert motors == pytest.approx(whole - without_motors, abs=CLOSURE)
        assert every == pytest.approx(whole - carried, abs=CLOSURE)
        assert np.linalg.eigvalsh(motors).min() > 0.0


def joint_inertia(mujoco: ClosedInMujoco, motions: np.ndarray) -> np.ndarray:
    """Return MuJoCo's mass matrix in joint coordinates."""
    engine, model, data = mujoco.mujoco, mujoco.model, mujoco.data
    engine.mj_fwdPosition(model, data)
    M = np.zeros((model.nv, model.nv))
    engine.mj_fullM(model, data, M)
    return motions.T @ M @ motions


def test_order_of_joints_is_that_of_the_call():
    q = np.array([0.2, -0.1])
    usual, swapped = ankle("two_rods"), tl.ActuatorMap(ANKLES / "two_rods.yaml", ["roll", "pitch"])
    assert swapped.joint_to_actuator_position(q[::-1]) == pytest.approx(
        usual.joint_to_actuator_position(q), abs=1e-14
    )
    assert swapped.jacobian(q[::-1]) == pytest.approx(usual.jacobian(q)[:, ::-1], abs=1e-12)
    motors = usual.joint_to_actuator_position(q)
    assert swapped.actuator_to_joint_position(motors) == pytest.approx(q[::-1], abs=1e-13)
    inertia = usual.reflected_inertia(q)
    assert swapped.reflected_inertia(q[::-1]) == pytest.approx(inertia[::-1, ::-1], abs=1e-15)


def with_hip(tmp_path: Path, hip: str) -> Path:
    """Return the file of the two-rod ankle below a hip joint with a motor of its own."""
    text = (ANKLES / "two_rods.yaml").read_text(encoding="utf-8")
    text = text.replace("parent: base", "parent: shank").replace("on: base", "on: shank")
    text = text.replace("bodies:\n", "bodies:\n  shank: {mass: 2 kg}\n", 1)
    text = text.replace(
        "joints:\n", f"joints:\n  hip: {{type: {hip}, parent: base, child: shank}}\n", 1
    )
    text = text.replace("actuators:\n", "actuators:\n  hip_motor: {on: hip}\n", 1)
    path = tmp_path / "leg.yaml"
    path.write_text(text.replace("[pitch, roll]", "[hip, pitch, roll]"), encoding="utf-8")
    return path


@pytest.mark.parametrize("hip", ["revolute, axis: y", "prismatic, axis: z"])
def test_joints_of_a_leg_are_mapped_apart_from_the_others(tmp_path, hip):
    leg = tl.ActuatorMap(with_hip(tmp_path, hip), JOINTS)
    q = np.array([[0.3, 0.1], [-0.4, -0.2]])
    assert leg.actuators == ("upper_motor", "lower_motor")
    alone = ankle("two_rods")
    assert leg.joint_to_actuator_position(q) == pytest.approx(
        alone.joint_to_actuator_position(q), abs=1e-12
    )
    assert leg.reflected_inertia(q, include_links=True) == pytest.approx(
        alone.reflected_inertia(q, include_links=True), abs=1e-12
    )


def test_a_sample_out_of_reach_has_a_status():
    actuator_map = ankle("two_rods")
    motors = actuator_map.joint_to_actuator_position([0.0, 0.0])
    targets = motors + np.array([[0.0, 0.0], [30.0, -30.0], [1.0, -1.0]])
    joints = actuator_map.actuator_to_joint(targets)
    assert joints.sample_status[0] == MapStatus.SUCCESS
    assert joints.sample_status[1] == MapStatus.NOT_CONVERGED
    assert np.isnan(joints.position[1]).all()
    assert np.isnan(joints.effort[1]).all()
    assert np.isnan(joints.jacobian[1]).all()
    assert np.isfinite(joints.position[[0, 2]]).all()
    assert joints.is_valid.tolist() == [True, False, True]
    assert joints.status == "doubtful"
    with pytest.raises(tl.PoseError, match=r"position of the motors: sample 1: .*\n.*remedy"):
        actuator_map.actuator_to_joint_position(targets)


def test_beyond_a_singular_pose_is_another_mode():
    """A four-bar folds where crank and coupler are in line: the loops close beyond it."""
    actuator_map = ankle("four_bar")
    states = actuator_map.joint_to_actuator([[0.0, 0.0], [1.5, 0.0], [2.5, 0.0]])
    expected = [MapStatus.SUCCESS, MapStatus.UNREACHABLE, MapStatus.OTHER_MODE]
    assert states.sample_status.tolist() == expected
    assert np.isnan(states.position[1:]).all()


def test_positions_beyond_stops_are_reported():
    actuator_map = ankle("linear")
    states = actuator_map.joint_to_actuator([[0.0, 0.0], [0.0, 0.5], [-0.75, 0.3]])
    expected = [MapStatus.SUCCESS, MapStatus.JOINT_LIMITS, MapStatus.ACTUATOR_LIMITS]
    assert states.sample_status.tolist() == expected
    assert np.isfinite(states.position).all()
    assert [item.value for item in states.diagnostics[:2]] == [1.0, 1.0]


def test_interpreted_values_are_those_of_machine_code():
    model = tl.Model(ANKLES / "two_rods.yaml", evaluator=Interpreted())
    slow, fast = tl.ActuatorMap(model, JOINTS), ankle("two_rods")
    q = positions(fast, 5)
    motors = fast.joint_to_actuator_position(q)
    assert slow.joint_to_actuator_position(q) == pytest.approx(motors, abs=ROUNDING)
    assert slow.actuator_to_joint_position(motors) == pytest.approx(q, abs=ROUNDING)


def test_limits_of_joints_are_those_that_motors_allow():
    """The range of screws ends before that of the joints; corners are found to 1e-6 of the range."""
    actuator_map = ankle("linear")
    limits = actuator_map.limits_of_joints()
    assert limits.lower == pytest.approx(np.radians([-45, -20]), abs=1e-9)
    q = np.array([0.2, 0.1])
    here = actuator_map.limits_of_joints(q)
    J = actuator_map.jacobian(q)
    for k, unit in enumerate(np.eye(2)):
        speeds = np.abs(J @ (here.velocity[0, k] * unit))
        assert speeds.max() == pytest.approx(480.0)
        efforts = np.abs(actuator_map.joint_to_actuator_effort(q, here.effort[0, k] * unit))
        assert efforts.max() == pytest.approx(1.2)
    grid = actuator_map.joint_grid(41)
    allowed = grid[actuator_map.joint_to_actuator(grid).sample_status == MapStatus.SUCCESS]
    everywhere = actuator_map.limits_of_joints(allowed)
    assert limits.velocity == pytest.approx(everywhere.velocity.min(axis=0), rel=0.02)
    assert np.all(limits.velocity <= everywhere.velocity.min(axis=0) + 1e-12)
    assert np.all(limits.effort <= everywhere.effort.min(axis=0) + 1e-12)


def test_limits_of_actuators_cover_what_joints_use():
    actuator_map = ankle("two_rods")
    limits = actuator_map.limits_of_actuators(velocity=[6.0, 4.0], effort=[60.0, 20.0])
    grid = actuator_map.joint_grid(15)
    q = np.concatenate([grid, grid])
    signs = np.repeat([[1.0, 1.0], [1.0, -1.0]], len(grid), axis=0)
    motors = actuator_map.joint_to_actuator(q, signs * [6.0, 4.0], signs * [60.0, 20.0])
    assert np.all(motors.position >= limits.lower - 1e-9)
    assert np.all(motors.position <= limits.upper + 1e-9)
    assert np.abs(motors.velocity).max(axis=0) == pytest.approx(limits.velocity, rel=0.01)
    assert np.all(np.abs(motors.velocity) <= limits.velocity + 1e-9)
    assert np.abs(motors.effort).max(axis=0) == pytest.approx(limits.effort, rel=0.01)
    assert np.all(np.abs(motors.effort) <= limits.effort + 1e-9)
    assert np.isinf(actuator_map.limits_of_actuators().effort).all()


def test_targets_are_clipped_in_the_space_of_the_motors():
    actuator_map = ankle("two_rods")
    q = np.array([[0.1, 0.1], [0.1, 0.1]])
    efforts = actuator_map.clip_joint_effort(q, [[100.0, 0.0], [5.0, 1.0]])
    motors = actuator_map.joint_to_actuator_effort(q, efforts)
    assert np.abs(motors[0]).max() == pytest.approx(2.4)
    assert efforts[1] == pytest.approx([5.0, 1.0])
    rates = actuator_map.clip_joint_velocity(q, [[20.0, 0.0], [1.0, 1.0]])
    assert np.abs(actuator_map.joint_to_actuator_velocity(q, rates)).max() == pytest.approx(190.0)
    assert rates[1] == pytest.approx([1.0, 1.0])
    screws = ankle("linear")
    clipped = screws.clip_joint_position([[-0.75, 0.3], [0.1, 0.1]])
    lengths = screws.joint_to_actuator_position(clipped) * 0.005 / (2 * np.pi)
    assert lengths.max() == pytest.approx(0.29, abs=1e-9)
    assert clipped[1] == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize(
    ("joints", "message"),
    [
        (["pich", "roll"], "'pich' is not a joint coordinate"),
        (["pitch", "pitch"], "names pitch 2 times"),
        (["pitch"], "upper_motor moves with the named joints and with roll"),
        ([3], "contains 3, which is of type int"),
    ],
)
def test_joints_that_do_not_fit_are_refused(joints, message):
    with pytest.raises(tl.InputError, match=message):
        tl.ActuatorMap(ANKLES / "two_rods.yaml", joints)


def test_more_motors_than_joints_are_refused(tmp_path):
    text = (ANKLES / "two_rods.yaml").read_text(encoding="utf-8")
    path = tmp_path / "three.yaml"
    path.write_text(text.replace("actuators:\n", "actuators:\n  spare: {on: pitch}\n"), "utf-8")
    with pytest.raises(tl.InputError, match=r"3 motors .* move 2 joints \(pitch, roll\)"):
        tl.ActuatorMap(path, JOINTS)


def test_a_crank_may_be_named_as_a_joint():
    """Any independent coordinates will do: here the map is partly a gear ratio."""
    actuator_map = tl.ActuatorMap(ANKLES / "two_rods.yaml", ["pitch", "upper"])
    assert actuator_map.jacobian([0.0, 0.0])[0] == pytest.approx([0.0, 16.0])


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(tl.InputError, match="not finite"):
        ankle("linear").joint_to_actuator([[0.0, np.nan]])
