"""Poses far from where Newton's method starts: they keep their assembly mode, or are not given."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from tauloop import InputError, Model, load
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted

#: Machine code of the embedded compiler, which compiles in milliseconds. That of the system's compiler
#: is compared with the interpreter in `tests/compiler`.
EMBEDDED = Compiled(at_least=10**9)

CASES = Path(__file__).parents[1] / "cases"
#: Newton's tolerance, through a condition of some hundred.
SAME = 1e-7
FINE = 1000


@functools.cache
def followed() -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the cylinder (N, 1), and the poses along them, each started from the last one."""
    model = Model(load(CASES / "loop_within_a_loop.yaml"))
    q, poses = model.assembly.q, []
    lengths = np.linspace(model.platform_position(q)[0], 0.2164, FINE)
    for length in lengths:
        state = model.platform.kinematics([length], start=q)
        assert state.health.iterations.max() < 8
        q = state.q
        poses.append(q)
    return lengths[:, None], np.array(poses)


@pytest.mark.parametrize("evaluator", [Interpreted(), EMBEDDED], ids=["interpreted", "compiled"])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_pose_far_from_the_reference_keeps_its_mode(evaluator, one_by_one):
    model = Model(load(CASES / "loop_within_a_loop.yaml"), evaluator=evaluator)
    lengths, poses = (array[[*range(0, FINE, 20), -1]] for array in followed())
    for solve in (model.inverse_kinematics, model.forward_kinematics):
        q = np.array([solve(row).q for row in lengths]) if one_by_one else solve(lengths).q
        assert np.abs(q - poses).max() < SAME
    zero = np.zeros_like(lengths)
    near = model.platform.inverse_dynamics(lengths, zero, zero, start=poses).force
    assert (
        np.abs(model.platform.inverse_dynamics(lengths, zero, zero).force - near).max()
        < SAME * np.abs(near).max()
    )
    Y = model.platform.regressor(lengths, zero, zero)
    assert np.abs(Y @ model.pi - near).max() < SAME * np.abs(near).max()


@pytest.mark.parametrize("name", ["hexapod", "rcid", "gantry_tau_5dof"])
def test_functions_answer_no_samples_with_none(name):
    model = Model(load(name))
    for motion in (model.platform, model.actuators):
        x, v = np.zeros((0, motion.ports.position.size)), np.zeros((0, motion.ports.velocity.size))
        m, n_u = motion.ports.velocity.size, len(model.mechanism.actuators)
        assert motion.embedding(x).shape == (0, model.topology.n_v, m)
        assert motion.actuator_jacobian(x).shape == (0, n_u, m)
        assert motion.tool_jacobian(x).shape == (0, 6, m)
        assert motion.mass_matrix(x).shape == (0, m, m)
        assert (
            motion.coriolis(x, v).shape
            == motion.bias(x, v).shape
            == motion.gravity(x).shape
            == (0, m)
        )
        assert motion.regressor(x, v, v).shape == (0, n_u, len(model.pi))
        assert motion.track(x).q.shape == motion.follow(x).q.shape == (0, model.topology.n_q)


@pytest.mark.parametrize("rows", [None, 1, 30])
@pytest.mark.parametrize("evaluator", [Interpreted(), EMBEDDED], ids=["interpreted", "compiled"])
def test_a_quaternion_that_is_none_is_refused(rows, evaluator):
    model = Model(load("hexapod"), evaluator=evaluator)
    position, still = model.platform_position(model.assembly.q), np.zeros(6)
    turned = position.copy()
    turned[3:] = [0.9, 0.1, 0.1, 0.1]  # which would shrink the plate by a sixth
    batch = turned if rows is None else np.vstack([position] * (rows - 1) + [turned])
    for call in (
        lambda: model.inverse_kinematics(batch),
        lambda: model.platform.inverse_dynamics(batch, still, still),
        lambda: model.platform.regressor(batch, still, still),
    ):
        with pytest.raises(
            InputError,
            match=rf"platform\.qw: is not a unit quaternion at sample {(rows or 1) - 1}.*0\.0835",
        ):
            call()
    turned[3:] /= np.linalg.norm(turned[3:])
    assert model.inverse_kinematics(turned).q[3:7] == pytest.approx(turned[3:])


def test_one_parameter_that_stays_free_is_named_as_it_is():
    machine = load("delta")
    for model in (Model(machine, "arm_length"), Model(machine).with_free_parameters("arm_length")):
        assert model.free == ("arm_length",)
    with pytest.raises(
        InputError, match=r"arm_lenght: is not an independent parameter\n.*did you mean arm_length"
    ):
        Model(machine, "arm_lenght")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda q: q[:-1], "has shape"),
        (lambda q: q[None], "has 1 row"),
        (lambda q: np.nan * q, "is not finite"),
        (lambda q: "here", "is not an array of numbers"),
    ],
)
def test_a_pose_for_another_reference_is_looked_at(change, what):
    model = Model(load("delta"))
    with pytest.raises(InputError, match=f"q: {what}"):
        model.at(change(model.assembly.q))
    for function in (model.forward_kinematics, model.actuators.track):
        with pytest.raises(InputError, match=f"start: {what}"):
            function(
                model.actuator_position(model.assembly.q)[None], start=change(model.assembly.q)
            )
