"""Forces in joints: by hand, by MuJoCo, and in every output of `dynamics`.

`tests/model/test_maximal_coordinates.py` compares them on random machines with independent
equations in maximal coordinates.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from closed_in_mujoco import ClosedInMujoco

import tauloop as tl

ONE_JOINT = (Path(__file__).parents[1] / "cases" / "one_joint.yaml").read_text(encoding="utf-8")
M, C, G = 1.0, 0.1, 9.81


def test_a_pivot_carries_a_swinging_mass(tmp_path):
    """By hand: F = m (a - g) in the axes of the body, and the moment is the motor's torque."""
    path = tmp_path / "swing.yaml"
    path.write_text(ONE_JOINT.replace("axis: z", "axis: y"), encoding="utf-8")
    q, v, a = 0.4, 2.0, -10.0
    forces = tl.inverse_dynamics(path, [[q]], [[v]], [[a]])
    joint = forces.joint("j")
    radial, tangential = -C * v**2, -C * a  # along x, and along z, which falls where q grows
    gravity = G * np.array([-np.sin(q), 0.0, np.cos(q)])
    expected = M * (np.array([radial, 0.0, tangential]) + gravity)
    assert joint.force[0] == pytest.approx(expected, abs=1e-12)
    assert joint.moment[0] == pytest.approx([0.0, forces.forces.force[0, 0], 0.0], abs=1e-12)
    assert (joint.on, joint.by) == ("b", "base")
    assert joint.axial[0] == pytest.approx(0.0, abs=1e-12)
    assert joint.radial[0] == pytest.approx(np.hypot(expected[0], expected[2]))


#: Two spatial arms of three hinges that a ball joint connects at the tip: no constraint is redundant.
TWO_ARMS = """
<mujoco model="two_arms">
  <option gravity="0.3 -0.2 -9.7"/>
  <worldbody>
    <body name="a_link_1">
      <joint name="a_1" axis="0 0 1"/>
      <inertial pos="0.02 0.01 0.03" mass="1.1" diaginertia="0.004 0.003 0.005"/>
      <body name="a_link_2" pos="0.05 0 0.1" euler="0 -40 0">
        <joint name="a_2" axis="0 1 0"/>
        <inertial pos="0.2 0.01 0" mass="0.8" diaginertia="0.001 0.006 0.006"/>
        <body name="a_link_3" pos="0.4 0 0" euler="0 70 0">
          <joint name="a_3" axis="0 1 0"/>
          <inertial pos="0.15 0 0.02" mass="0.6" diaginertia="0.001 0.004 0.004"/>
          <site name="tip" pos="0.35 0 0"/>
        </body>
      </body>
    </body>
    <body name="b_link_1" pos="0.9 0.1 0" euler="0 0 180">
      <joint name="b_1" axis="0 0 1"/>
      <inertial pos="0.01 0.02 0.04" mass="1.3" diaginertia="0.004 0.004 0.005"/>
      <body name="b_link_2" pos="0.04 0 0.1" euler="0 -35 0">
        <joint name="b_2" axis="0 1 0"/>
        <inertial pos="0.18 0 0.01" mass="0.7" diaginertia="0.001 0.005 0.005"/>
        <body name="b_link_3" pos="0.38 0 0" euler="0 60 0">
          <joint name="b_3" axis="0 1 0"/>
          <inertial pos="0.16 0.02 0" mass="0.5" diaginertia="0.001 0.003 0.003"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><connect name="tip" body1="a_link_3" body2="b_link_3" anchor="0.35 0 0"/></equality>
  <actuator><motor joint="a_1"/><motor joint="a_2"/><motor joint="a_3"/></actuator>
</mujoco>
"""


def test_mujoco_has_the_same_forces_in_joints(tmp_path):
    """MuJoCo's `cfrc_int`, with multipliers of its own constraint that carry the motion exactly."""
    path = tmp_path / "two_arms.xml"
    path.write_text(TWO_ARMS, encoding="utf-8")
    mujoco = ClosedInMujoco(path)
    engine, model, data = mujoco.mujoco, mujoco.model, mujoco.data
    arms = tl.Model(path)
    position = np.add(arms.platform.ports.at(arms.assembly.q), [0.02, -0.03, 0.05])
    forces = tl.inverse_dynamics(arms, position, [0.4, -0.7, 0.3], [2.0, 1.0, -3.0])
    state = forces.forces.state
    for i in range(model.njnt):
        name, dof = model.joint(i).name, model.jnt_dofadr[i]
        index = arms.topology.velocity_names.index(name)
        data.qpos[model.jnt_qposadr[i]] = state.q[0, arms.topology.q_of_v[index]]
        data.qvel[dof] = state.v[0, index]
        data.qacc[dof] = state.a[0, index]
    acceleration = np.array(data.qacc)
    residual, J = mujoco.equations()
    assert np.abs(residual).max() < 1e-12
    engine.mj_fwdVelocity(model, data)
    data.qacc[:] = acceleration
    needed = np.zeros(model.nv)
    engine.mj_rne(model, data, 1, needed)
    motors = np.eye(model.nv)[: model.nu]
    solution = np.linalg.solve(np.concatenate([motors, J]).T, needed)
    assert solution[: model.nu] == pytest.approx(forces.forces.force[0], rel=1e-9)
    data.efc_force[:] = solution[model.nu :]
    engine.mj_rnePostConstraint(model, data)
    for name in ("a_1", "a_2", "a_3", "b_1", "b_2", "b_3"):
        joint, body = forces.joint(name), model.joint(name).bodyid[0]
        moment, force = np.split(data.cfrc_int[body], 2)
        arm = data.subtree_com[model.body_rootid[body]] - data.xanchor[model.joint(name).id]
        assert joint.position[0] == pytest.approx(data.xanchor[model.joint(name).id], abs=1e-12)
        assert joint.force_in_base[0] == pytest.approx(force, abs=1e-9)
        assert joint.moment_in_base[0] == pytest.approx(moment + np.cross(arm, force), abs=1e-9)
    tip = forces.joint("tip")
    assert np.abs(tip.force_in_base[0]) == pytest.approx(np.abs(solution[model.nu :]), abs=1e-9)


def test_components_that_redundant_constraints_carry_are_not_numbers():
    forces = tl.inverse_dynamics("five_bar")
    joint = forces.joint("shoulder_1")
    assert np.isfinite(joint.force[0, :2]).all()
    assert np.isnan(joint.force[0, 2])
    assert np.isfinite(joint.moment[0, 2])
    assert np.isnan(joint.moment[0, :2]).all()
    assert forces.joint_forces.undetermined == forces.joint_forces.names
    assert np.isfinite(joint.radial).all()
    assert np.isnan(joint.axial).all()


def test_rods_carry_their_multiplier_as_tension():
    """A massless rod pulls both of its ends with minus the multiplier of its length."""
    forces = tl.inverse_dynamics("cable_robot")
    tension = dict(zip(forces.forces.tension_names, forces.forces.tension[0], strict=True))
    for name, value in tension.items():
        for end in ("start", "end"):
            assert forces.joint(f"{name}.{end}").axial[0] == pytest.approx(value, rel=1e-9)


def test_an_unknown_joint_and_momenta_are_refused(tmp_path):
    forces = tl.inverse_dynamics("delta")
    with pytest.raises(tl.InputError, match=r"did you mean leg1\.shoulder"):
        forces.joint("leg1.sholder")
    table = tmp_path / "motion.csv"
    with pytest.raises(tl.InputError, match="accelerations"):
        tl.DynamicsOptions(motion=table, from_momenta=True, joint_forces=True)
