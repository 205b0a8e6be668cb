"""Properties that the equations of every machine must have, on random machines and random assembled states."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from core_machines import CORE_MACHINES
from hypothesis import strategies as st

from tauloop.equations.topology import integrate
from tauloop.formats import load
from tauloop.kinematics import random_states
from tauloop.kinematics.states import RandomStates
from tauloop.model import Model
from tauloop.testing.machines import planar_loop, serial_chain, six_legs

#: Rounding of sums of some hundred terms of size one.
EXACT = 1e-10
#: Central differences with step 1e-5: truncation and rounding are both near 1e-10 of the third
#: derivatives.
DIFFERENCE = 1e-6
STEP = 1e-5
STATES = 12

seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from([six_legs, planar_loop, serial_chain])


@functools.cache
def shipped(name: str) -> tuple[Model, RandomStates]:
    model = Model(load(name))
    return model, random_states(model, STATES, np.random.default_rng(3))


@pytest.fixture(params=CORE_MACHINES)
def machine(request: pytest.FixtureRequest) -> tuple[Model, RandomStates]:
    return shipped(request.param)


def random_model(kind: object, seed: int) -> tuple[Model, RandomStates]:
    rng = np.random.default_rng(seed)
    model = Model(kind(rng))  # type: ignore[operator]
    return model, random_states(model, 4, rng, step=0.02)


def check_closure(model: Model, states: RandomStates) -> None:
    loops = model.assembly.loops
    phi, K = loops.residuals(states.q)
    assert np.abs(phi).max(initial=0.0) < EXACT
    scale = 1.0 + np.abs(states.a).max()
    assert np.abs(np.einsum("nij,nj->ni", K, states.v)).max(initial=0.0) < EXACT * scale
    residual = np.einsum("nij,nj->ni", K, states.a) - loops.bias(states.q, states.v)
    assert np.abs(residual).max(initial=0.0) < EXACT * scale**2
    G = model.platform.embedding(states.position, start=states.q)
    assert np.abs(K @ G).max(initial=0.0) < EXACT * (1.0 + np.abs(G).max())
    assert np.allclose(np.einsum("nij,nj->ni", G, states.velocity), states.v, atol=EXACT * scale)


def check_jacobian_against_differences(model: Model, states: RandomStates) -> None:
    loops = model.assembly.loops
    _, K = loops.residuals(states.q)
    for i in range(model.topology.n_v):
        step = np.zeros((len(states.q), model.topology.n_v))
        step[:, i] = STEP
        ahead, _ = loops.residuals(integrate(model.topology, states.q, step))
        behind, _ = loops.residuals(integrate(model.topology, states.q, -step))
        assert np.abs((ahead - behind) / (2 * STEP) - K[:, :, i]).max(initial=0.0) < DIFFERENCE


def reduced_mass_matrix(model: Model, position: np.ndarray, start: np.ndarray) -> np.ndarray:
    """M_r (N, m, m) in the platform's velocities, from inverse dynamics of unit accelerations at rest."""
    m = model.platform.ports.velocity.size
    J = model.platform.actuator_jacobian(position, start=start)
    rest = np.zeros((len(position), m))

    def power(acceleration: np.ndarray) -> np.ndarray:
        forces = model.platform.inverse_dynamics(position, rest, acceleration, start=start).force
        return np.asarray(np.einsum("nui,nu->ni", J, forces))

    at_rest = power(rest)
    columns = [power(np.broadcast_to(e, rest.shape)) - at_rest for e in np.eye(m)]
    return np.stack(columns, axis=2)


def check_mass_matrix_and_power(model: Model, states: RandomStates) -> None:
    """M_r is symmetric and positive; actuator power is the change of kinetic energy, of height and of losses."""
    entry = model.platform.ports
    M = reduced_mass_matrix(model, states.position, states.q)
    size = np.abs(M).max()
    assert np.abs(M - M.transpose(0, 2, 1)).max() < EXACT * size
    assert np.linalg.eigvalsh(M).min() > 0

    def kinetic_energy(sign: float) -> np.ndarray:
        step = sign * STEP * states.v + 0.5 * STEP**2 * states.a
        q = integrate(model.topology, states.q, step)
        state = model.platform.kinematics(model.platform_position(q), start=q)
        v = states.velocity + sign * STEP * states.acceleration
        M = reduced_mass_matrix(model, model.platform_position(state.q), state.q)
        return np.asarray(0.5 * np.einsum("ni,nij,nj->n", v, M, v))

    rest = np.zeros_like(states.velocity)
    J = model.platform.actuator_jacobian(states.position, start=states.q)
    motor_velocity = np.einsum("nui,ni->nu", J, states.velocity)
    forces = model.platform.inverse_dynamics(
        states.position, states.velocity, states.acceleration, start=states.q
    )
    holding = model.platform.inverse_dynamics(states.position, rest, rest, start=states.q).force
    power = np.einsum("nu,nu->n", forces.force - holding, motor_velocity) - friction_power(
        model, states
    )
    change = (kinetic_energy(1.0) - kinetic_energy(-1.0)) / (2 * STEP)
    assert np.abs(power - change).max() < 10 * DIFFERENCE * (1.0 + np.abs(power).max() + size)
    assert entry.velocity.size == M.shape[1]


def friction_power(model: Model, states: RandomStates) -> np.ndarray:
    """Power lost in friction beyond what friction already takes at rest (offsets stay in the holding force)."""
    losses = np.zeros(len(states.q))
    value = model.mechanism.value
    velocity = {name: states.v[:, i] for i, name in enumerate(model.topology.velocity_names)}
    elements = [
        (f.friction, velocity[name])
        for name, f in zip(velocity, model.topology.freedoms, strict=True)
    ]
    for actuator in model.mechanism.actuators:
        motor = sum(value(ratio) * velocity[name] for name, ratio in actuator.drives)
        elements.append((actuator.friction, np.asarray(motor)))
    for friction, v in elements:
        if friction is not None and friction.viscous is not None:
            losses += value(friction.viscous) * v * v
        if friction is not None and friction.coulomb is not None:
            losses += value(friction.coulomb) * np.abs(v)
    return losses


def check_regressor_and_entries(model: Model, states: RandomStates) -> None:
    """Y pi is inverse dynamics, and both entries give the same forces."""
    motion = (states.position, states.velocity, states.acceleration)
    forces = model.platform.inverse_dynamics(*motion, start=states.q).force
    size = 1.0 + np.abs(forces).max()
    Y = model.platform.regressor(*motion, start=states.q)
    assert np.abs(Y @ model.pi - forces).max() < EXACT * size
    A = model.assembly.loops.transmission
    p, dp, ddp = model.actuator_position(states.q), states.v @ A.T, states.a @ A.T
    again = model.actuators.inverse_dynamics(p, dp, ddp, start=states.q)
    assert np.abs(again.force - forces).max() < 1e3 * EXACT * size
    assert np.abs(again.state.q - states.q).max() < 1e-8
    Y_joints = model.actuators.regressor(p, dp, ddp, output="joints", start=states.q)
    driven = list(model.assembly.driven)
    assert np.abs(Y_joints @ model.pi - forces @ A[:, driven]).max() < 1e3 * EXACT * size * max(
        1.0, np.abs(A).max()
    )


def test_closure_of_shipped_machines(machine: tuple[Model, RandomStates]) -> None:
    check_closure(*machine)


def test_jacobian_of_shipped_machines(machine: tuple[Model, RandomStates]) -> None:
    check_jacobian_against_differences(*machine)


def test_mass_and_power_of_shipped_machines(machine: tuple[Model, RandomStates]) -> None:
    check_mass_matrix_and_power(*machine)


def test_regressor_of_shipped_machines(machine: tuple[Model, RandomStates]) -> None:
    check_regressor_and_entries(*machine)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", [six_legs, planar_loop, serial_chain])
def test_random_machines(kind: object, seed: int) -> None:
    model, states = random_model(kind, seed)
    check_closure(model, states)
    check_jacobian_against_differences(model, states)
    check_mass_matrix_and_power(model, states)
    check_regressor_and_entries(model, states)


def test_rounding_does_not_decide_the_side_of_friction():
    """A telescope that rests while the others move: its motor feels nothing of the friction, on either side."""
    model = Model(load("gantry_tau_5dof"))
    x = np.tile(model.platform.ports.at(model.assembly.q), (50, 1))
    v = np.zeros((50, model.platform.ports.velocity.size))
    v[:, 0] = np.linspace(-0.5, 0.5, 50)
    force = model.platform.inverse_dynamics(x, v, 0.0 * v).force
    rubbing = [k for k, motor in enumerate(model.mechanism.actuators) if np.ptp(force[:, k]) > 1.0]
    assert rubbing == [0, 1, 2]
    assert np.ptp(force[:, 3:], axis=0).max() < 1e-6
    assert np.abs(np.diff(force[:, :3], axis=0)).max() > 50.0  # theirs jumps where they turn
