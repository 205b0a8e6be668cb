"""Machines with passive freedoms, redundant actuators and free spins: hybrid inverse dynamics and shared forces."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from extras import extra
from hypothesis import given, settings, strategies as st
from machine_texts import shipped_text
from redundant_machines import CHANGES
from scipy.spatial.transform import Rotation

from tauloop import Model, load, loads
from tauloop.common.errors import AssemblyError, InputError
from tauloop.compiler.c import Compiled, Interpreted
from tauloop.equations.assembly.freedoms.coordinates import independent_rows
from tauloop.equations.assembly.freedoms.locks import Locks
from tauloop.equations.assembly.freedoms.spins import find_spins
from tauloop.kinematics import random_states
from tauloop.kinematics.states import RandomStates
from tauloop.mechanism.expression import ONE, ZERO, Constant, multiply
from tauloop.mechanism.model import (
    BASE,
    Actuator,
    Body,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Platform,
    SlenderPart,
    Turn,
)
from tauloop.model.forces.force_sharing import ForceSharing
from tauloop.testing.machines import inertia, mechanism, serial_chain, six_legs, vector
from tauloop.verification.engines import check_with_engines

#: Two routes to the same numbers: rounding, times the condition of well conditioned machines.
SAME = 1e-9
#: Loops are closed to rounding, m.
CLOSED = 1e-10
#: Rods whose inertia about their own axis is a millionth of the other one, beside rods that have
#: none.
THIN = 1e-5


def without_rotors(mechanism: Mechanism) -> Mechanism:
    """Actuators without inertia or friction of their own, so that removing one changes nothing else."""
    return replace(
        mechanism,
        actuators=tuple(
            replace(actuator, inertia=None, friction=None) for actuator in mechanism.actuators
        ),
    )


def driven_by(mechanism: Mechanism, names: tuple[str, ...]) -> Mechanism:
    return replace(mechanism, actuators=tuple(a for a in mechanism.actuators if a.name in names))


def difference(values: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the largest value expected."""
    return float(np.abs(values - expected).max() / max(np.abs(expected).max(), 1e-300))


def given_motion(model: Model, states: RandomStates) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position and velocity of actuators and passive freedoms, and acceleration of the actuators."""
    entry = model.actuators.ports
    inverse = np.linalg.inv(entry.to_v)
    acceleration = states.a[:, list(entry.v)] @ inverse.T
    return (
        entry.at(states.q),
        states.v[:, list(entry.v)] @ inverse.T,
        acceleration[:, : len(model.assembly.leading)],
    )


# Passive freedoms


def check_against_full_actuation(full: Mechanism, kept: tuple[str, ...], seed: int) -> None:
    """The hybrid motion needs no force of the actuators that are missing, and the same force of the others."""
    model, reference = Model(driven_by(full, kept)), Model(full)
    assert len(model.assembly.passive) == reference.assembly.mobility - len(kept)
    states = random_states(model, 6, np.random.default_rng(seed))
    hybrid = model.hybrid.inverse_dynamics(*given_motion(model, states), start=states.q)
    motion = hybrid.forces.state
    order = [
        motion.velocity_names.index(name) for name in reference.platform.ports.velocity.columns
    ]
    needed = reference.platform.inverse_dynamics(
        reference.platform.ports.at(motion.q),
        motion.v[:, order],
        motion.a[:, order],
        start=motion.q,
    ).force
    names = [actuator.name for actuator in full.actuators]
    size = np.abs(needed).max()
    for i, name in enumerate(names):
        expected = hybrid.forces.force[:, kept.index(name)] if name in kept else 0.0
        assert np.abs(needed[:, i] - expected).max() < SAME * max(size, 1.0)
    # and forward dynamics gives that motion back
    forward = model.platform.forward_dynamics(
        model.platform.ports.at(motion.q),
        motion.v[:, list(model.platform.ports.v)],
        hybrid.forces.force,
        start=motion.q,
    )
    assert difference(forward.a, motion.a) < SAME
    passive = [motion.velocity_names.index(name) for name in hybrid.passive_names]
    assert np.array_equal(hybrid.passive_acceleration, motion.a[:, passive])


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("five_bar", ("motor_1",)),
        ("delta", ("leg1.motor", "leg3.motor")),
        ("hexapod", ()),
    ],
)
def test_a_machine_that_lacks_motors_moves_as_the_complete_one_with_these_at_rest(
    name: str, kept: tuple[str, ...]
) -> None:
    mechanism = without_rotors(load(name))
    names = tuple(actuator.name for actuator in mechanism.actuators)
    chosen = kept or names[::2]
    check_against_full_actuation(mechanism, chosen, 3)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_random_machines_that_lack_motors(seed: int, is_parallel: bool) -> None:
    rng = np.random.default_rng(seed)
    mechanism = without_rotors(six_legs(rng) if is_parallel else serial_chain(rng))
    names = [actuator.name for actuator in mechanism.actuators]
    kept = tuple(name for name in names if rng.random() < 0.6)
    check_against_full_actuation(mechanism, kept, seed)


def test_a_machine_that_nothing_drives_falls_freely() -> None:
    check_against_full_actuation(without_rotors(load("five_bar")), (), 17)


def test_engines_agree_on_a_machine_with_a_passive_freedom() -> None:
    extra("pinocchio")
    comparison = check_with_engines(
        driven_by(load("delta"), ("leg1.motor", "leg2.motor")), 10, np.random.default_rng(18)
    )
    assert {row.quantity for row in comparison.comparisons} >= {
        "inverse dynamics",
        "forward dynamics",
    }
    assert comparison.worst < SAME


def test_ports_of_a_machine_with_a_passive_freedom() -> None:
    model = Model(driven_by(load("five_bar"), ("motor_1",)))
    ports = model.hybrid.ports
    (passive,) = model.assembly.passive_names
    assert ports["position"].columns == ports["velocity"].columns == ("motor_1", passive)
    assert ports["acceleration"].columns == ("motor_1",)
    with pytest.raises(InputError, match="acceleration"):
        model.hybrid.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(AssemblyError, match="passive: " + passive):
        model.platform.inverse_dynamics(
            model.platform_position(model.assembly.q), np.zeros(2), np.zeros(2)
        )


def test_a_passive_freedom_without_inertia_is_named() -> None:
    """A massless link between two hinges, of which only the first is driven."""
    text = """
format: tauloop-machine/1
name: loose_end
provenance: {status: chosen, source: test}
gravity: [0, -9.81 m/s^2, 0]
bodies:
  arm: {mass: 1 kg, center: [0.1 m, 0, 0], inertia: {xx: 1e-3 kg m^2, yy: 1e-3 kg m^2, zz: 1e-3 kg m^2}}
  end: {mass: 1 kg, center: [0, 0, 0]}
joints:
  first: {type: revolute, axis: z, parent: base, child: arm}
  second: {type: revolute, axis: z, parent: {on: arm, at: [0.2 m, 0, 0]}, child: end}
actuators:
  motor: {on: first}
platform: {body: end, independent: [first, second]}
"""
    mechanism = loads(text)
    bodies = tuple(
        replace(body, inertia=None) if body.name == "end" else body for body in mechanism.bodies
    )
    model = Model(replace(mechanism, bodies=bodies))
    assert model.assembly.passive_names == ("second",)
    with pytest.raises(AssemblyError, match="moves no inertia") as caught:
        model.hybrid.inverse_dynamics(np.zeros(2), np.zeros(2), np.zeros(1))
    assert [problem.where for problem in caught.value.problems] == ["second"]
    locked = Model(model.mechanism, locks=Locks(names=("second",)))
    assert locked.assembly.mobility == 1
    force = locked.hybrid.inverse_dynamics(np.zeros(1), np.zeros(1), np.ones(1)).forces.force
    # moments about the first hinge, by hand: (J + m s^2) * 1 rad/s^2 + m g s, J about the mass
    # centre
    assert force == pytest.approx([1e-3 + 1.0 * 0.1**2 + 1.0 * 9.81 * 0.1])


# Independent coordinates that nobody named


@pytest.mark.parametrize("name", ["delta", "five_bar", "four_bar"])
def test_coordinates_are_chosen_where_the_file_names_none(name: str) -> None:
    mechanism = load(name)
    named = Model(mechanism)
    free = Model(replace(mechanism, platform=replace(mechanism.platform, independent=())))
    assert len(free.assembly.independent) == free.assembly.mobility == named.assembly.mobility
    assert np.median(free.assembly.platform_condition) < 1e3
    assert any("names none" in note.what for note in free.assembly.notes)
    states = random_states(named, 5, np.random.default_rng(2))
    names = free.topology.velocity_names
    order = [named.topology.velocity_names.index(names[i]) for i in free.platform.ports.v]
    coordinates = [named.topology.coordinate_names.index(n) for n in free.topology.coordinate_names]
    q = states.q[:, coordinates]
    force = free.platform.inverse_dynamics(
        free.platform.ports.at(q), states.v[:, order], states.a[:, order], start=q
    ).force
    expected = named.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration, start=states.q
    ).force
    assert difference(force, expected) < SAME


def test_rows_are_chosen_for_the_worst_state() -> None:
    """The first row is longer at one state but vanishes at the others."""
    matrices = np.array(
        [[[9.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]] * 3
    )
    assert set(independent_rows(matrices, 2)) == {1, 2}
    assert independent_rows(matrices[:, :2], 2) == (1,)  # there is no second one


# Redundant actuation


@functools.cache
def redundant(name: str) -> tuple[Model, Model]:
    """A machine with more actuators than it needs, and the ordinary one."""
    text = shipped_text(name, CHANGES[name])
    return Model(without_rotors(loads(text))), Model(without_rotors(load(name)))


@pytest.mark.parametrize("name", ["four_bar", "delta"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_redundant_actuators_share_forces_by_the_least_norm(name: str, is_weighted: bool) -> None:
    model, ordinary = redundant(name)
    n_u = len(model.mechanism.actuators)
    assert model.assembly.is_redundant
    assert n_u == model.assembly.mobility + 1
    states = random_states(model, 6, np.random.default_rng(5))
    sharing = ForceSharing(by_limits=True) if is_weighted else ForceSharing()
    motion = (states.position, states.velocity, states.acceleration)
    forces = model.platform.inverse_dynamics(*motion, start=states.q, sharing=sharing)
    assert forces.is_shared
    weight = np.array([a.force**-2.0 if is_weighted else 1.0 for a in model.mechanism.actuators])
    assert np.allclose(forces.weights, weight)
    # the ordinary machine's forces, carried to the platform's velocities, then shared by a
    # pseudo-inverse
    plain = ordinary.platform.inverse_dynamics(*motion)
    generalized = np.einsum(
        "num,nu->nm", ordinary.platform.actuator_jacobian(states.position), plain.force
    )
    R = model.platform.actuator_jacobian(states.position, start=states.q)
    root = np.sqrt(weight)
    pseudo = np.linalg.pinv(R.transpose(0, 2, 1) / root)
    expected = np.einsum("num,nm->nu", pseudo, generalized) / root
    assert difference(forces.force, expected) < SAME
    hybrid = model.hybrid.inverse_dynamics(
        *given_motion(model, states), start=states.q, sharing=sharing
    )
    assert difference(hybrid.forces.force, expected) < SAME
    assert hybrid.passive_acceleration.shape == (6, 0)
    # M a + h = S u + K^T lambda holds with these forces, so forward dynamics gives the motion back
    forward = model.platform.forward_dynamics(
        states.position, states.velocity, forces.force, start=states.q
    )
    assert difference(forward.a, states.a) < SAME
    assert ordinary.platform.inverse_dynamics(*motion).weights is None


@pytest.mark.parametrize("name", ["four_bar", "delta"])
def test_preload_presses_the_machine_without_moving_it(name: str) -> None:
    model, ordinary = redundant(name)
    states = random_states(model, 4, np.random.default_rng(6))
    position = model.actuators.ports.at(states.q)
    preload = model.hybrid.preload_directions(position, start=states.q)
    assert preload.shape == (4, len(model.mechanism.actuators), 1)
    assert np.linalg.norm(preload, axis=1) == pytest.approx(1.0)
    still = np.zeros_like(states.velocity)
    force = np.ones((4, preload.shape[1]))
    moved = [
        model.platform.forward_dynamics(
            states.position, still, force + amount * preload[..., 0], start=states.q
        ).a
        for amount in (0.0, 7.0)
    ]
    assert difference(moved[1], moved[0]) < SAME
    with pytest.raises(InputError, match="no internal preload"):
        ordinary.hybrid.preload_directions(ordinary.actuators.ports.at(ordinary.assembly.q))


def test_the_regressor_of_redundant_actuators_gives_their_shared_forces() -> None:
    model, _ = redundant("delta")
    states = random_states(model, 5, np.random.default_rng(7))
    motion = (states.position, states.velocity, states.acceleration)
    force = model.platform.inverse_dynamics(*motion, start=states.q).force
    assert difference(model.platform.regressor(*motion, start=states.q) @ model.pi, force) < SAME


def test_weights_that_cannot_be() -> None:
    model, _ = redundant("four_bar")
    with pytest.raises(InputError) as caught:
        ForceSharing(weight={"moter": 1.0, "motor": -2.0}).weights(model.mechanism)
    assert [problem.where for problem in caught.value.problems] == ["weight.moter", "weight.motor"]
    unlimited = replace(
        model.mechanism,
        actuators=tuple(replace(a, force=np.inf) for a in model.mechanism.actuators),
    )
    with pytest.raises(InputError, match="no force limit"):
        ForceSharing(by_limits=True).weights(unlimited)


def test_redundant_and_underactuated_at_once() -> None:
    """Two motors on one side of the SpiderMill, none on the other."""
    text = shipped_text(
        "spidermill",
        ("    actuators:\n      drive: {on: spindle, force: 8 kN}\n", ""),
        (
            "platform:\n  body",
            "actuators: {one: {on: side1.spindle}, two: {on: side1.base_inner_pin}}\nplatform:\n  body",
        ),
    )
    model = Model(loads(text))
    assert (len(model.assembly.leading), len(model.assembly.passive)) == (1, 1)
    states = random_states(model, 5, np.random.default_rng(9))
    hybrid = model.hybrid.inverse_dynamics(*given_motion(model, states), start=states.q)
    motion = hybrid.forces.state
    assert hybrid.forces.is_shared
    forward = model.platform.forward_dynamics(
        states.position, states.velocity, hybrid.forces.force, start=states.q
    )
    assert difference(forward.a, motion.a) < SAME
    preload = model.hybrid.preload_directions(model.actuators.ports.at(states.q), start=states.q)
    assert (
        np.abs(np.einsum("nu,nuk->nk", hybrid.forces.force, preload)).max()
        < SAME * np.abs(hybrid.forces.force).max()
    )


# Spins


def with_ball_rods(axial: float) -> Mechanism:
    """The Delta with its forearms as rigid bodies between two ball joints, free to spin.

    Args:
        axial: their inertia about their own axes, as a share of the transverse one.
    """
    mechanism = load("delta")
    bodies, joints = list(mechanism.bodies), list(mechanism.joints)
    for rod in mechanism.rods:
        assert rod.length is not None
        assert isinstance(rod.lower, SlenderPart)
        h, J = rod.lower.first_moment, rod.lower.second_moment
        inertia = Inertia(
            mass=rod.lower.mass,
            first_moment=(ZERO, ZERO, h),
            second_moment=(J, ZERO, J, ZERO, ZERO, multiply(Constant(axial), J)),
        )
        bodies.append(Body(name=f"{rod.name}.bar", inertia=inertia))
        foot = Placement(body=f"{rod.name}.bar")
        head = replace(foot, position=(ZERO, ZERO, rod.length))
        joints.append(
            Joint(name=f"{rod.name}.elbow", kind="spherical", parent=rod.start, child=foot)
        )
        joints.append(Joint(name=f"{rod.name}.wrist", kind="spherical", parent=rod.end, child=head))
    return replace(mechanism, bodies=tuple(bodies), joints=tuple(joints), rods=())


@functools.cache
def spinning(axial: float) -> Model:
    return Model(with_ball_rods(axial), locks=Locks(spins=False))


def test_spins_of_rods_between_balls_are_passive_and_found() -> None:
    assembly = spinning(0.01).assembly
    assert (assembly.mobility, assembly.actuator_rank, len(assembly.passive)) == (6, 3, 3)
    assert assembly.residual < 1e-10  # though the file leaves the bars pointing upwards
    spins = find_spins(assembly)
    assert sorted(spin.bodies for spin in spins) == [(f"leg{i}.forearm.bar",) for i in (1, 2, 3)]
    lopsided = with_ball_rods(0.01)
    heavy = replace(
        lopsided.bodies[-1],
        inertia=replace(lopsided.bodies[-1].inertia, first_moment=(Constant(1e-3),) * 3),
    )
    lopsided = replace(lopsided, bodies=(*lopsided.bodies[:-1], heavy))
    model = find_spins(Model(lopsided, locks=Locks(spins=False)).assembly)
    assert sorted(spin.bodies for spin in model) == [("leg1.forearm.bar",), ("leg2.forearm.bar",)]


def test_spins_are_locked_by_universal_joints_on_request() -> None:
    free = spinning(0.01)
    locked = Model(free.mechanism, locks=Locks(spins=True))
    assert (locked.assembly.mobility, locked.assembly.passive) == (3, ())
    assert locked.assembly.findings == ()
    kinds = [
        joint.kind for joint in locked.mechanism.joints if joint.name.endswith((".elbow", ".wrist"))
    ]
    assert sorted(kinds) == ["spherical"] * 3 + ["universal"] * 3
    # nothing else has moved
    for body in ("platform.x", "platform.y", "platform.z", "leg1.shoulder", "leg2.shoulder"):
        before = free.assembly.q[free.topology.coordinate_names.index(body)]
        assert locked.assembly.q[locked.topology.coordinate_names.index(body)] == pytest.approx(
            before, abs=1e-10
        )


@pytest.mark.parametrize("is_locked", [False, True])
def test_thin_ball_rods_need_the_forces_of_slender_ones(is_locked: bool) -> None:
    model = Model(with_ball_rods(1e-6), locks=Locks(spins=is_locked))
    slender = Model(load("delta"))
    states = random_states(slender, 5, np.random.default_rng(11))
    expected = slender.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration
    ).force
    # the same platform motion, with rods that do not spin where they may
    entry = model.platform.ports
    assert entry.velocity.columns[:3] == ("platform.x", "platform.y", "platform.z")
    if is_locked:
        force = model.platform.inverse_dynamics(
            states.position, states.velocity, states.acceleration
        ).force
        assert difference(force, expected) < THIN
        return
    own = random_states(model, 5, np.random.default_rng(12))
    hybrid = model.hybrid.inverse_dynamics(*given_motion(model, own), start=own.q)
    motion = hybrid.forces.state
    columns = [
        motion.velocity_names.index(name) for name in slender.platform.ports.velocity.columns
    ]
    same = slender.platform.inverse_dynamics(
        own.q[
            :, [motion.coordinate_names.index(n) for n in slender.platform.ports.position.columns]
        ],
        motion.v[:, columns],
        motion.a[:, columns],
    ).force
    assert difference(hybrid.forces.force, same) < THIN


def test_locks_that_cannot_be() -> None:
    with pytest.raises(InputError, match="not the rate of a scalar coordinate"):
        Model(load("delta"), locks=Locks(names=("leg1.shulder",)))
    with pytest.raises(InputError, match="not the rate"):
        Model(with_ball_rods(0.01), locks=Locks(names=("leg1.forearm.elbow.wx",)))


# Assembly from afar


def welded_chain(rng: np.random.Generator, joints: int = 7) -> Mechanism:
    """A chain of hinges whose tip is welded to the base where it can be: at random angles that nobody is told."""
    chain, tip = [], np.eye(4)
    for i in range(joints):
        axis = "xyz"[i % 3]
        position, angle = rng.uniform(0.1, 0.3, size=3), rng.uniform(-1.0, 1.0)
        parent = Placement(body=f"link_{i}" if i else BASE, position=vector(position))
        chain.append(
            Joint(
                name=f"hinge_{i}",
                kind="revolute",
                parent=parent,
                child=Placement(body=f"link_{i + 1}"),
                axes=(axis,),
            )
        )
        step = np.eye(4)
        step[:3, :3] = Rotation.from_euler(axis, angle).as_matrix()
        step[:3, 3] = position
        tip = tip @ step
    angles = Rotation.from_matrix(tip[:3, :3]).as_euler("XYZ")
    turns = tuple(
        Turn(letter, Constant(float(x))) for letter, x in zip(("x", "y", "z"), angles, strict=True)
    )
    goal = Placement(body=BASE, position=vector(tip[:3, 3]), turns=turns)
    weld = Joint(
        name="weld", kind="fixed", parent=goal, child=Placement(body=f"link_{joints}"), is_cut=True
    )
    bodies = tuple(Body(name=f"link_{i + 1}", inertia=inertia(rng)) for i in range(joints))
    end = Placement(body=f"link_{joints}")
    return mechanism(
        bodies=bodies,
        joints=(*chain, weld),
        actuators=(Actuator(name="motor", drives=(("hinge_0", ONE),)),),
        platform=Platform(body=end.body, tool=end),
    )


@pytest.mark.parametrize("seed", range(6))
def test_welds_close_from_afar_and_the_right_way_round(seed: int) -> None:
    """Perpendicular axes alone would also be satisfied a third of a turn away."""
    made = welded_chain(np.random.default_rng(seed))
    assembly = Model(made).assembly
    assert assembly.residual < CLOSED
    assert (assembly.rank, assembly.mobility) == (6, 1)
    q, tip = dict(zip(assembly.loops.topology.coordinate_names, assembly.q, strict=True)), np.eye(4)
    for joint in made.joints[:-1]:
        step = np.eye(4)
        step[:3, :3] = Rotation.from_euler(joint.axes[0], q[joint.name]).as_matrix()
        step[:3, 3] = [made.value(x) for x in joint.parent.position]
        tip = tip @ step
    goal = made.joints[-1].parent
    wanted = Rotation.from_euler("XYZ", [made.value(turn.angle) for turn in goal.turns]).as_matrix()
    assert np.abs(tip[:3, :3] - wanted).max() < 10 * CLOSED
    assert np.abs(tip[:3, 3] - [made.value(x) for x in goal.position]).max() < CLOSED


def test_compiled_hybrid_dynamics_are_the_interpreted_ones() -> None:
    made = driven_by(load("five_bar"), ("motor_2",))
    interpreted, compiled = (
        Model(made, evaluator=Interpreted()),
        Model(made, evaluator=Compiled(at_least=0)),
    )
    states = random_states(interpreted, 7, np.random.default_rng(13))
    motion = given_motion(interpreted, states)
    expected, forces = (
        m.hybrid.inverse_dynamics(*motion, start=states.q) for m in (interpreted, compiled)
    )
    assert difference(forces.forces.force, expected.forces.force) < SAME
    assert difference(forces.passive_acceleration, expected.passive_acceleration) < SAME
