"""Predictive tracking: steps beside the machine itself, forces beside Riccati's, programs beside other solvers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from python_runs import InterpretedLoop
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import InputError
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation.controllers.error_steps import between, error_steps
from tauloop.simulation.controllers.laws import ComputedTorque, Sampling
from tauloop.simulation.controllers.loop import CompiledLoop
from tauloop.simulation.controllers.predictive import (
    LIMITED,
    RELAXED_PROGRAMS,
    UNLIMITED,
    UNSOLVED_PROGRAMS,
    PredictiveRun,
    PredictiveTracking,
    condensed,
    last_cost,
)
from tauloop.simulation.controllers.quadratic import QuadraticProgram, is_optimal
from tauloop.simulation.controllers.run import follow, prepared_loop

BANDWIDTH, PERIOD = 150.0, 1e-3
#: Two ways to one solution of linear equations of condition 1e6 and less.
SAME = 1e-8
#: What the solver itself asks of bounds.
SOLVED = 1e-5


@cache
def model(name: str) -> Model:
    """A machine; five_bar without dry friction, and once with all of its numbers drawn anew by up to a tenth."""
    mechanism = load(name.removeprefix("random "))
    values = {leaf: 0.0 for leaf in mechanism.parameters.names if "coulomb" in leaf}
    if name.startswith("random"):
        rng = np.random.default_rng(7)
        lengths = [
            leaf
            for leaf in mechanism.parameters.names
            if leaf not in values and "gravity" not in leaf
        ]
        values |= {
            leaf: mechanism.parameters[leaf].value * rng.uniform(0.9, 1.1) for leaf in lengths
        }
    return Model(mechanism.with_values(values))


@cache
def trajectory(name: str, seconds: float, reach: float = 0.005):
    machine = model(name)
    here, columns = (
        machine.platform.ports.at(machine.assembly.q),
        machine.platform.ports.position.columns,
    )
    sliding = [i for i, unit in enumerate(machine.platform.ports.position.units) if unit == "m"]
    begin, end = here[sliding], here[sliding] - reach * np.cos(np.arange(len(sliding)))
    placed = stroke(machine, Line(begin, end), [columns[i] for i in sliding])
    return plan(placed, POLYNOMIAL_345, Seconds(seconds))


def looped(name: str, law: PredictiveTracking, seconds: float = 0.04, **sampling):
    return prepared_loop(trajectory(name, seconds), law, Sampling(**sampling))[0]


@pytest.mark.parametrize("name", ["delta", "rcid", "random five_bar"])
def test_steps_are_the_machines_own_to_second_order(name):
    """A third of the limit beside the reference's forces: what half a step leaves out is an eighth."""
    machine, made = model(name), trajectory(name, 0.04)
    A = machine.assembly.loops.transmission
    wanted = made.states(np.arange(41) * PERIOD)
    reference = machine.actuator_position(wanted.q), wanted.v @ A.T, wanted.a @ A.T
    rng, m = np.random.default_rng(0), len(machine.mechanism.actuators)
    start, shifts = rng.normal(size=2 * m) * np.repeat([1e-7, 1e-5], m), []
    for step in (PERIOD, PERIOD / 2):
        first = 12 * PERIOD
        steps = error_steps(
            machine,
            reference,
            PERIOD,
            first=first,
            step=step,
            count=1,
            in_platform=False,
            start=wanted.q[0],
        )
        push = 0.3 * np.abs(steps.mean[0]).max() * np.cos(np.arange(m))
        begins, ends = (
            np.concatenate(between(reference, PERIOD, np.array([t]))[:2]).ravel()
            for t in (first, first + step)
        )

        def rate(_, y, force=steps.mean[0] + push):
            return np.concatenate(
                [
                    y[m:],
                    A
                    @ machine.actuators.forward_dynamics(y[:m], y[m:], force, start=wanted.q[12]).a,
                ]
            )

        y = solve_ivp(rate, (0.0, step), begins + start, method="DOP853", rtol=1e-10, atol=1e-13).y[
            :, -1
        ]
        foreseen = steps.A[0] @ start + steps.B[0] @ push + steps.drift[0]
        shifts.append(np.abs(y - ends - foreseen)[m:].max())
        assert shifts[-1] < 2e-3 * np.abs(y - ends)[m:].max()
    assert shifts[1] < shifts[0] / 6


@pytest.mark.parametrize("space", ["joint", "platform"])
@pytest.mark.parametrize("name", ["delta", "rcid", "five_bar", "random five_bar"])
def test_without_limits_it_is_riccatis_feedback(name, space):
    """The program's first forces and those of the time-varying Riccati recursion over (e, 1), backwards."""
    law = PredictiveTracking(bandwidth=BANDWIDTH, damping=0.9, horizon=25, space=space)
    loop = looped(name, law)
    tracker = PredictiveRun(law, loop)
    steps, k, w, z, T = tracker._steps, 5, BANDWIDTH, 0.9, PERIOD
    m = len(loop.limit)
    end = steps.output_jacobian[k + 25]
    V = np.zeros((2 * m + 1, 2 * m + 1))
    V[:-1, :-1] = end.T @ np.kron(last_cost(w, z, T), np.eye(m)) @ end
    Q = T * np.kron(np.diag([w**4, (4 * z**2 - 2) * w**2]), np.eye(m))
    for j in reversed(range(k, k + 25)):
        A = np.block([[steps.A[j], steps.drift[j][:, None]], [np.zeros((1, 2 * m)), np.eye(1)]])
        B = np.vstack([steps.B[j], np.zeros((1, m))])
        now = np.hstack([steps.output_jacobian[j], np.zeros((2 * m, 1))])
        then = np.hstack([steps.output_jacobian[j + 1], np.zeros((2 * m, 1))])
        C, D = (then @ A - now)[m:] / np.sqrt(T), (then @ B)[m:] / np.sqrt(T)
        K = -np.linalg.solve(D.T @ D + B.T @ V @ B, D.T @ C + B.T @ V @ A)
        V = now.T @ Q @ now + (C + D @ K).T @ (C + D @ K) + (A + B @ K).T @ V @ (A + B @ K)
    found_by_program = tracker._unit[:, None] * tracker._programs.best[k][:m]
    assert np.abs(found_by_program - K).max() < SAME * np.abs(K).max()


@pytest.mark.parametrize("horizon", [1, 10])
@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_in_fast_samples_any_horizon_is_computed_torque(name, horizon):
    """tau(x, v, a_ref - 2 z w e' - w^2 e) at ever shorter periods, to first order in the period."""
    machine, apart = model(name), []
    m = len(machine.mechanism.actuators)
    e = np.concatenate([1e-5 * np.cos(np.arange(m)), 1e-3 * np.sin(np.arange(m))])
    for rate in (4000.0, 16000.0):
        law = PredictiveTracking(bandwidth=BANDWIDTH, damping=0.8, horizon=horizon)
        loop = replace(looped(name, law, 0.1, frequency=rate), limit=np.full(m, np.inf))
        k = round(0.03 * rate)
        x, v, a = (part[k] for part in loop.reference)
        asked = a - BANDWIDTH**2 * e[:m] - 1.6 * BANDWIDTH * e[m:]
        torque = machine.actuators.inverse_dynamics(x + e[:m], v + e[m:], asked, start=loop.q).force
        rest = machine.actuators.inverse_dynamics(x, v, a, start=loop.q).force
        tracker = PredictiveRun(law, loop)
        predicted = tracker(k / rate, x + e[:m], v + e[m:], torque) - tracker._steps.mean[k]
        apart.append(np.abs(predicted - (torque - rest)).max() / np.abs(torque - rest).max())
    assert apart[0] < 0.15
    assert apart[1] < apart[0] / 2.5


def test_one_step_ahead_is_one_small_least_squares():
    """With a horizon of one sample: forces from the speed that one step needs, weighed against what follows."""
    law = PredictiveTracking(bandwidth=BANDWIDTH, horizon=1)
    loop = looped("delta", law)
    tracker, k, m = PredictiveRun(law, loop), 7, 3
    steps, e = tracker._steps, np.linspace(-1.0, 1.0, 6) * np.repeat([1e-5, 1e-3], 3)
    (p, c), (_, d) = last_cost(BANDWIDTH, 1.0, PERIOD)
    half = np.linalg.cholesky(np.kron([[p, c], [c, d]], np.eye(m))).T
    rest = steps.A[k] @ e + steps.drift[k]
    rows = np.vstack([half @ steps.B[k], steps.B[k][m:] / np.sqrt(PERIOD)])
    right = -np.concatenate([half @ rest, (rest - e)[m:] / np.sqrt(PERIOD)])
    by_hand = steps.mean[k] + np.linalg.lstsq(rows, right)[0]
    x, v = loop.reference[0][k] + e[:m], loop.reference[1][k] + e[m:]
    assert tracker(k * PERIOD, x, v, by_hand) == pytest.approx(by_hand, rel=SAME)


def test_bounded_programs_are_those_of_least_squares_within_bounds():
    rng, program, active = np.random.default_rng(3), QuadraticProgram(12, 0), 0
    for _ in range(20):
        L, y, upper = rng.normal(size=(18, 12)), rng.normal(size=18), rng.uniform(0.05, 0.4, 12)
        x = program(L.T @ L, -L.T @ y, (-upper, upper))
        assert x == pytest.approx(
            lsq_linear(L, y, (-upper, upper), method="bvls", tol=1e-12).x, abs=SOLVED
        )
        active += int((np.abs(x) > upper - SOLVED).sum())
    assert 40 < active < 200


def test_programs_with_rows_are_those_of_highs():
    """The primal active set of HiGHS; none where rows contradict bounds."""
    rng, program = np.random.default_rng(4), QuadraticProgram(8, 5)
    shapes = {"h": ca.Sparsity.dense(8, 8), "a": ca.Sparsity.dense(5, 8)}
    other = ca.conic(
        "other", "highs", shapes, {"highs": {"output_flag": False}, "print_time": False}
    )
    for _ in range(20):
        L, g, R = rng.normal(size=(9, 8)), rng.normal(size=8), rng.normal(size=(5, 8))
        H, upper, most = L.T @ L + 0.1 * np.eye(8), np.full(8, 0.5), np.full(5, 0.2)
        x = program(H, g, (-upper, upper), R, -most, most)
        y = other(h=H, g=g, a=R, lbx=-upper, ubx=upper, lba=-most, uba=most)["x"]
        assert x == pytest.approx(np.asarray(y).ravel(), abs=SOLVED)
        assert program(H, g, (-upper, upper), R, most + 10, most + 11) is None
    assert not is_optimal(x + 0.01, 0 * x, 0 * most, H, g, (-upper, upper), R, (-most, most))


def share(run, name: str) -> float:
    return next(item.value for item in run.diagnostics if item.name == name)


@pytest.mark.parametrize(("plant", "gain"), [(None, 3.5), ("plate_mass", 1.5)])
def test_beyond_the_limits_it_stays_nearer_than_computed_torque_cut_off(plant, gain):
    """A stroke of the Delta for 1.2 times the largest torques, also with a plate that is heavier than it knows."""
    options = tl.ControlOptions(
        stroke=tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1}, share=1.2),
        controller=("computed-torque", "predictive"),
        plant=None if plant is None else {plant: 1.3 * load("delta").parameters[plant].value},
    )
    comparison = tl.follow_path(load("delta"), options)
    torque, predictive = comparison.runs.values()
    assert predictive.rms_error < torque.rms_error / gain
    assert np.abs(predictive.force).max() <= 41.76
    assert comparison.saturated("computed-torque") > comparison.saturated("predictive") > 0
    assert share(predictive, LIMITED) > 0.1
    assert share(predictive, UNLIMITED) + share(predictive, LIMITED) == pytest.approx(1.0)
    assert comparison.status.value == "ok"
    assert len(predictive.step_time) == len(predictive.time)
    assert len(torque.step_time) == 0


@pytest.mark.parametrize(
    ("name", "space"), [("five_bar", "joint"), ("rcid", "platform"), ("delta", "platform")]
)
def test_within_the_limits_it_foresees_held_and_late_forces(name, space):
    made = trajectory(name, 0.04)
    sampling = Sampling(delay=1.25e-3)
    torque, predictive = (
        follow(made, law(bandwidth=BANDWIDTH, space=space), sampling).rms_error
        for law in (ComputedTorque, PredictiveTracking)
    )
    assert predictive < torque / 4


def test_machine_code_and_python_call_it_alike():
    made, machine = trajectory("delta", 0.01), model("delta")
    law = PredictiveTracking(bandwidth=BANDWIDTH, space="platform", horizon=8)
    sampling = Sampling(delay=5e-4, resolution=1e-5, velocity_differences=True)
    fast, slow = (
        follow(made, law, sampling, loop=loop, substeps=2)
        for loop in (CompiledLoop(machine, machine, law), InterpretedLoop())
    )
    assert fast.force == pytest.approx(slow.force, rel=1e-7, abs=1e-7)


def test_speeds_curves_and_reversals_are_kept():
    """Of one motion, whose reference goes a tenth beyond the speeds that the machine may have."""
    free = follow(trajectory("delta", 0.06, 0.05), ComputedTorque(bandwidth=BANDWIDTH), Sampling())
    machine = model("delta")
    A = machine.assembly.loops.transmission

    def speeds(run):
        return np.abs(machine.platform.kinematics(run.position, run.velocity).v @ A.T).max()

    most = 0.9 * speeds(free)
    slow = Model(
        replace(
            machine.mechanism,
            actuators=tuple(replace(each, speed=most) for each in machine.mechanism.actuators),
        )
    )
    placed = trajectory("delta", 0.06, 0.05)
    made = replace(placed, stroke=replace(placed.stroke, model=slow))
    curve = ((0.0, 0.9), (most, 0.5))
    law = PredictiveTracking(bandwidth=BANDWIDTH, motor_curve=curve, reversal=0.02)
    run = follow(made, law, Sampling())
    assert speeds(run) < 1.002 * most < speeds(free)
    assert np.abs(np.diff(run.force, axis=0)).max() <= 2 * 41.76 * 1e-3 / 0.02 * (1 + SOLVED)
    wanted = made.states(run.time)
    shares = np.interp(np.abs(wanted.v[1:] @ A.T), *np.transpose(curve))
    assert np.all(np.abs(run.force[:-1]) <= 41.76 * shares * (1 + SOLVED))
    assert share(run, LIMITED) > 0
    assert share(run, UNSOLVED_PROGRAMS) == 0


def test_limits_that_no_forces_keep_are_left_out_and_counted():
    """Measured at ten times the speed that motors may have: no force brakes that in a sample."""
    machine = model("delta")
    actuators = tuple(replace(each, speed=2.0) for each in machine.mechanism.actuators)
    placed = trajectory("delta", 0.04)
    slow = Model(replace(machine.mechanism, actuators=actuators))
    made = replace(placed, stroke=replace(placed.stroke, model=slow))
    law = PredictiveTracking(bandwidth=BANDWIDTH)
    tracker = PredictiveRun(law, prepared_loop(made, law, Sampling())[0])
    still = np.zeros(3)
    tracker(0.0, tracker._reference[0][0], still, still)
    braking = tracker(PERIOD, tracker._reference[0][1], still + 20.0, still)
    assert braking == pytest.approx([-41.76] * 3)
    assert tracker.outcomes == {UNLIMITED: 1, RELAXED_PROGRAMS: 1}
    unseen = tracker(2 * PERIOD, still * np.nan, still, still)
    assert not np.isfinite(unseen).any()
    relaxed, cut = (
        item for item in tracker.diagnostics() if item.name in (RELAXED_PROGRAMS, UNSOLVED_PROGRAMS)
    )
    assert not relaxed.is_good
    assert not cut.is_good
    assert (relaxed.value, cut.value) == (pytest.approx(1 / 3), pytest.approx(1 / 3))


def test_what_it_cannot_do_is_refused():
    with pytest.raises(InputError, match=r"damping: is 0\.5\n.*at least 0\.707"):
        PredictiveTracking(bandwidth=BANDWIDTH, damping=0.5)
    law = PredictiveTracking(
        bandwidth=BANDWIDTH, motor_curve=((0.0, 1.0), (1.0, 0.5)), reversal=0.02
    )
    with pytest.raises(
        InputError,
        match=r"(?s)motor_curve: requires motors with known.*reversal: requires motors with known",
    ):
        follow(trajectory("delta", 0.04), law, Sampling(saturates=False))
    with pytest.raises(
        InputError, match=r"horizon: 5000 steps at each of 4\d samples need \d+\.\d GB"
    ):
        follow(
            trajectory("delta", 0.04),
            PredictiveTracking(bandwidth=BANDWIDTH, horizon=5000),
            Sampling(),
        )
    stroke_options = tl.StrokeOptions(end={"z": -0.55}, duration=0.05)
    with pytest.raises(InputError, match="'predictive' cannot be generated as code"):
        tl.follow_path_with_exported_code(
            load("delta"), tl.ControlOptions(stroke=stroke_options, controller=("predictive",))
        )


def test_programs_of_many_samples_are_made_in_blocks():
    law = PredictiveTracking(bandwidth=BANDWIDTH, horizon=2)
    tracker = PredictiveRun(law, looped("five_bar", law, 0.1))
    last = condensed(tracker._steps, law, PERIOD, tracker._unit, np.array([90]))
    assert tracker._programs.H[90] == pytest.approx(last.H[0], rel=1e-12)
    assert len(tracker._programs.F) == 101
