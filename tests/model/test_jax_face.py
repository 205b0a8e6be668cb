"""Functions for JAX: values and Jacobians of Tauloop's own, batches, rotations, and a rollout of 1 000 steps."""

from __future__ import annotations

import numpy as np
import pytest
from extras import extra

import tauloop as tl

jax = extra("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy

#: The same machine code, called in another way; and differences of a rollout, of second order in
#: the step.
SAME, DIFFERENCES, STEP = 1e-12, 1e-8, 1e-5
DELTA = tl.Model(tl.load("delta"))
STATE = np.array([0.05, 0.0, -0.5]), np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_values_and_jacobians_are_tauloops_own(function: str) -> None:
    model = tl.Model("five_bar")
    state = np.array([0.05, 0.4]), np.array([0.1, 0.2]), np.array([1.0, 2.0])
    call, exact = model.as_jax(function), model.platform.derivatives(function, *state)
    (output,) = (name for name in exact.values if name in ("force", "acceleration"))
    assert np.asarray(call(*state)) == pytest.approx(exact.values[output], rel=SAME)
    names = ("position", "velocity", "force" if function == "forward_dynamics" else "acceleration")
    for transform in (jax.jacrev, jax.jacfwd):
        for name, jacobian in zip(names, transform(call, argnums=(0, 1, 2))(*state), strict=True):
            expected = exact.jacobian(output, name)
            assert np.asarray(jacobian) == pytest.approx(
                expected, abs=SAME * max(np.abs(expected).max(), 1.0)
            )


def test_batches_are_one_call_and_what_is_out_of_reach_is_no_number() -> None:
    call = DELTA.as_jax()
    positions = STATE[0] + np.random.default_rng(1).normal(size=(4, 2, 3)) * 0.02
    many = jax.vmap(jax.vmap(call, (0, None, None)), (0, None, None))(positions, *STATE[1:])
    flat = positions.reshape(-1, 3)
    expected = DELTA.platform.inverse_dynamics(
        flat, *(np.tile(part, (len(flat), 1)) for part in STATE[1:])
    ).force
    assert np.asarray(many).reshape(-1, 3) == pytest.approx(expected, rel=SAME)
    assert np.isnan(np.asarray(call(np.array([2.0, 0.0, 0.0]), *STATE[1:]))).all()


@pytest.mark.nightly
def test_a_platform_that_turns_is_differentiated_by_its_quaternion() -> None:
    model = tl.Model(tl.load("hexapod"))
    call, face = model.as_jax(), model.platform.casadi("inverse_dynamics")
    position = model.platform.ports.at(model.assembly.q)
    rates = np.random.default_rng(2).normal(size=(2, 6))
    whole = np.asarray(face.jacobian()(position, *rates, np.zeros(6))[0])
    jacobian = np.asarray(jax.jacrev(call)(position, *rates))
    assert jacobian == pytest.approx(whole, abs=1e-9 * np.abs(whole).max())


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["delta", "hexapod"])
def test_second_derivatives_are_those_of_products(name: str) -> None:
    """Of w^T f by numbers; a direction of displacements, which are constant where nothing turns."""
    model = tl.Model(tl.load(name))
    call, platform, rng = model.as_jax("forward_dynamics"), model.platform, np.random.default_rng(3)
    state = [
        platform.ports.at(model.assembly.q),
        *rng.normal(size=(2, platform.ports.velocity.size)),
    ]
    factors = rng.normal(size=platform.ports.velocity.size)

    def weighed(*motion: object) -> object:
        return jnp.dot(factors, call(*motion))

    hessian = jax.hessian(weighed, argnums=(0, 1, 2))(*state)
    again = jax.jacrev(jax.grad(weighed, argnums=(0, 1, 2)), argnums=(0, 1, 2))(*state)
    size = max(np.abs(np.asarray(block)).max() for blocks in hessian for block in blocks)
    for rows, others in zip(hessian, again, strict=True):
        for block, other in zip(rows, others, strict=True):
            assert np.asarray(block) == pytest.approx(np.asarray(other), abs=SAME * size)
    for k, direction in enumerate(np.eye(len(factors))):
        made = platform.products(
            "forward_dynamics", *state, factors=factors, directions={"velocity": direction}
        )
        for name, block in (("velocity", hessian[1][1]), ("force", hessian[2][1])):
            assert made.bends[name] == pytest.approx(np.asarray(block)[:, k], abs=SAME * size)


def test_a_rollout_of_a_thousand_steps_differentiates() -> None:
    call, start, rest = DELTA.as_jax("forward_dynamics"), np.array([0.0, 0.0, -0.5]), np.zeros(3)
    hold = DELTA.platform.inverse_dynamics(start, rest, rest).force

    def end(force: object) -> object:
        """Where the machine is after 1 000 steps of 0.1 ms."""

        def step(state: tuple[object, object], _: None) -> tuple[tuple[object, object], None]:
            position, velocity = state
            velocity = velocity + 1e-4 * call(position, velocity, force)
            return (position + 1e-4 * velocity, velocity), None

        return jax.lax.scan(step, (jnp.asarray(start), jnp.asarray(rest)), None, length=1000)[0][0]

    jacobian, run = np.asarray(jax.jit(jax.jacrev(end))(hold)), jax.jit(end)
    for k, shift in enumerate(STEP * np.eye(3)):
        slope = (np.asarray(run(hold + shift)) - np.asarray(run(hold - shift))) / (2 * STEP)
        assert jacobian[:, k] == pytest.approx(slope, abs=DIFFERENCES)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(tl.InputError, match="unknown"):
        DELTA.as_jax("regressor")
    call = DELTA.as_jax()
    for motion, what in (
        (
            (np.zeros(2), np.zeros(3), np.zeros(4)),
            r"(?s)position: has shape \(2,\), needs \(\.\.\., 3\).*acceleration",
        ),
        ((np.zeros(3), np.zeros(3)), "called with 2 arrays, needs 3"),
        ((np.zeros((2, 3)), np.zeros((4, 3)), np.zeros(3)), "numbers of samples differ"),
    ):  # machine code trusts the sizes
        with pytest.raises(tl.InputError, match=what):
            call(*motion)
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(tl.InputError, match="single precision"):
            DELTA.as_jax()
    finally:
        jax.config.update("jax_enable_x64", True)
