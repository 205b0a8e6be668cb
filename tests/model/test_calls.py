"""The calls that every robotics library has, against Pinocchio, differences, energies, and machines that carry more."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from extras import extra
from scipy.spatial.transform import Rotation

from tauloop import InputError, Model, State, load
from tauloop.compiler.c.calling.evaluator import Compiled
from tauloop.equations.topology import integrate
from tauloop.kinematics import RandomStates, random_states
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Inertia
from tauloop.model import Motion, Payload
from tauloop.testing import machines as random_machines
from tauloop.verification.engines import NamedMotion, frictionless
from tauloop.verification.engines.pinocchio.in_pinocchio import pinocchio_engine

#: Agreement of two routes that share no code, relative: rounding through the conditioning of the
#: loops.
SAME = 1e-8
#: Agreement with central differences: their error at STEP.
STEP, DIFFERENCE = 1e-6, 1e-6
STATES = 4
PAYLOAD = Payload(
    mass=0.7, center=(0.03, -0.02, 0.05), inertia=(0.004, 0.0005, 0.003, -0.0002, 0.0001, 0.005)
)
MACHINES = ("delta", "hexapod", "gantry_tau_3dof", "five_bar", "random hexapod", "random chain")
RANDOM: dict[str, Callable[..., object]] = {
    "random hexapod": random_machines.six_legs,
    "random chain": random_machines.serial_chain,
}


@functools.cache
def machine(name: str) -> tuple[Model, RandomStates]:
    """A machine without friction, which engines leave out, and some of its states."""
    rng = np.random.default_rng(11)
    mechanism = RANDOM[name](rng) if name in RANDOM else load(name)
    model = Model(frictionless(mechanism))
    return model, random_states(model, STATES, rng, step=0.02)


def same(values: np.ndarray, other: np.ndarray, tolerance: float = SAME) -> bool:
    return bool(
        np.abs(values - other).max(initial=0.0)
        < tolerance * max(1.0, np.abs(other).max(initial=0.0))
    )


def as_motion(model: Model, state: State) -> NamedMotion:
    shape = model.topology
    columns = {"q": shape.coordinate_names, "v": shape.velocity_names, "a": shape.velocity_names}
    return NamedMotion(
        **{
            kind: dict(zip(names, getattr(state, kind).T, strict=True))
            for kind, names in columns.items()
        }
    )


def moved(
    model: Model, states: RandomStates, direction: np.ndarray, step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Positions, and coordinates to start from, after a small step (m,) of the platform's velocities."""
    G = model.platform.embedding(states.position, start=states.q)
    q = integrate(model.topology, states.q, step * (G @ direction))
    return model.platform_position(q), q


@pytest.fixture(params=MACHINES)
def subject(request: pytest.FixtureRequest) -> tuple[Model, Motion, RandomStates]:
    model, states = machine(request.param)
    return model, model.platform, states


def test_forward_kinematics_goes_back_to_where_inverse_kinematics_came_from(subject):
    model, _, states = subject
    there = model.inverse_kinematics(states.position, start=states.q)
    leading = list(model.assembly.leading)
    back = model.actuators.kinematics(model.actuator_position(there.q)[:, leading], start=states.q)
    assert same(back.q, states.q)


def test_the_jacobian_of_the_tool_is_what_differences_of_its_pose_say(subject):
    model, platform, states = subject
    J = platform.tool_jacobian(states.position, start=states.q)
    for i, direction in enumerate(np.eye(J.shape[2])):
        ahead, behind = (
            platform.tool(position, start=q)
            for position, q in (moved(model, states, direction, sign * STEP) for sign in (1, -1))
        )
        turn = Rotation.from_matrix(ahead.rotation @ behind.rotation.swapaxes(1, 2)).as_rotvec()
        twist = np.concatenate([ahead.place - behind.place, turn], axis=1) / (2 * STEP)
        assert same(twist, J[:, :, i], DIFFERENCE)
    assert same(
        platform.tool(states.position, states.velocity, start=states.q).twist,
        velocity_of(J, states.velocity),
    )


def velocity_of(J: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("nij,nj->ni", J, velocity))


def test_jacobians_of_both_directions_are_inverse(subject):
    model, platform, states = subject
    down = platform.actuator_jacobian(states.position, start=states.q)
    inputs = model.actuators.ports.at(states.q)
    up = model.actuators.platform_jacobian(inputs, start=states.q)
    assert same(up @ down, np.broadcast_to(np.eye(down.shape[2]), (len(up), *down.shape[1:])), 1e-7)
    assert same(
        model.actuators.tool_jacobian(inputs, start=states.q) @ down,
        platform.tool_jacobian(states.position),
    )


def test_terms_are_those_of_pinocchio_projected(subject):
    """Forces of Pinocchio's tree at rest, under unit accelerations and in motion, by the embedding of its own loops."""
    model, platform, states = subject
    extra("pinocchio")
    engine = pinocchio_engine(model.mechanism)
    at, velocity = {"start": states.q}, states.velocity

    def projected(motion_velocity: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        """R^T u of the engine for a motion of the platform."""
        state = platform.kinematics(states.position, motion_velocity, acceleration, **at)
        u = engine.inverse_dynamics(as_motion(model, state)).forces
        return velocity_of(platform.actuator_jacobian(states.position, **at).swapaxes(1, 2), u)

    still = np.zeros_like(velocity)
    rest, moving = projected(still, still), projected(velocity, still)
    assert same(platform.bias(states.position, still, **at), rest)
    assert same(platform.bias(states.position, velocity, **at), moving)
    assert same(platform.coriolis(states.position, velocity, **at) + rest, moving)
    if not any(p.group == "spring" for p in model.parameters):
        assert same(platform.gravity(states.position, **at), rest)
    for i, unit in enumerate(np.eye(velocity.shape[1])):
        column = projected(still, np.broadcast_to(unit, velocity.shape)) - rest
        assert same(platform.mass_matrix(states.position, **at)[:, :, i], column)


def test_energies_belong_to_the_terms(subject):
    """T = v^T M v / 2, its rate the power of M a + c; the other energy grows by what gravity and springs take."""
    model, platform, states = subject
    at, v = {"start": states.q}, states.velocity
    M = platform.mass_matrix(states.position, **at)
    assert same(
        platform.kinetic_energy(states.position, v, **at), np.einsum("ni,nij,nj->n", v, M, v) / 2
    )
    for direction in np.eye(v.shape[1]):
        ahead, behind = (
            platform.potential_energy(p, start=q)
            for p, q in (moved(model, states, direction, sign * STEP) for sign in (1, -1))
        )
        rest = platform.bias(states.position, 0.0 * v, **at)  # gravity and springs
        assert same((ahead - behind) / (2 * STEP), rest @ direction, DIFFERENCE)
    power = np.einsum(
        "ni,ni->n",
        v,
        velocity_of(M, states.acceleration) + platform.coriolis(states.position, v, **at),
    )
    full = platform.kinematics(states.position, v, states.acceleration, **at)
    energies = []
    for h in (STEP, -STEP):
        q = integrate(model.topology, states.q, h * full.v + 0.5 * h * h * full.a)
        velocity = model.platform.ports.rates(full.v + h * full.a)
        energies.append(platform.kinetic_energy(model.platform_position(q), velocity, start=q))
    assert same((energies[0] - energies[1]) / (2 * STEP), power, 10 * DIFFERENCE)


def test_a_wrench_at_the_tool_moves_the_machine_as_it_moves_pinocchios(subject):
    model, platform, states = subject
    wrench = np.array([11.0, -7.0, 5.0, 0.4, -0.3, 0.2])
    force = platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration, start=states.q
    ).force
    moved = platform.forward_dynamics(
        states.position, states.velocity, force, start=states.q, wrench=wrench
    )
    extra("pinocchio")
    theirs = pinocchio_engine(model.mechanism).forward_dynamics(
        as_motion(model, moved), force, wrench
    )
    names = [name for name in theirs.names if name in model.topology.velocity_names]
    ours, columns = (
        [list(known).index(name) for name in names]
        for known in (model.topology.velocity_names, theirs.names)
    )
    assert names
    assert same(np.asarray(moved.a)[:, ours], theirs.accelerations[:, columns], 1e-6)
    assert np.abs(np.asarray(moved.a) - states.a).max() > 1e-3
    a = platform.ports.rates(np.asarray(moved.a))
    held = platform.inverse_dynamics(
        states.position, states.velocity, a, start=states.q, wrench=wrench
    )
    assert same(held.force, force)


def carrying(model: Model) -> Model:
    """The same machine with the payload among the parameters of its platform's body."""
    mechanism, values = model.mechanism, model.mechanism.value
    tool = mechanism.platform.tool
    p = np.array([values(x) for x in tool.position])
    R = np.eye(3)
    for turn in tool.turns:
        R = (
            R
            @ Rotation.from_rotvec(
                values(turn.angle) * np.eye(3)["xyz".index(turn.axis)]
            ).as_matrix()
        )
    c, I = p + R @ PAYLOAD.center, R @ PAYLOAD._matrix() @ R.T
    about = I + PAYLOAD.mass * (c @ c * np.eye(3) - np.outer(c, c))
    added = [PAYLOAD.mass, *(PAYLOAD.mass * c), *about[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]]

    def heavier(body):
        own = (
            np.zeros(10)
            if body.inertia is None
            else np.array([values(x) for x in body.inertia.parameters])
        )
        m, x, y, z, xx, xy, yy, xz, yz, zz = (Constant(float(v)) for v in own + added)
        return replace(
            body,
            inertia=Inertia(mass=m, first_moment=(x, y, z), second_moment=(xx, xy, yy, xz, yz, zz)),
        )

    bodies = tuple(heavier(body) if body.name == tool.body else body for body in mechanism.bodies)
    return Model(replace(mechanism, bodies=bodies))


def test_a_payload_is_part_of_the_platform(subject):
    model, platform, states = subject
    motion = (states.position, states.velocity, states.acceleration)
    expected = carrying(model).platform.inverse_dynamics(*motion, start=states.q).force
    forces = platform.inverse_dynamics(*motion, start=states.q, payload=PAYLOAD)
    assert same(forces.force, expected)
    back = platform.forward_dynamics(*motion[:2], forces.force, start=states.q, payload=PAYLOAD)
    assert same(np.asarray(back.a), states.a, 1e-6)


def test_machine_code_gives_the_same():
    model, states = machine("five_bar")
    platform = model.platform
    compiled = Model(model.mechanism, evaluator=Compiled(at_least=0)).platform
    wrench = np.arange(6.0)
    for call in (
        lambda p: p.mass_matrix(states.position),
        lambda p: p.bias(states.position, states.velocity),
        lambda p: p.tool_jacobian(states.position),
        lambda p: p.kinetic_energy(states.position, states.velocity),
        lambda p: (
            p.inverse_dynamics(
                states.position,
                states.velocity,
                states.acceleration,
                wrench=wrench,
                payload=PAYLOAD,
            ).force
        ),
    ):
        assert same(call(compiled), call(platform), 1e-12)


def test_short_names_stand_for_columns():
    platform = machine("delta")[0].platform
    whole = platform.kinematics({"platform.x": 0.01, "platform.y": 0.0, "platform.z": -0.5})
    assert (platform.kinematics({"x": 0.01, "y": 0.0, "z": -0.5}).q == whole.q).all()
    with pytest.raises(InputError, match=r"missing columns platform\.z"):
        platform.kinematics({"x": 0.01, "y": 0.0})
    with pytest.raises(InputError, match="unknown columns x"):
        platform.kinematics({"x": 0.01, "platform.x": 0.01, "y": 0.0, "z": -0.5})


@pytest.mark.parametrize(
    ("payload", "where"),
    [
        ({"mass": -1.0}, "payload.mass"),
        ({"mass": "a"}, "payload.mass"),
        ({"mass": 1.0, "center": (0.0, np.nan, 0.0)}, "payload.center"),
        ({"mass": 1.0, "center": np.array([0.0, -np.inf, 0.0])}, "payload.center"),
        ({"mass": 1.0, "center": (0.0, 0.0)}, "payload.center"),
        ({"mass": 1.0, "center": ("a", 0.0, 0.0)}, "payload.center[0]"),
        ({"mass": 1.0, "inertia": (1.0, 0.0, 0.1, 0.0, 0.0, 0.1)}, "payload.inertia"),
    ],
)
def test_a_payload_that_cannot_be_is_refused(payload, where):
    with pytest.raises(InputError) as error:
        Payload(**payload)
    assert [problem.where for problem in error.value.problems] == [where]
