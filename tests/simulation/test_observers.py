"""Observers of forces and of speeds: from simulated motions under known forces, and step by step in C."""

from dataclasses import replace

import numpy as np
import pytest
from python_runs import InterpretedLoop

import tauloop as tl
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.catalogue import MOMENTUM_OBSERVER
from tauloop.compiler.program import Program
from tauloop.model import Model
from tauloop.simulation import Sampling, follow
from tauloop.simulation.controllers.laws import ComputedTorque
from tauloop.simulation.controllers.loop import CompiledLoop
from tauloop.simulation.observers import (
    DifferencedVelocities,
    MeasuredMotion,
    MomentumObserver,
    differenced,
    tracked,
)
from tauloop.simulation.observers.observers import platform_force

WRENCH = np.array([4.0, 0.0, -7.0, 0.0, 0.0, 0.0])
STROKE = tl.StrokeOptions(end={"x": 0.03}, duration=0.1)


def pushed(model, rate, wrench=WRENCH):
    trajectory = tl.plan_stroke(model, STROKE).trajectory
    law = ComputedTorque(bandwidth=150.0)
    run = follow(trajectory, law, Sampling(frequency=rate), wrench=wrench, settling=0.02)
    assert not run.end
    return run


def measured(run, rate):
    model = run.model
    state = model.platform.kinematics(run.position, run.velocity)
    return MeasuredMotion(
        period=1.0 / rate,
        position=model.actuator_position(state.q),
        velocity=np.asarray(state.v) @ model.assembly.loops.transmission.T,
        force=run.force,
        q=state.q[0],
    )


@pytest.mark.parametrize("observer", [MomentumObserver(), DifferencedVelocities()])
def test_an_unfiltered_estimate_is_the_force_but_for_an_error_of_first_order(observer):
    model = Model(tl.load("delta"))
    errors = []
    for rate in (1000.0, 4000.0):
        run = pushed(model, rate)
        q = model.platform.kinematics(run.position).q
        true = platform_force(model, run.position, q, np.tile(WRENCH, (len(run.position), 1)))
        assert true[0] == pytest.approx(WRENCH[:3])  # a Delta's platform does not turn
        errors.append(np.abs(observer.unfiltered(model, measured(run, rate)) - true[1:]).max())
    assert errors[0] < 0.02 * np.abs(WRENCH).max()
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.1)


def test_the_exported_observer_gives_sample_by_sample_what_python_does_at_once():
    model = Model(tl.load("delta"))
    run = pushed(model, 1000.0)
    motion, bandwidth = measured(run, 1000.0), 80.0
    options = tl.FunctionOptions(coordinates=tl.equations.assembly.ACTUATORS)
    function = tl.load_function(
        "delta", "momentum_observer", ("external_force", "momentum"), options=options
    )
    arrays, call = function.bind()
    estimates = []
    for k in range(len(motion.position)):
        arrays["position"][:], arrays["velocity"][:] = motion.position[k], motion.velocity[k]
        arrays["force"][:] = motion.force[max(k - 1, 0)]
        arrays["period"][:], arrays["bandwidth"][:] = motion.period if k else 0.0, bandwidth
        call()
        estimates.append(arrays["external_force"].copy())
        arrays["last_external_force"][:], arrays["last_momentum"][:] = (
            estimates[-1],
            arrays["momentum"],
        )
    expected = MomentumObserver().forces(model, motion, bandwidth)
    assert not expected[0].any()
    assert np.array(estimates) == pytest.approx(expected, abs=1e-9)
    # a lag of 1/K: 63 % of the force after it, but for the sample
    late = expected[round(1000 / bandwidth), 2] / WRENCH[2]
    assert late == pytest.approx(1 - np.exp(-1), abs=0.04)


def test_machine_code_estimates_without_lag(monkeypatch):
    """Nothing overflows, so that no sample is repeated by the interpreter."""
    short, model = measured(pushed(Model("five_bar"), 1000.0), 1000.0), Model("five_bar")
    # there and back, so many samples that they are compiled
    position, velocity, force = (
        np.tile(np.concatenate([part, sign * part[::-1]]), (60, 1))
        for part, sign in ((short.position, 1.0), (short.velocity, -1.0), (short.force, 1.0))
    )
    motion = replace(short, position=position, velocity=velocity, force=force)
    expected = MomentumObserver().unfiltered(Model("five_bar", evaluator=Interpreted()), motion)
    with monkeypatch.context() as patch:
        patch.setattr(Program, "run", None)
        estimate = MomentumObserver().unfiltered(model, motion)
    assert estimate == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["five_bar", "gantry_tau_3dof"])
def test_platform_and_actuators_give_one_force(name):
    """The same program of both entries, at random momenta before."""
    model, rng = Model(tl.load(name), evaluator=Interpreted()), np.random.default_rng(1)
    q = model.assembly.states[:3]
    state = model.platform.kinematics(
        model.platform_position(q), rng.normal(size=(3, len(model.assembly.independent))), start=q
    )
    inputs = {
        "force": rng.normal(size=(3, len(model.mechanism.actuators))),
        "last_momentum": rng.normal(size=(3, model.topology.n_v)),
        "last_external_force": rng.normal(size=(3, len(model.assembly.independent))),
        "period": np.full((3, 1), 1e-3),
        "bandwidth": np.full((3, 1), 50.0),
    }
    estimates = []
    for motion in (model.platform, model.actuators):
        arguments = {
            "position": motion.ports.at(state.q),
            "velocity": motion.ports.rates(np.asarray(state.v)),
        }
        estimates.append(
            motion.runner.run(MOMENTUM_OBSERVER, arguments, start=q, extra=inputs)[0][
                "external_force"
            ]
        )
    assert estimates[0] == pytest.approx(
        estimates[1], rel=1e-9, abs=1e-9 * np.abs(estimates[0]).max()
    )


def test_a_wrench_under_control_is_carried_by_the_actuators():
    """At rest the forces are those of inverse dynamics with the wrench, and compiled is interpreted."""
    model = Model(tl.load("delta"))
    trajectory = tl.plan_stroke(model, tl.StrokeOptions(end={"x": 0.001}, duration=0.01)).trajectory
    law, sampling = ComputedTorque(bandwidth=100.0), Sampling(frequency=1000.0)
    compiled = CompiledLoop(model, model, law, loaded=True)
    runs = [
        follow(
            trajectory,
            law,
            sampling,
            loop=loop,
            wrench=WRENCH,
            payload=lambda t: tl.model.Payload(mass=0.1 * (t > 0.005)),
        )
        for loop in (compiled, InterpretedLoop())
    ]
    assert runs[0].position == pytest.approx(runs[1].position, abs=1e-12)
    settled = follow(trajectory, law, sampling, wrench=lambda _: WRENCH, settling=0.3)
    still = np.zeros(3)
    holding = model.platform.inverse_dynamics(
        settled.position[-1], still, still, wrench=WRENCH
    ).force
    assert settled.force[-1] == pytest.approx(holding, rel=1e-6)
    with pytest.raises(tl.InputError, match="another machine, model, law, space, load"):
        follow(trajectory, law, sampling, loop=compiled)
    with pytest.raises(tl.InputError, match="wrench"):
        follow(trajectory, law, sampling, wrench=np.zeros(3))


def test_a_tracking_loop_keeps_what_its_text_says():
    period, bandwidth, step = 1e-3, 200.0, 1e-5
    c, x, v, speeds = np.exp(-bandwidth * period), 0.0, 0.0, []
    noisy = np.random.default_rng(0).uniform(-step / 2, step / 2, 20_000)
    for position in noisy - noisy[0]:
        ahead = x + period * v
        error = position - ahead
        x, v = ahead + (1 - c**2) * error, v + (1 - c) ** 2 * error / period
        speeds.append(v)
    kept = tracked(noisy[:, None], period, bandwidth)[:, 0]
    assert kept == pytest.approx(np.array(speeds), abs=1e-12)
    assert kept[1000:].std() == pytest.approx(step * np.sqrt(bandwidth**3 * period) / 7, rel=0.05)
    assert differenced(noisy[:, None], period)[1:].std() == pytest.approx(
        step / np.sqrt(6) / period, rel=0.02
    )
    time = period * np.arange(400)[:, None]
    behind = 3 * time[-1] - tracked(1.5 * time**2, period, bandwidth)[-1]
    assert behind == pytest.approx(2 * 3 / bandwidth, rel=0.1)
