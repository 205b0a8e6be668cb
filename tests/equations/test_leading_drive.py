"""Actuators over several coordinates: those that couplings tie count once, those that loops tie are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from extras import extra

from tauloop import Model, load
from tauloop.common.errors import AssemblyError
from tauloop.equations.ports import ACTUATORS
from tauloop.kinematics import random_states

#: Forces by two routes, relative to the largest.
SAME_FORCE = 1e-10

TWO_ARMS = """<mujoco><compiler angle="radian"/><worldbody>
 <body name="a"><joint name="qa" axis="0 1 0"/><inertial mass="1" pos="0.2 0 0" diaginertia="0.01 0.02 0.02"/>
  <body name="c" pos="0.4 0 0"><joint name="qc" axis="0 1 0"/>
   <inertial mass="0.4" pos="0.1 0 0.1" diaginertia="0.001 0.002 0.002"/></body>
 </body>
 <body name="b" pos="0 0.5 0"><joint name="qb" axis="0 1 0"/>
  <inertial mass="2" pos="0.3 0 0" diaginertia="0.02 0.03 0.03"/></body>
</worldbody>
<tendon><fixed name="belt"><joint joint="qa" coef="0.7"/><joint joint="qb" coef="-0.4"/></fixed></tendon>
<equality>{equality}</equality>
<actuator><motor name="pull" tendon="belt" gear="3"/><motor name="elbow" joint="qc"/></actuator></mujoco>"""
COUPLED = TWO_ARMS.format(equality='<joint joint1="qb" joint2="qa" polycoef="0.25 1.5 0 0 0"/>')
FREE = TWO_ARMS.format(equality="")
FOUR_BAR = """<mujoco><worldbody>
 <body name="crank"><joint name="qa" axis="0 1 0"/><inertial mass="1" pos="0.1 0 0" diaginertia="0.01 0.01 0.01"/>
  <body name="rod" pos="0 0 0.2"><joint name="qr" axis="0 1 0"/>
   <inertial mass="1" pos="0.2 0 0" diaginertia="0.01 0.01 0.01"/><site name="end" pos="0.4 0 0.1"/></body></body>
 <body name="rocker" pos="0.4 0 0"><joint name="qb" axis="0 1 0"/>
  <inertial mass="1" pos="0 0 0.1" diaginertia="0.01 0.01 0.01"/><site name="pin" pos="0 0 0.3"/></body>
</worldbody>
<tendon><fixed name="belt"><joint joint="qa" coef="1"/><joint joint="qb" coef="0.5"/></fixed></tendon>
<equality><connect site1="end" site2="pin"/></equality>
<actuator><motor name="pull" tendon="belt"/></actuator></mujoco>"""


def model_of(text: str, tmp_path: Path) -> Model:
    path = tmp_path / "machine.xml"
    path.write_text(text)
    return Model(load(path))


def test_positions_of_a_motor_over_coupled_joints_give_both(tmp_path):
    model = model_of(COUPLED, tmp_path)
    assert model.assembly.mobility == 2
    for motor in (0.0, 0.6, -1.1):
        q = model.actuators.kinematics({"pull": motor, "elbow": 0.2}).q
        qa, qb = (q[model.topology.coordinate_names.index(name)] for name in ("qa", "qb"))
        assert qb == pytest.approx(0.25 + 1.5 * qa, abs=1e-12)
        assert 3 * (0.7 * qa - 0.4 * qb) == pytest.approx(motor, abs=1e-12)
        assert model.actuators.ports.at(q) == pytest.approx([motor, 0.2], abs=1e-12)
        assert model.forward_kinematics(model.actuator_position(q)).q == pytest.approx(q, abs=1e-12)


def test_forces_of_a_motor_over_coupled_joints_are_those_of_mujoco(tmp_path):
    """MuJoCo's tree forces, projected on the two freedoms: by virtual work the motors' forces."""
    mujoco = extra("mujoco")
    model = model_of(COUPLED, tmp_path)
    engine = mujoco.MjModel.from_xml_string(FREE)
    names = [engine.joint(i).name for i in range(3)]
    places = [model.topology.velocity_names.index(name) for name in names]
    freedoms = np.array([[1.0, 0.0], [0.0, 1.0], [1.5, 0.0]])[
        [("qa", "qc", "qb").index(name) for name in names]
    ]
    states = random_states(model, 5, np.random.default_rng(0))
    ports = model.actuators.ports
    forces = model.actuators.inverse_dynamics(
        ports.at(states.q), ports.rates(states.v), ports.rates(states.a)
    ).force
    for i, force in enumerate(forces):
        data = mujoco.MjData(engine)
        data.qpos[:], data.qvel[:], data.qacc[:] = (
            values[i, places] for values in (states.q, states.v, states.a)
        )
        mujoco.mj_inverse(engine, data)
        transmission = np.array([[3 * 0.7, 0.0, 3 * -0.4], [0.0, 1.0, 0.0]])
        transmission = transmission[:, [("qa", "qc", "qb").index(name) for name in names]]
        expected = np.linalg.solve((transmission @ freedoms).T, freedoms.T @ data.qfrc_inverse)
        assert force == pytest.approx(
            expected, rel=SAME_FORCE, abs=SAME_FORCE * np.abs(expected).max()
        )


def test_a_tendon_over_two_free_joints_leaves_one_of_them_passive(tmp_path):
    model = model_of(FREE, tmp_path)
    assert model.assembly.mobility == 3
    assert len(model.assembly.passive) == 1
    q = model.actuators.kinematics(
        {"pull": 0.3, "elbow": 0.1, model.assembly.passive_names[0]: 0.2}
    ).q
    assert model.actuator_position(q) == pytest.approx([0.3, 0.1])


def test_joints_that_a_loop_ties_are_named_and_the_platforms_motion_is_taken(tmp_path):
    model = model_of(FOUR_BAR, tmp_path)
    with pytest.raises(
        AssemblyError, match=r"1 actuator drives 2 coordinates \(qa, qb\) that are coupled"
    ) as raised:
        model.functions(ACTUATORS)
    assert "--pose" in str(raised.value)
    state = model.inverse_kinematics([0.1])
    forces = model.platform.inverse_dynamics([0.1], [0.0], [0.0]).force
    step = 1e-6
    energy = [model.platform.potential_energy([0.1 + side]) for side in (-step, step)]
    moved = [
        model.actuator_position(model.inverse_kinematics([0.1 + side]).q)[0]
        for side in (-step, step)
    ]
    assert forces[0] == pytest.approx((energy[1] - energy[0]) / (moved[1] - moved[0]), rel=1e-6)
    assert state.health.is_reached.all()
