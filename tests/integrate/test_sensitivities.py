"""Derivatives by parameters and starts, through events and samples.

Oracles: parabolas and lines on paper; differences of runs without derivatives, which have oracles
of their own.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from python_runs import InterpretedSamples

from tauloop import Model, load
from tauloop.compiler.c.calling.evaluator import default_evaluator
from tauloop.compiler.catalogue import FORWARD_DYNAMICS
from tauloop.compiler.derivatives.tangents import tangent_program
from tauloop.compiler.program import Newton
from tauloop.integrate import DormandPrince, Radau, RungeKutta4
from tauloop.integrate.integrators import Integrator
from tauloop.integrate.routine import Routine, straight
from tauloop.integrate.sampled import CompiledSamples, SampledRun
from tauloop.integrate.sensitivity import (
    SensitivityDirection,
    course_along,
    sensitive,
    split_sensitivities,
)
from tauloop.integrate.system import HybridSystem

#: Tolerances of the runs; errors of derivatives are as small, up to the share by which an impact
#: magnifies them.
TOLERANCE, CLOSE = 1e-10, 1e-7
INTEGRATORS = (DormandPrince(rtol=TOLERANCE, atol=1e-12), Radau(rtol=TOLERANCE, atol=1e-12))


def system(
    rate, reset=None, sample=None, *, states: int, modes: int = 0, held: int = 1, constants: int
) -> HybridSystem:
    """A system of straight-line code: rate and guards of (y, s, held, p), reset of (y, s, p), sample of (y, z, p)."""
    sizes = {"y": states, "s": modes, "held": held, "p": constants}

    def routine(call) -> Routine:
        return Routine(calls=() if call is None else (call,), own={})

    return HybridSystem(
        states=states,
        held=held,
        inputs=1,
        coordinates=0,
        velocities=0,
        modes=(0.0,) * modes,
        rate=routine(straight("right_hand_side", sizes, rate)),
        reset=routine(reset and straight("put", {"y": states, "s": modes, "p": constants}, reset)),
        sample=routine(
            sample and straight("look", {"y": states, "z": held, "p": constants}, sample)
        ),
        constants=constants,
    )


def last(
    made: HybridSystem,
    y,
    p,
    integrator: Integrator,
    *,
    is_compiled: bool,
    samples: int = 2,
    period: float = 1.0,
):
    """The last state, and its derivatives (n, n + n_p) by start and constants."""
    n, m = len(y), len(p)
    rows = np.eye(n + m)
    directions = tuple(
        SensitivityDirection(name=str(i), unit="1", start=row[:n], constants=row[n:], scale=2.0)
        for i, row in enumerate(rows)
    )
    course = SampledRun(
        period=period,
        inputs=np.zeros((samples, 1)),
        y=np.array(y, dtype=float),
        held=np.zeros(made.held),
        q=np.zeros(0),
        p=np.array(p, dtype=float),
        method=integrator.method,
        max_steps=100_000,
    )
    along = sensitive(made, n + m)
    run = CompiledSamples(along, default_evaluator()) if is_compiled else InterpretedSamples(along)
    trace = run(course_along(course, directions))
    assert trace.outcome == 0
    states, by = split_sensitivities(trace.states, directions)
    return states[-1], by[-1]


@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_ball_that_the_ground_throws_back(integrator, is_compiled) -> None:
    """Behind the impact at t*, with v* = sqrt(v^2 + 2 g x): x(T) = e v* (T - t*) - g (T - t*)^2 / 2."""
    made = system(
        lambda y, s, held, p: {
            "rate": ca.vertcat(y[1], -p[0]),
            "guards": ca.if_else(s > 0, 1, -y[0]),
        },
        lambda y, s, p: {"y": ca.vertcat(y[0], ca.if_else(s > 0, -p[1] * y[1], y[1]))},
        states=2,
        modes=1,
        constants=2,
    )
    x, v, g, e = symbols = ca.SX.sym("x"), ca.SX.sym("v"), ca.SX.sym("g"), ca.SX.sym("e")
    down = ca.sqrt(v**2 + 2 * g * x)
    rest = 1.0 - (v + down) / g
    end = ca.vertcat(e * down * rest - g * rest**2 / 2, e * down - g * rest)
    known = ca.Function("known", list(symbols), [end, ca.jacobian(end, ca.vertcat(*symbols))])(
        1.0, 0.5, 9.81, 0.8
    )
    result = last(made, [1.0, 0.5], [9.81, 0.8], integrator, is_compiled=is_compiled)
    for mine, theirs in zip(result, known, strict=True):
        np.testing.assert_allclose(
            mine, np.array(theirs).reshape(mine.shape), atol=CLOSE, rtol=CLOSE
        )


@pytest.mark.parametrize("is_compiled", [True, False])
def test_a_speed_that_jumps_where_a_line_is_passed(is_compiled) -> None:
    """x' = a up to x = c and b behind it: x(T) = c + b (T - (c - x_0) / a)."""
    made = system(
        lambda y, s, held, p: {"rate": ca.if_else(s > 0, p[1], p[0]), "guards": y - p[2]},
        states=1,
        modes=1,
        constants=3,
    )
    a, b, c, x = 2.0, 0.5, 1.2, 0.1
    end, by = last(made, [x], [a, b, c], INTEGRATORS[0], is_compiled=is_compiled)
    assert end == pytest.approx(c + b * (1 - (c - x) / a), rel=CLOSE)
    np.testing.assert_allclose(
        by, [[b / a, b * (c - x) / a**2, 1 - (c - x) / a, 1 - b / a]], atol=CLOSE
    )


@pytest.mark.parametrize("integrator", [*INTEGRATORS, RungeKutta4(step=0.05)])
@pytest.mark.parametrize("is_compiled", [True, False])
def test_what_samples_hold(integrator, is_compiled) -> None:
    """x' = u with u = -k x held for h: x_n = (1 - k h)^n x_0."""
    made = system(
        lambda y, s, held, p: {"rate": held},
        sample=lambda y, z, p: {"z": -p * y},
        states=1,
        constants=1,
    )
    k, h, n, x = 1.5, 0.25, 5, 0.7
    end, by = last(made, [x], [k], integrator, is_compiled=is_compiled, samples=n + 1, period=h)
    assert end == pytest.approx((1 - k * h) ** n * x, rel=CLOSE)
    np.testing.assert_allclose(
        by, [[(1 - k * h) ** n, -n * h * (1 - k * h) ** (n - 1) * x]], rtol=CLOSE
    )


def test_derivatives_of_a_system_that_has_none_are_the_system() -> None:
    made = system(lambda y, s, held, p: {"rate": -p * y}, states=1, constants=1)
    assert sensitive(made, 0) is made


def test_a_program_with_newtons_loops_moves_as_differences_say() -> None:
    """Forward dynamics of a machine whose loops close by Newton's method, by its masses and lengths too."""
    mechanism = load("rcid")
    free = [parameter.name for parameter in mechanism.parameters][:4]
    model = Model(mechanism, free=free)
    program = model.actuators.runner.program(FORWARD_DYNAMICS)
    assert any(isinstance(step, Newton) for step in program.steps)
    rng, q = np.random.default_rng(3), model.assembly.q
    n = len(mechanism.actuators)
    inputs = {
        "position": model.actuator_position(q)[None],
        "velocity": 0.1 * rng.normal(size=(1, n)),
        "force": rng.normal(size=(1, n)),
        "theta": np.array([[mechanism.parameters[name].value for name in free]]),
    }
    moves = {
        name: rng.normal(size=row.shape) * np.maximum(np.abs(row), 0.1)
        for name, row in inputs.items()
    }
    motion = tangent_program(program, {name: row.shape[1] for name, row in inputs.items()}).run(
        inputs | {"start": q[None]} | {f"{name}_by": row for name, row in moves.items()}, 1
    )[0]["acceleration_by"]
    ends = [
        program.run(
            {name: row + h * moves[name] for name, row in inputs.items()} | {"start": q[None]}, 1
        )[0]
        for h in (1e-6, -1e-6)
    ]
    differences = (ends[0]["acceleration"] - ends[1]["acceleration"]) / 2e-6
    assert np.abs(motion - differences).max() < CLOSE * np.abs(differences).max()
