"""What the engines refuse: machines that they cannot hold, motions that say too little or too much."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engine_machines import four_bar, pendulum, random_tree, six_leg_states, six_legs, three_arms
from engine_mechanics import EXACT, MAKERS, about_origin, assert_near, vector
from extras import extra

from tauloop.common.errors import EngineError, InputError
from tauloop.mechanism.expression import ZERO, Constant
from tauloop.mechanism.model import Actuator, Body, Inertia
from tauloop.verification.engines import Engine, NamedMotion, PinocchioEngine, pinocchio_engine
from tauloop.verification.engines.pinocchio.pinocchio_constraints import (
    constrained_inverse_dynamics,
)
from tauloop.verification.engines.trees.building import rigid_tree

extra("pinocchio")
extra("mujoco")


# What is refused.


@pytest.mark.parametrize(
    "inertia",
    [
        (0.15, np.array([0, 0, 0.2]), np.diag([2e-3, 3e-3, 1e-3])),
        (0.15, np.array([0.01, 0, 0.2]), np.diag([2e-3, 2e-3, 1e-3])),
    ],
)
def test_rod_without_spin_must_be_a_body_of_revolution(inertia: Any) -> None:
    mechanism, _ = three_arms({"lower": about_origin(*inertia)}, None)
    with pytest.raises(EngineError, match="body of revolution") as caught:
        rigid_tree(mechanism)
    assert [problem.where for problem in caught.value.problems] == [
        "rods.rod0",
        "rods.rod1",
        "rods.rod2",
    ]


def test_first_moment_needs_a_mass() -> None:
    mechanism = pendulum()
    inertia = Inertia(mass=ZERO, first_moment=vector((0.1, 0, 0)))
    with pytest.raises(EngineError, match="the mass center is undefined"):
        rigid_tree(replace(mechanism, bodies=(Body(name="arm", inertia=inertia),)))


def test_body_without_joint_is_named() -> None:
    with pytest.raises(EngineError, match=r"bodies\.lost"):
        rigid_tree(replace(pendulum(), bodies=(*pendulum().bodies, Body(name="lost"))))


def test_actuator_on_a_cut_joint_is_named() -> None:
    mechanism, _ = four_bar()
    names = ("shoulder", "elbow", "wrist", "foot")
    everywhere = tuple(
        Actuator(name=f"m_{name}", drives=((name, Constant(1.0)),)) for name in names
    )
    with pytest.raises(EngineError, match="not a coordinate of the tree") as caught:
        rigid_tree(replace(mechanism, actuators=everywhere))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("engine", MAKERS)
def test_actuators_that_work_against_each_other_are_refused(engine: str) -> None:
    """Two motors on one joint of two: as many as freedoms, but not theirs."""
    mechanism, _ = random_tree(np.random.default_rng(0), ["revolute", "revolute"], [False, False])
    both = tuple(
        Actuator(name=name, drives=(("j0", Constant(1.0)),)) for name in ("motor", "second")
    )
    state = {"j0": np.array([0.3]), "j1": np.array([0.4])}
    made = MAKERS[engine](replace(mechanism, actuators=both))
    with pytest.raises(EngineError, match="motor, second"):
        made.inverse_dynamics(NamedMotion(q=state, v=state, a=state))
    if isinstance(made, PinocchioEngine):
        with pytest.raises(EngineError, match="motor, second"):
            constrained_inverse_dynamics(made, made.states(NamedMotion(q=state, v=state, a=state)))


@pytest.mark.parametrize("engine", MAKERS)
def test_redundant_actuators_share_with_the_least_squares(engine: str) -> None:
    """By hand: one motor's torque Q does Q per rad of the shoulder, two share it in proportion to what they turn."""
    mechanism, _ = four_bar()
    motion = NamedMotion(
        q={"shoulder": np.array([0.9])}, v={"shoulder": np.zeros(1)}, a={"shoulder": np.ones(1)}
    )
    (alone,) = MAKERS[engine](mechanism).inverse_dynamics(motion).forces[0]
    second = Actuator(name="second", drives=(("foot", Constant(1.0)),))
    made = MAKERS[engine](replace(mechanism, actuators=(*mechanism.actuators, second)))
    turned = made.velocities(motion, ("shoulder",)).actuator_jacobian[0, :, 0]
    wanted = alone * turned[0] * turned / (turned @ turned)
    forces = made.inverse_dynamics(motion)
    assert np.abs(forces.forces[0] - wanted).max() < EXACT * abs(alone)
    assert forces.balance.max() < EXACT
    if isinstance(made, PinocchioEngine):
        own = constrained_inverse_dynamics(made, made.states(motion))
        assert np.abs(own.forces[0] - wanted).max() < EXACT * abs(alone)


@pytest.mark.parametrize("engine", MAKERS)
def test_motion_that_leaves_something_open_is_refused(engine: str) -> None:
    mechanism, _ = random_tree(np.random.default_rng(1), ["revolute", "spherical"], [False, True])
    zero = {"j0": np.zeros(1)}
    with pytest.raises(EngineError, match=r"j1\.wx, j1\.wy, j1\.wz"):
        MAKERS[engine](mechanism).inverse_dynamics(NamedMotion(q=zero, v=zero, a=zero))


def engine_and_motion() -> tuple[Engine, NamedMotion]:
    mechanism = six_legs({}, from_platform=False)
    return pinocchio_engine(mechanism), six_leg_states(3)[0]


def test_all_faults_of_a_motion_are_told_at_once() -> None:
    engine, motion = engine_and_motion()
    q = dict(motion.q) | {"platfrom.x": np.zeros(3), "leg1": np.array([1.0, np.nan, 1.0])}
    v = {name: x for name, x in motion.v.items() if name not in ("platform.wy", "leg2")}
    a = dict(motion.a) | {"leg0": np.zeros(4)}
    with pytest.raises(InputError) as caught:
        engine.inverse_dynamics(NamedMotion(q=q, v=v, a=a))
    text = str(caught.value)
    assert len(caught.value.problems) == 5
    assert "did you mean platform.x or" in text
    assert "v['platform.wy'] missing" in text
    assert "leg2: must be in all" in text
    assert "1 value is not finite" in text
    assert "(3,), (4,)" in text


def test_quaternions_must_be_unit_quaternions() -> None:
    engine, motion = engine_and_motion()
    nearly = {name: x * (1 + 1e-9) if ".q" in name else x for name, x in motion.q.items()}
    wanted = engine.inverse_dynamics(motion)
    assert_near(engine.inverse_dynamics(replace(motion, q=nearly)).forces, wanted.forces, EXACT)
    doubled = {name: 2 * x if ".q" in name else x for name, x in motion.q.items()}
    with pytest.raises(InputError, match="norm of quaternions differs from 1 by up to 1"):
        engine.inverse_dynamics(replace(motion, q=doubled))


def test_empty_motion_is_refused() -> None:
    engine, _ = engine_and_motion()
    with pytest.raises(InputError, match="shapes"):
        engine.inverse_dynamics(NamedMotion(q={}, v={}, a={}))
