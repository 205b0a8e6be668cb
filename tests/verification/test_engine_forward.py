"""The engines' forward dynamics, mass matrices and Jacobians against their inverse dynamics and kinematics by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engine_machines import (
    SLENDER,
    THIN,
    THIN_UPPER,
    four_bar,
    random_tree,
    six_leg_states,
    six_legs,
    three_arm_motion,
    three_arms,
)
from engine_mechanics import CLOSED, EXACT, MAKERS, as_motion, random_coordinates
from extras import extra
from hypothesis import given, strategies as st

from tauloop.common.errors import EngineError, InputError
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import JOINT_KINDS, Body, Coupling, Freedom, Mechanism, Spring
from tauloop.verification.engines import Engine, NamedMotion, pinocchio_engine
from tauloop.verification.engines.pinocchio.pinocchio_constraints import constrained_dynamics

extra("pinocchio")
extra("mujoco")


def machine_and_motion(name: str) -> tuple[Mechanism, NamedMotion]:
    if name == "arms":
        return three_arms({"lower": SLENDER}, THIN)[0], three_arm_motion(6)[0]
    if name == "arms with massless rods":
        return three_arms({}, None)[0], three_arm_motion(6)[0]
    if name == "legs":
        rods = {"lower": SLENDER, "upper": THIN_UPPER}
        return six_legs(rods, from_platform=False), six_leg_states(6)[0]
    angle = {"shoulder": np.linspace(0.5, 1.2, 6)}
    return four_bar()[0], NamedMotion(
        q=angle, v={"shoulder": np.ones(6)}, a={"shoulder": np.linspace(-1.0, 2.0, 6)}
    )


@pytest.mark.parametrize("name", ["arms", "arms with massless rods", "legs", "bar"])
@pytest.mark.parametrize("engine", MAKERS)
def test_forward_dynamics_undo_inverse_dynamics(engine: str, name: str) -> None:
    """By composite bodies one way, by recursive Newton-Euler the other; with redundant rows and massless links."""
    mechanism, motion = machine_and_motion(name)
    made = MAKERS[engine](mechanism)
    forces = made.inverse_dynamics(motion).forces
    still = replace(motion, a={key: np.zeros_like(x) for key, x in motion.a.items()})
    moved = made.forward_dynamics(still, forces)
    wanted = made.states(motion).a
    assert moved.names == made.tree.velocity_names
    assert np.max(np.abs(moved.accelerations - wanted)) < EXACT * np.max(np.abs(wanted))
    assert np.max(moved.residuals.closure_acceleration) < CLOSED


@given(
    seed=st.integers(0, 2**32 - 1),
    chain=st.lists(
        st.tuples(st.sampled_from(list(JOINT_KINDS)), st.booleans()), min_size=1, max_size=4
    ),
)
def test_mass_matrices_of_trees_are_the_derivatives_of_their_forces(
    seed: int, chain: list[tuple[str, bool]]
) -> None:
    """Branched trees too, with balls written either way; `crba` and `mj_makeM` beside `rnea` and `mj_rne`."""
    rng = np.random.default_rng(seed)
    chain = [("universal", False), *chain]
    mechanism, _ = random_tree(
        rng, [kind for kind, _ in chain], [is_flipped for _, is_flipped in chain]
    )
    q = [random_coordinates(joint, rng) for joint in mechanism.joints]
    v = [np.zeros(len(joint.velocity_names)) for joint in mechanism.joints]
    motion = as_motion(mechanism.joints, [list(zip(q, v, v, strict=True))])
    for make in MAKERS.values():
        engine = make(mechanism)
        states = engine.states(motion)
        M = engine.whole_mass_matrix(states)[0]
        columns = [_tree_forces(engine, states, unit) for unit in np.eye(len(M))]
        by_forces = np.array(columns).T - _tree_forces(engine, states, np.zeros(len(M)))[:, None]
        assert np.max(np.abs(M - by_forces)) < EXACT * np.max(np.abs(M))
        assert np.max(np.abs(M - M.T)) < EXACT * np.max(np.abs(M))


def _tree_forces(engine: Engine, states: Any, a: np.ndarray) -> np.ndarray:
    at = replace(states, a=a[None])
    return (
        engine.file_forces(at, engine.tree_forces(*engine.own(at)))[0]
        + engine.tree.loads.inertia @ a
    )


@pytest.mark.parametrize("engine", MAKERS)
def test_velocities_of_arms_follow_from_the_hand(engine: str) -> None:
    """Arm rates by differentiating the forearm's length by hand; the motors sit on the arms, so G is the Jacobian."""
    mechanism, motion = machine_and_motion("arms")
    hand = ("platform.x", "platform.y", "platform.z")
    result = MAKERS[engine](mechanism).velocities(motion, hand)
    given_rates = np.stack([motion.v[name] for name in hand], axis=1)
    wanted = np.stack([motion.v[f"q{i}"] for i in range(3)], axis=1)
    places = [result.names.index(f"q{i}") for i in range(3)]
    for jacobian in (result.embedding[:, places], result.actuator_jacobian):
        rates = np.einsum("nij,nj->ni", jacobian, given_rates)
        assert np.max(np.abs(rates - wanted)) < EXACT * np.max(np.abs(wanted))
    assert np.max(result.residuals.closure_rate) < CLOSED


@pytest.mark.parametrize("engine", MAKERS)
def test_many_states_come_in_one_piece(engine: str) -> None:
    mechanism, _ = three_arms({"lower": SLENDER}, THIN)
    motion, _ = three_arm_motion(300)
    last = NamedMotion(
        **{part: {k: x[299:] for k, x in getattr(motion, part).items()} for part in "qva"}
    )
    made = MAKERS[engine](mechanism)
    forces = made.inverse_dynamics(motion).forces
    whole, alone = made.forward_dynamics(motion, forces), made.forward_dynamics(last, forces[299:])
    assert whole.accelerations.shape == (300, len(whole.names))
    assert np.array_equal(whole.accelerations[299:], alone.accelerations)
    assert whole.residuals.closure.shape == (300,)


@pytest.mark.parametrize("engine", MAKERS)
def test_freedom_without_inertia_is_refused(engine: str) -> None:
    mechanism, _ = random_tree(np.random.default_rng(3), ["revolute", "prismatic"], [False, False])
    light = replace(mechanism, bodies=(mechanism.bodies[0], Body(name="b1")))
    state = {"j0": np.array([0.3]), "j1": np.array([0.4])}
    with pytest.raises(EngineError, match="has a motion without inertia"):
        MAKERS[engine](light).forward_dynamics(
            NamedMotion(q=state, v=state, a=state), np.ones((1, 2))
        )


@pytest.mark.parametrize("forces", [np.ones((6, 2)), np.ones(3), np.full((6, 3), np.nan)])
def test_forces_that_do_not_fit_are_refused(forces: np.ndarray) -> None:
    mechanism, motion = machine_and_motion("arms")
    with pytest.raises(InputError, match=r"\(samples, actuators\) = \(6, 3\)"):
        MAKERS["MuJoCo"](mechanism).forward_dynamics(motion, forces)


def test_independent_velocity_of_a_cut_joint_is_named() -> None:
    mechanism, motion = machine_and_motion("bar")
    (cut,) = {"shoulder", "elbow", "wrist", "foot"} - set(
        MAKERS["MuJoCo"](mechanism).tree.velocity_names
    )
    with pytest.raises(EngineError, match=cut):
        MAKERS["MuJoCo"](mechanism).velocities(motion, (cut,))


def test_too_few_independent_velocities_are_refused() -> None:
    mechanism, motion = machine_and_motion("arms")
    with pytest.raises(EngineError, match="undetermined"):
        MAKERS["Pinocchio"](mechanism).velocities(motion, ("platform.x",))


def own_solver(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations by Pinocchio's own solver, and those that the forces were made for."""
    mechanism, motion = machine_and_motion(name)
    engine = pinocchio_engine(mechanism)
    states = engine.states(motion)
    force = constrained_dynamics(engine, states, engine.inverse_dynamics(motion).forces)
    assert force.names == states.names
    return force.accelerations, states.a


@pytest.mark.parametrize("name", ["arms", "legs", "bar"])
def test_pinocchio_closes_loops_by_itself(name: str) -> None:
    """Nothing of our constraint rows takes part; the bar's cut joint is two points on its axis, six rows of five."""
    result, wanted = own_solver(name)
    assert np.max(np.abs(result - wanted)) < EXACT * np.max(np.abs(wanted))


def test_redundant_rows_without_regularisation_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tauloop.verification.engines.pinocchio.pinocchio_constraints.MU", 0.0)
    with pytest.raises(EngineError, match="returns non-finite values in 6 of 6 samples"):
        own_solver("bar")


def test_springs_rotors_and_balls_reach_pinocchios_solver() -> None:
    """A tree without loops: the solver must undo `rnea` with all loads, balls written either way."""
    rng = np.random.default_rng(4)
    mechanism, _ = random_tree(rng, ["spherical", "revolute", "spherical"], [True, False, False])
    loaded = Freedom(
        spring=Spring(stiffness=Constant(7.0), rest=Constant(0.1)), inertia=Constant(0.3)
    )
    joints = tuple(
        replace(j, freedoms=(loaded,)) if j.kind == "revolute" else j for j in mechanism.joints
    )
    engine = pinocchio_engine(replace(mechanism, joints=joints))
    parts = [
        [random_coordinates(j, rng), *rng.normal(size=(2, len(j.velocity_names)))] for j in joints
    ]
    motion = as_motion(joints, [[(q, v, a) for q, v, a in parts]])
    states = engine.states(motion)
    force = constrained_dynamics(engine, states, engine.inverse_dynamics(motion).forces)
    assert np.max(np.abs(force.accelerations - states.a)) < EXACT * np.max(np.abs(states.a))


def test_what_pinocchios_solver_cannot_hold_is_named() -> None:
    mechanism, motion = machine_and_motion("arms with massless rods")
    engine = pinocchio_engine(mechanism)
    tree = engine.tree
    first = tree.constraints[0]
    half = replace(first, position_directions=first.position_directions[:2])
    coupled = replace(tree.loads, inertia=tree.loads.inertia + 0.1)
    odd = replace(
        engine, tree=replace(tree, constraints=(half, *tree.constraints[1:]), loads=coupled)
    )
    with pytest.raises(EngineError) as caught:
        constrained_dynamics(odd, engine.states(motion), np.ones((6, 3)))
    assert [problem.where for problem in caught.value.problems] == [
        half.name,
        "rotors",
        mechanism.name,
    ]
    assert "parts without inertia" in str(caught.value)


def geared(terms: tuple[tuple[tuple[str, float], ...], ...]) -> tuple[Mechanism, NamedMotion]:
    """A branched tree with a ball, a rotor and a spring, its joints j1 to j3 coupled, and a state on the couplings."""
    rng = np.random.default_rng(6)
    kinds = ["spherical", "revolute", "prismatic", "revolute", "revolute"]
    mechanism, _ = random_tree(rng, kinds, [True, False, False, True, False])
    loaded = Freedom(
        spring=Spring(stiffness=Constant(7.0), rest=Constant(0.1)), inertia=Constant(0.3)
    )
    joints = tuple(
        replace(j, freedoms=(loaded,)) if j.name in ("j1", "j2") else j for j in mechanism.joints
    )
    couplings = tuple(
        Coupling(
            name=f"c{i}",
            terms=tuple((name, Constant(ratio)) for name, ratio in of),
            offset=Constant(0.05),
        )
        for i, of in enumerate(terms)
    )
    parts = [
        [random_coordinates(j, rng), *rng.normal(size=(2, len(j.velocity_names)))] for j in joints
    ]
    motion = as_motion(joints, [[(q, v, a) for q, v, a in parts]])
    q, v, a = (dict(part) for part in (motion.q, motion.v, motion.a))
    for of in terms:
        (first, *others), offset = of, 0.05
        for part, constant in ((q, offset), (v, 0.0), (a, 0.0)):
            part[first[0]] = (constant - sum(ratio * part[name] for name, ratio in others)) / first[
                1
            ]
    return replace(mechanism, joints=joints, couplings=couplings), NamedMotion(q=q, v=v, a=a)


def test_gears_are_mimic_joints_of_pinocchio() -> None:
    """Offset, ratio and a rotor behind the gear; against multipliers on the tree's mass matrix."""
    mechanism, motion = geared(((("j2", 0.7), ("j1", -1.9)), (("j4", 3.0), ("j3", 1.0))))
    engine = pinocchio_engine(mechanism)
    forces = np.random.default_rng(1).normal(size=(1, len(mechanism.actuators)))
    states = engine.states(motion)
    moved = constrained_dynamics(engine, states, forces)
    wanted = engine.forward_dynamics(motion, forces).accelerations
    assert moved.method == "mimic joints"
    assert np.max(np.abs(moved.accelerations - wanted)) < EXACT * np.max(np.abs(wanted))
    pulled = np.array([0.3, -2.0, 1.0, 0.1, 0.2, -0.3])
    moved, wanted = (
        constrained_dynamics(engine, states, forces, pulled).accelerations,
        engine.forward_dynamics(motion, forces, pulled).accelerations,
    )
    assert np.max(np.abs(moved - wanted)) < EXACT * np.max(np.abs(wanted))


def test_couplings_that_are_no_mimic_joints_are_named() -> None:
    """One of three coordinates; and two with the same joint last, which cannot follow both others."""
    plain = pinocchio_engine(geared(())[0])
    place = dict(zip(plain.tree.velocity_names, plain.v_order, strict=True))
    single, two, last = sorted(("j1", "j2", "j3"), key=lambda name: place[name])
    of_three = (((single, 1.0), (two, -2.0), (last, 0.5)),)
    for terms in (of_three, (((single, 1.0), (last, -2.0)), ((two, 1.0), (last, 0.5)))):
        mechanism, motion = geared(terms[:1])
        states = pinocchio_engine(mechanism).states(motion)
        engine = pinocchio_engine(geared(terms)[0])
        with pytest.raises(EngineError, match="as mimic joints require") as caught:
            constrained_dynamics(engine, states, np.ones((1, len(mechanism.actuators))))
        assert len(caught.value.problems) == len(terms)


def test_couplings_of_machines_with_loops_are_named() -> None:
    mechanism, motion = machine_and_motion("bar")
    engine = pinocchio_engine(mechanism)
    states, tree = engine.states(motion), engine.tree
    gears = np.zeros((1, len(tree.velocity_names)))
    odd = replace(
        engine, tree=replace(tree, loads=replace(tree.loads, gears=gears, gear_offsets=np.zeros(1)))
    )
    with pytest.raises(EngineError, match="does not support mimic joints"):
        constrained_dynamics(odd, states, np.ones((6, len(mechanism.actuators))))
