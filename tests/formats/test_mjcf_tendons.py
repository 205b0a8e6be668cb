"""Spatial tendons of MJCF files: lengths, forces and motion as MuJoCo computes them, and back again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import extra

import tauloop as tl
from conftest import ROOT
from tauloop import DescriptionError
from tauloop.formats.mjcf.reader import load_mjcf
from tauloop.model import ForceSharing
from tauloop.simulation import ConstantForce, simulate_cables

FINGER = ROOT / "examples" / "cables" / "finger.xml"
#: Two programs sum the same products of some ten factors, relative to the largest.
AGREEMENT = 1e-9
#: Rounding of lengths below one metre, m.
LENGTH_ROUNDING = 1e-14
#: Error of MuJoCo's Runge-Kutta integration with steps of 0.1 ms over 50 ms, rad.
INTEGRATION_ERROR = 1e-6
STATES = 4
SITES = (
    '<site site="wall"/><site site="upper_a"/><site site="upper_b"/><site site="lower_a"/>'
    '<pulley divisor="2.5"/><site site="upper_b"/><site site="lower_a"/>'
)


def arm(tendons: str, actuators: str = "", *, joint: str = "", extra_sections: str = "") -> str:
    """Return an arm of two links with sites for tendons."""
    return f"""<mujoco model="arm"><compiler angle="radian"/><worldbody>
<site name="wall" pos="-0.1 0.05 0.1"/><site name="floor" pos="0.2 0 -0.1"/>
<geom name="drum" type="cylinder" size="0.01 0.01" pos="0 0.1 0"/>
<body name="upper"><joint name="shoulder" axis="0 1 0" {joint}/>
<inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.011 0.002"/>
<site name="upper_a" pos="0.04 0 0.1"/><site name="upper_b" pos="0.04 0.01 0.18"/>
<body name="plate" pos="0 0 0.02"><site name="on_plate" pos="-0.02 0 0.1"/></body>
<body name="lower" pos="0 0 0.2"><joint name="wrist" axis="0 1 0"/>
<inertial pos="0.2 0 0.1" mass="0.7" diaginertia="0.01 0.012 0.003"/>
<site name="lower_a" pos="0.03 0 0.05"/><site name="lower_b" pos="-0.03 0 0.05"/></body></body>
</worldbody><tendon>{tendons}</tendon>{extra_sections}<actuator>{actuators}</actuator></mujoco>"""


def read(folder: Path, text: str) -> tl.Mechanism:
    path = folder / "arm.xml"
    path.write_text(text, encoding="utf-8")
    return load_mjcf(path)


def mujoco_state(path: Path, q: np.ndarray, v: np.ndarray, control: np.ndarray) -> tuple[Any, Any]:
    """Return MuJoCo's model and data at a state."""
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, control
    mujoco.mj_forward(model, data)
    return model, data


def moments(model: Any, data: Any) -> np.ndarray:
    """Return the velocities of MuJoCo's actuators per unit of the joints' (n_u, n_v)."""
    mujoco = extra("mujoco")
    dense = np.zeros((model.nu, model.nv))
    mujoco.mju_sparse2dense(
        dense,
        data.actuator_moment.ravel(),
        data.moment_rownnz,
        data.moment_rowadr,
        data.moment_colind,
    )
    return dense


def states(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return angles and angular velocities of two joints."""
    generator = np.random.default_rng(seed)
    return [
        (generator.uniform(-0.4, 0.4, 2), generator.uniform(-1.0, 1.0, 2)) for _ in range(STATES)
    ]


@pytest.mark.parametrize(
    ("tendon", "actuator"),
    [
        (f'<spatial name="rope">{SITES}</spatial>', '<motor tendon="rope" gear="-3"/>'),
        (
            f'<spatial name="rope" damping="2" armature="0.4">{SITES}</spatial>',
            '<motor tendon="rope" gear="-3" ctrlrange="0 50"/>',
        ),
        (
            f'<spatial name="rope" stiffness="150" damping="2" armature="0.4">{SITES}</spatial>',
            '<motor tendon="rope" ctrlrange="-50 0"/>',
        ),
        (f'<spatial name="rope" stiffness="150" springlength="0.2">{SITES}</spatial>', ""),
        (f'<spatial name="rope" damping="3">{SITES}</spatial>', ""),
        (
            '<spatial name="rope" stiffness="90" damping="2" armature="0.3" springlength="0.1">'
            '<site site="wall"/><site site="lower_b"/></spatial>',
            '<motor tendon="rope" gear="-2" ctrlrange="0 50"/>',
        ),
        (
            '<spatial name="rope" stiffness="40"><site site="floor"/><site site="on_plate"/></spatial>',
            '<general tendon="rope" gear="-1" forcerange="0 50"/>',
        ),
    ],
)
def test_lengths_and_motion_are_those_of_mujoco(tmp_path: Path, tendon: str, actuator: str) -> None:
    """Accelerations under forces, of the file and of what is written from it; the moment arms."""
    motors = actuator + '<motor name="twist" joint="shoulder"/><motor name="turn" joint="wrist"/>'
    machine = read(tmp_path, arm(tendon, motors))
    assert machine.omitted_forces == ()
    tl.convert(machine, tmp_path / "written.xml")
    tl.convert(machine, tmp_path / "written.yaml")
    pull = -7.0 if 'ctrlrange="-50' in actuator else 7.0
    forces = np.array([pull, -2.0, 0.5] if actuator else [-2.0, 0.5])
    for name in ("arm.xml", "written.xml", "written.yaml"):
        built = tl.Model(tl.load(tmp_path / name))
        platform = built.platform
        names = built.assembly.topology.velocity_names
        joints = [names.index(joint) for joint in ("shoulder", "wrist")]
        source = tmp_path / ("written.xml" if name == "written.xml" else "arm.xml")
        for q, v in states(1):
            model, data = mujoco_state(source, q, v, forces)
            motion = platform.forward_dynamics(q[None], v[None], forces[None])
            assert motion.a[0, joints] == pytest.approx(data.qacc, rel=AGREEMENT)
            arms = platform.actuator_jacobian(q[None])[0]
            assert arms == pytest.approx(moments(model, data), abs=LENGTH_ROUNDING)


@pytest.mark.parametrize("names", [("", ""), ('name="tendon_2"', ""), ("", 'name="tendon"')])
def test_each_of_several_tendons_acts_with_or_without_a_name(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    """MuJoCo needs no names of tendons. Its accelerations are the oracle."""
    rope, band = names
    tendons = (
        f'<spatial {rope} stiffness="40" springlength="0.1" armature="3">'
        '<site site="wall"/><site site="upper_a"/></spatial>'
        f'<spatial {band} damping="2" armature="5">'
        '<site site="floor"/><site site="lower_a"/></spatial>'
        '<fixed damping="0.7"><joint joint="shoulder" coef="2"/><joint joint="wrist" coef="1"/></fixed>'
        '<fixed stiffness="3" springlength="0.2"><joint joint="wrist" coef="-1"/></fixed>'
    )
    model = tl.Model(read(tmp_path, arm(tendons)))
    for q, v in states(4):
        _, data = mujoco_state(tmp_path / "arm.xml", q, v, np.zeros(0))
        joints = [model.topology.velocity_names.index(name) for name in ("shoulder", "wrist")]
        moved = model.platform.forward_dynamics(q[None], v[None], np.zeros((1, 0)))
        np.testing.assert_allclose(np.asarray(moved.a)[0, joints], data.qacc, rtol=1e-10)


def test_the_length_of_a_tendon_is_an_output_or_a_coordinate(tmp_path: Path) -> None:
    """Nothing acts on these; a constant line and a divisor count. One line with a load is a rod."""
    tendons = (
        f'<spatial name="long">{SITES}</spatial>'
        '<spatial name="still"><site site="upper_a"/><site site="on_plate"/></spatial>'
        '<spatial name="short"><site site="floor"/><site site="on_plate"/></spatial>'
        '<spatial name="sprung" stiffness="5"><site site="wall"/><site site="lower_b"/></spatial>'
    )
    machine = read(tmp_path, arm(tendons, '<motor joint="shoulder"/><motor joint="wrist"/>'))
    assert [rod.name for rod in machine.rods] == ["sprung"]
    model = tl.Model(machine)
    for q, v in states(2):
        _, data = mujoco_state(tmp_path / "arm.xml", q, v, np.zeros(2))
        state = model.inverse_kinematics(q)
        lengths = {name: float(value) for name, value in model.outputs(state.q).items()}
        lengths["sprung"] = float(state.q[model.assembly.topology.velocity_names.index("sprung")])
        expected = dict(zip(("long", "still", "short", "sprung"), data.ten_length, strict=True))
        assert lengths == pytest.approx(expected, abs=LENGTH_ROUNDING)


def test_forces_of_tendons_that_only_pull_hold_the_finger() -> None:
    """The sum of MuJoCo's moment arms times our forces is MuJoCo's own need of torque."""
    mujoco = extra("mujoco")
    machine = load_mjcf(FINGER)
    assert list(machine.cables) == ["flexor_1", "flexor_2", "extensor", "lifter"]
    platform = tl.Model(machine).platform
    for q, v in states(3):
        q = np.abs(q)  # inside the stops
        model, data = mujoco_state(FINGER, q, v, np.zeros(3))
        data.qacc[:] = 0.5, -0.8
        mujoco.mj_inverse(model, data)
        needed = np.array(data.qfrc_inverse)
        forces = platform.inverse_dynamics(
            q[None], v[None], data.qacc[None].copy(), sharing=ForceSharing(preload=3.0)
        )
        assert moments(model, data).T @ forces.force[0] == pytest.approx(needed, rel=AGREEMENT)
        first, second, *_ = forces.tension[0]
        assert (forces.tension >= -LENGTH_ROUNDING).all()
        assert second == pytest.approx(first / 2.0, rel=AGREEMENT)


def test_the_simulation_of_a_finger_is_that_of_mujoco() -> None:
    mujoco = extra("mujoco")
    model, data = mujoco_state(FINGER, np.zeros(2), np.zeros(2), np.array([5.0, 0.0, 0.0]))
    model.opt.timestep, model.opt.integrator = 1e-4, mujoco.mjtIntegrator.mjINT_RK4
    mujoco.mj_step(model, data, 500)
    motion = simulate_cables(
        tl.Model(load_mjcf(FINGER)), 0.05, force=ConstantForce((5.0, 0.0, 0.0))
    )
    for k, name in enumerate(("knuckle", "middle")):
        assert motion.coordinate(name)[-1] == pytest.approx(data.qpos[k], abs=INTEGRATION_ERROR)


def test_an_actuator_that_may_push_makes_a_strut(tmp_path: Path) -> None:
    tendon = '<spatial name="rope"><site site="wall"/><site site="lower_b"/></spatial>'
    machine = read(tmp_path, arm(tendon, '<motor name="m" tendon="rope" ctrlrange="-5 5"/>'))
    assert machine.cables == {}
    assert "tendon rope: its actuator may push" in machine.description
    muscle = '<muscle name="m" tendon="rope" lengthrange="0.1 1"/>'
    assert list(read(tmp_path, arm(tendon, muscle)).cables) == ["rope"]


def test_losses_of_a_tendon_are_those_of_its_motor(tmp_path: Path) -> None:
    """By the gear; MuJoCo's own dry friction is soft, so that accelerations do not compare."""
    loss = f'<spatial name="rope" damping="2" frictionloss="0.3">{SITES}</spatial>'
    machine = read(tmp_path, arm(loss, '<motor tendon="rope" gear="-3"/>'))
    friction = machine.actuators[0].friction
    assert friction is not None
    assert friction.viscous is not None
    assert friction.coulomb is not None
    values = [machine.value(friction.viscous), machine.value(friction.coulomb)]
    assert values == pytest.approx([2.0 / 9.0, 0.1])
    (loss_alone,) = read(tmp_path, arm(loss)).losses
    assert loss_alone.friction.coulomb is not None
    assert [name for name, _ in loss_alone.terms] == ["rope_1", "rope_2", "rope_3"]


def test_limits_of_a_tendon_are_stops_of_its_length(tmp_path: Path) -> None:
    """Less the constant lines, with a pulley on a coordinate of its own, and back in the file."""
    tendons = (
        f'<spatial name="long" range="0.3 0.6">{SITES}</spatial>'
        '<spatial name="short" range="0 0.4"><site site="wall"/><site site="lower_b"/></spatial>'
    )
    machine = read(tmp_path, arm(tendons, '<motor joint="shoulder"/><motor joint="wrist"/>'))
    short = machine.freedoms["short"]
    assert (short.lower, short.upper) == (-np.inf, 0.4)
    constant = float(np.hypot(0.01, 0.08))
    long = machine.freedoms["long_length"]
    assert [long.lower, long.upper] == pytest.approx([0.3 - constant, 0.6 - constant])
    tl.convert(machine, tmp_path / "written.xml")
    again = tl.load(tmp_path / "written.xml")
    assert (again.freedoms["short"].lower, again.freedoms["short"].upper) == (-np.inf, 0.4)
    assert again.freedoms["long_length"] == long


def test_an_equality_of_spatial_tendons_ties_their_lengths(tmp_path: Path) -> None:
    tendons = (
        '<spatial name="one"><site site="wall"/><site site="upper_a"/></spatial>'
        '<spatial name="two"><site site="upper_b"/><site site="lower_b"/></spatial>'
    )
    equality = '<equality><tendon tendon1="two" tendon2="one" polycoef="0.01 -2 0 0 0"/></equality>'
    machine = read(tmp_path, arm(tendons, '<motor joint="shoulder"/>', extra_sections=equality))
    model = tl.Model(machine)
    assert model.assembly.mobility == 1
    _, start = mujoco_state(tmp_path / "arm.xml", np.zeros(2), np.zeros(2), np.zeros(1))
    q = model.inverse_kinematics({"wrist": 0.1}).q
    names = model.assembly.topology.velocity_names
    angles = q[[names.index(joint) for joint in ("shoulder", "wrist")]]
    _, data = mujoco_state(tmp_path / "arm.xml", angles, np.zeros(2), np.zeros(1))
    first, second = data.ten_length - start.ten_length
    assert second == pytest.approx(0.01 - 2.0 * first, abs=AGREEMENT)


AROUND = '<site site="wall"/><geom geom="drum"/><site site="lower_b"/>'


@pytest.mark.parametrize(
    ("tendon", "actuator", "omitted"),
    [
        (
            f'<spatial name="rope" damping="2" stiffness="3">{AROUND}</spatial>',
            "",
            "damping, stiffness of the spatial tendon rope, which runs around drum",
        ),
        (
            f'<spatial name="rope">{AROUND}</spatial>',
            '<motor name="m" tendon="rope"/>',
            "the force of the actuator m, on tendon 'rope', which runs around drum",
        ),
        (
            '<spatial name="rope" stiffness="3"><site site="wall"/><site site="lower_b"/></spatial>',
            "",
            "the spring of the spatial tendon rope, whose rest length MuJoCo computes from springref",
        ),
        (
            '<spatial name="rope" stiffness="3" springlength="0 0.2">'
            '<site site="wall"/><site site="lower_b"/></spatial>',
            "",
            "the spring of tendon rope, which is slack between lengths 0 and 0.2",
        ),
    ],
)
def test_what_is_not_modelled_is_listed_by_name(
    tmp_path: Path, tendon: str, actuator: str, omitted: str
) -> None:
    joint = 'springref="0.2" stiffness="1"' if "springref" in omitted else ""
    machine = read(tmp_path, arm(tendon, actuator, joint=joint))
    (force,) = machine.omitted_forces
    assert force.startswith(omitted)
    assert "it is a strut" not in machine.description


@pytest.mark.parametrize(
    ("tendon", "where", "what"),
    [
        ('<spatial name="r"><site site="wal"/></spatial>', "r", "there is no site 'wal'"),
        (
            '<spatial name="r"><site site="wall"/></spatial>',
            "r",
            "there are no two successive sites",
        ),
        (
            '<spatial name="r"><pulley divisor="0"/><site site="wall"/><site site="floor"/></spatial>',
            "r",
            "the divisor of a pulley is 0",
        ),
    ],
)
def test_wrong_paths_are_refused(tmp_path: Path, tendon: str, where: str, what: str) -> None:
    with pytest.raises(DescriptionError) as caught:
        read(tmp_path, arm(tendon))
    problem = caught.value.problems[0]
    assert problem.where == where
    assert problem.what.startswith(what)


@pytest.mark.parametrize("name", ["hanging.yaml", "cable_robot"])
def test_cables_of_a_machine_file_are_tendons(tmp_path: Path, name: str) -> None:
    """MuJoCo has no bodies for them; bounds, stretch and fixed lengths come back."""
    path = ROOT / "examples" / "cables" / name
    machine = tl.load(path if path.is_file() else name)
    tl.convert(machine, tmp_path / "written.xml")
    mujoco = extra("mujoco")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "written.xml"))
    assert model.ntendon == len(machine.cables)
    again = tl.load(tmp_path / "written.xml")
    for rod, other in zip(machine.rods, again.rods, strict=True):
        assert rod.tension is not None
        assert other.tension is not None
        bounds = rod.tension.least, rod.tension.greatest, rod.tension.restitution
        assert bounds == (other.tension.least, other.tension.greatest, other.tension.restitution)
        for key in ("stiffness", "damping"):
            pair = getattr(rod.tension, key), getattr(other.tension, key)
            values = [
                None if x is None else m.value(x)
                for x, m in zip(pair, (machine, again), strict=True)
            ]
            assert values[0] == values[1]
        assert (rod.length is None) == (other.length is None)
        if rod.length is not None and other.length is not None:
            assert again.value(other.length) == machine.value(rod.length)
