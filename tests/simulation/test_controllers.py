"""Controllers: machine code beside Python, held forces beside SciPy's integrator, laws by hand, what is refused."""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import casadi as ca
import numpy as np
import pytest
from python_runs import InterpretedLoop
from scipy.integrate import solve_ivp

from tauloop import Model, load
from tauloop.common.errors import InputError
from tauloop.common.result import Status
from tauloop.integrate.integrators import DormandPrince, Radau
from tauloop.motion import (
    POLYNOMIAL_345,
    AxisTurn,
    CombinedPath,
    Ellipse,
    Line,
    Seconds,
    plan,
    stroke,
)
from tauloop.motion.paths.curves import quaternion_product
from tauloop.simulation.controllers.laws import (
    HEUN_3,
    PD,
    RUNGE_KUTTA_4,
    ComputedTorque,
    Controller,
    FeedForward,
    GravityCompensation,
    Sampling,
)
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.loop import CompiledLoop
from tauloop.simulation.controllers.run import follow
from tauloop.simulation.controllers.system import pose_error

PLATE = ("platform.x", "platform.y", "platform.z")
SCALE, BANDWIDTH = 0.72, 150.0
#: Both routes do the same operations in another order, over some tens of samples of a stable loop.
SAME = 1e-9
#: SciPy's integrator at 1e-11 relative beside fixed steps of 0.25 ms over so many samples.
INTEGRATED, SAMPLES = 1e-9, 4

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("cc", "gcc", "clang")),
    reason="no C compiler: nothing is compiled",
)


@cache
def model(name: str) -> Model:
    return Model(load(name))


@cache
def trajectory(name: str, seconds: float = 0.2, returns: bool = False):
    machine = model(name)
    here, columns = (
        machine.platform.ports.at(machine.assembly.q),
        machine.platform.ports.position.columns,
    )
    if name == "nuwar":
        path = Ellipse([0, 0, -0.9 * SCALE], [0, -0.2 * SCALE, 0], [0, 0, 0.4 * SCALE], 0.0, np.pi)
    elif name == "rcid":
        path = CombinedPath(
            (
                Line(here[:3] - 0.004, here[:3] + 0.004),
                AxisTurn([1.0, 0.0, 0.0, 0.0], [0.05, 0.04, -0.06]),
            )
        )
    else:
        shift = 0.02 * np.cos(np.arange(len(here)))
        path = Line(here - shift, here + shift)
    return plan(stroke(machine, path, columns), POLYNOMIAL_345, Seconds(seconds), returns=returns)


REALISTIC = Sampling(frequency=1000.0, delay=0.0005, resolution=2e-5, velocity_differences=True)
#: What is compiled and interpreted: all laws in both spaces, quaternions, Newton blocks, a part of
#: a rotation.
ROUTES = [
    ("nuwar", "pd", "joint"),
    ("nuwar", "pd", "platform"),
    ("nuwar", "gravity", "joint"),
    ("nuwar", "feed-forward", "joint"),
    ("rcid", "computed-torque", "platform"),
    ("rcid", "gravity", "platform"),
    ("five_bar", "computed-torque", "joint"),
    ("five_bar", "feed-forward", "platform"),
    ("gantry_tau_5dof", "computed-torque", "joint"),
    ("gantry_tau_5dof", "gravity", "platform"),
]


@cache
def without_coulomb(name: str) -> Model:
    mechanism = load(name)
    coulomb = [leaf for leaf in mechanism.parameters.names if "coulomb" in leaf]
    return Model(mechanism.with_values(dict.fromkeys(coulomb, 0.0))) if coulomb else model(name)


@needs_compiler
@pytest.mark.parametrize(("name", "law", "space"), ROUTES)
def test_machine_code_does_what_python_does(name, law, space):
    """Delayed, quantised, differenced, over ten samples (Coulomb friction left out: its sign at rest is rounding's)."""
    machine = without_coulomb(name)
    here = machine.platform.ports.at(machine.assembly.q)
    sliding = [i for i, unit in enumerate(machine.platform.ports.position.units) if unit == "m"]
    columns = [machine.platform.ports.position.columns[i] for i in sliding]
    path = Line(here[sliding], here[sliding] + 1e-3)
    made = plan(stroke(machine, path, columns), POLYNOMIAL_345, Seconds(0.01))
    controller = CONTROLLERS[law](bandwidth=BANDWIDTH, space=space)
    fast, slow = (
        follow(made, controller, REALISTIC, loop=loop, substeps=2)
        for loop in (CompiledLoop(machine, machine, controller), InterpretedLoop())
    )
    assert len(fast.time) == len(slow.time) == 11
    assert np.ptp(slow.position, axis=0).max() > 1e-6
    assert fast.position == pytest.approx(slow.position, abs=SAME)
    assert fast.velocity == pytest.approx(slow.velocity, abs=SAME * 1e3)
    assert np.abs(fast.force - slow.force).max() < SAME * np.abs(slow.force).max()


@pytest.mark.parametrize("delay", [0.0, 0.0005, 0.00125])
def test_held_and_delayed_forces_move_the_machine_as_scipy_says(delay):
    """The forces of the result, held and delayed by hand, integrated by DOP853 give the result's positions."""
    # a short and fierce stroke: forces differ from sample to sample, up to their limits
    made = replace(trajectory("nuwar"), duration=0.02)
    machine, period = model("nuwar"), 1e-3
    motion = follow(
        made, FeedForward(bandwidth=BANDWIDTH), Sampling(delay=delay), loop=InterpretedLoop()
    )
    still = machine.platform.inverse_dynamics(motion.position[0], np.zeros(3), np.zeros(3)).force
    y = np.concatenate([motion.position[0], np.zeros(3)])
    edges = np.unique(
        np.round(
            np.concatenate(
                [np.arange(SAMPLES + 1) * period, delay + np.arange(SAMPLES + 1) * period]
            ),
            9,
        )
    )
    edges = edges[edges <= SAMPLES * period + 1e-12]
    for begin, end in pairwise(edges):
        k = int(np.floor((0.5 * (begin + end) - delay) / period))
        force = still if k < 0 else motion.force[k]

        def rate(_, y, force=force):
            return np.concatenate(
                [y[3:], machine.platform.forward_dynamics(y[:3], y[3:], force).a[:3]]
            )

        y = solve_ivp(rate, (begin, end), y, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    assert y[:3] == pytest.approx(motion.position[SAMPLES], abs=INTEGRATED)
    assert y[3:] == pytest.approx(motion.velocity[SAMPLES], abs=INTEGRATED * 1e3)


def test_quantised_positions_and_their_differences_enter_the_law():
    """PD by hand, from the result's own motion: stepped positions, their differences, gains from the mass matrix."""
    made, machine, step = trajectory("nuwar", 0.2), model("nuwar"), 1e-3
    sampling = Sampling(resolution=step, velocity_differences=True, saturates=False)
    motion = follow(made, PD(bandwidth=50.0), sampling, loop=InterpretedLoop(), substeps=1)
    q = machine.platform.kinematics(motion.position).q
    measured = step * np.round(machine.actuator_position(q) / step)
    assert np.abs(measured - machine.actuator_position(q)).max() > 0.4 * step
    speed = np.concatenate([np.zeros((1, 3)), np.diff(measured, axis=0)]) * sampling.frequency
    reference = made.at(motion.time)
    wanted = machine.platform.kinematics(reference.position, reference.velocity)
    A = machine.assembly.loops.transmission
    # the mass matrix of the motors by columns: inverse dynamics of unit accelerations
    p0, zero = machine.actuator_position(wanted.q[:1]), np.zeros((1, 3))
    rest = machine.actuators.inverse_dynamics(p0, zero, zero, start=wanted.q[:1]).force
    mass = [
        machine.actuators.inverse_dynamics(
            p0, zero, np.eye(3)[i : i + 1], start=wanted.q[:1]
        ).force[0, i]
        - rest[0, i]
        for i in range(3)
    ]
    expected = np.array(mass) * (
        50.0**2 * (machine.actuator_position(wanted.q) - measured)
        + 2 * 50.0 * (wanted.v @ A.T - speed)
    )
    assert motion.force == pytest.approx(expected, abs=1e-8)


@needs_compiler
@pytest.mark.parametrize("space", ["joint", "platform"])
def test_without_a_model_the_machine_sags_and_with_gravity_compensation_not(space):
    """At rest K_p e is the holding torque (in platform space J^T of it), found apart by inverse dynamics."""
    machine, made = model("nuwar"), trajectory("nuwar", 0.4)
    sagging, held = (
        follow(made, law(bandwidth=60.0, space=space), Sampling(), settling=1.0)
        for law in (PD, GravityCompensation)
    )
    zero = np.zeros(3)
    holding = machine.platform.inverse_dynamics(sagging.position[-1], zero, zero).force
    assert sagging.force[-1] == pytest.approx(holding, rel=1e-6)
    assert sagging.tool_error[-1] > 1e-4
    assert held.tool_error[-1] < 1e-9
    assert np.abs(holding).max() > 0.1


@needs_compiler
def test_the_model_pays_and_a_wrong_one_less():
    """Peak errors on the stroke: without model, with a wrong payload, with the right one."""
    made = trajectory("nuwar", 0.2, True)
    machine = made.stroke.model
    heavier = Model(machine.mechanism.with_values({"plate_mass": 1.3 * 0.2807}))
    for space in ("joint", "platform"):
        errors = {
            name: follow(made, law(bandwidth=BANDWIDTH, space=space), Sampling()).peak_error
            for name, law in CONTROLLERS.items()
        }
        assert errors["pd"] > 10 * errors["feed-forward"]
        assert errors["pd"] > 10 * errors["computed-torque"]
        wrong = follow(
            made, ComputedTorque(bandwidth=BANDWIDTH, space=space), Sampling(), plant=heavier
        ).peak_error
        assert errors["computed-torque"] < wrong < errors["pd"]


@needs_compiler
def test_what_is_left_of_the_error_is_the_holding_of_the_forces():
    """A force held over a sample comes half a sample late: the error halves with the period."""
    made = trajectory("nuwar", 0.2)
    law = ComputedTorque(bandwidth=BANDWIDTH)
    errors = [
        follow(made, law, Sampling(frequency=frequency), substeps=1).peak_error
        for frequency in (2000.0, 4000.0, 8000.0)
    ]
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.05)


@needs_compiler
def test_fixed_steps_converge_with_their_order():
    made = trajectory("nuwar", 0.2)
    law = ComputedTorque(bandwidth=BANDWIDTH)
    best = follow(made, law, Sampling(), substeps=64).position
    for method, order in ((RUNGE_KUTTA_4, 4), (HEUN_3, 3)):
        coarse, fine = (
            np.abs(follow(made, law, Sampling(), substeps=n, method=method).position - best).max()
            for n in (1, 2)
        )
        assert np.log2(coarse / fine) == pytest.approx(order, abs=0.4)


@needs_compiler
@pytest.mark.parametrize(
    "integrator", [Radau(rtol=1e-10, atol=1e-11), DormandPrince()], ids=["implicit", "adaptive"]
)
def test_other_integrators_come_to_the_same_motion(integrator):
    made = trajectory("nuwar", 0.02)
    law, sampling = ComputedTorque(bandwidth=BANDWIDTH), Sampling(delay=0.0005)
    wanted, motion = (
        follow(made, law, sampling, method=m, substeps=s)
        for m, s in ((RUNGE_KUTTA_4, 64), (integrator, 4))
    )
    assert motion.position == pytest.approx(wanted.position, abs=1e-8)


def test_an_implicit_integrator_is_the_same_in_python():
    made, law = trajectory("nuwar", 0.003), PD(bandwidth=BANDWIDTH)
    tight = Radau(rtol=1e-10, atol=1e-11)
    wanted, motion = (
        follow(made, law, Sampling(), loop=InterpretedLoop(), method=m)
        for m in (RUNGE_KUTTA_4, tight)
    )
    assert motion.position == pytest.approx(wanted.position, abs=1e-8)


def test_an_integrator_that_needs_too_many_steps_says_so():
    motion = follow(
        trajectory("nuwar", 0.02),
        PD(bandwidth=BANDWIDTH),
        Sampling(),
        method=DormandPrince(max_steps=9),
    )
    assert "too many steps" in motion.end


@dataclass(frozen=True, slots=True, kw_only=True)
class PID(Controller):
    """A law of one's own: the integral of the error beside a PD law."""

    integral_time: float

    def force_callback(self, loop):
        total, k = np.zeros(len(loop.limit)), 0

        def corrected(time, measured, speed, force):
            nonlocal total, k
            error, k = loop.reference[0][k] - measured, k + 1
            total = total + error * loop.period
            return force + loop.gains[0] / self.integral_time * total

        return corrected


@needs_compiler
def test_a_law_of_ones_own_carries_what_a_pd_law_lets_sag():
    made = trajectory("nuwar", 0.02)
    fast, slow = (
        follow(made, PID(bandwidth=BANDWIDTH, integral_time=0.02), Sampling(), loop=loop)
        for loop in (None, InterpretedLoop())
    )
    assert fast.force == pytest.approx(slow.force, rel=SAME, abs=SAME)
    law, plain, slower = (
        PID(bandwidth=BANDWIDTH, integral_time=0.05),
        PD(bandwidth=BANDWIDTH),
        trajectory("nuwar"),
    )
    held, sagging = (
        follow(slower, case, Sampling(), settling=0.5).tool_error[-1] for case in (law, plain)
    )
    assert held < 1e-3 * sagging


@needs_compiler
def test_forces_end_at_the_limits_and_it_is_told():
    made = trajectory("nuwar", 0.13)
    motion = follow(made, ComputedTorque(bandwidth=BANDWIDTH), Sampling())
    assert np.abs(motion.force).max() == 41.76
    assert motion.status is Status.DOUBTFUL
    assert any("saturated" in line for line in motion.advice)
    free = follow(made, ComputedTorque(bandwidth=BANDWIDTH), Sampling(saturates=False))
    assert np.abs(free.force).max() > 41.76
    assert free.status is Status.OK
    assert free.peak_error < motion.peak_error


@needs_compiler
@pytest.mark.parametrize("interpreted", [False, True], ids=["compiled", "interpreted"])
def test_a_run_that_fails_keeps_what_was_reached_and_says_why(interpreted):
    """Gains far too high for the sampling: the machine is thrown out of its reach."""
    made = trajectory("nuwar", 0.2)
    loop = InterpretedLoop() if interpreted else None
    sampling = Sampling(frequency=200.0, saturates=False)
    motion = follow(made, PD(bandwidth=3000.0), sampling, loop=loop)
    assert 0 < len(motion.time) < 41
    assert len(motion.position) == len(motion.force) == len(motion.time)
    assert motion.end
    assert motion.status is Status.DOUBTFUL
    assert np.isfinite(motion.position).all()


@needs_compiler
def test_the_quaternion_stays_a_unit_and_turns_as_wanted():
    made = trajectory("rcid", 0.2)
    motion = follow(
        made, ComputedTorque(bandwidth=BANDWIDTH, space="platform"), Sampling(), settling=0.2
    )
    assert np.linalg.norm(motion.position[:, 3:], axis=1) == pytest.approx(
        np.ones(len(motion.time)), abs=1e-14
    )
    assert motion.position[-1, 3:] == pytest.approx(motion.reference[-1, 3:], abs=1e-8)
    assert np.ptp(motion.reference[:, 3:], axis=0).max() > 0.02


@pytest.mark.parametrize("name", ["rcid", "gantry_tau_5dof"])
def test_the_error_of_a_pose_is_the_twist_that_leads_there(name):
    """A small displacement along the loops: its error is the given velocities times the time, to second order."""
    machine, step = model(name), 1e-4
    entry = machine.platform.ports
    twist = 0.3 * np.cos(np.arange(entry.velocity.size))
    still = machine.platform.kinematics(
        entry.at(machine.assembly.q), twist, start=machine.assembly.q
    )
    moved = solve_ivp(
        lambda _, q: rate_of_coordinates(machine, q, twist),
        (0, step),
        still.q,
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
    ).y[:, -1]
    at, there = ca.SX(still.q), ca.SX(moved)
    error, none = (np.array(ca.DM(pose_error(machine, pose, at))).ravel() for pose in (there, at))
    assert error == pytest.approx(step * twist, abs=10 * step**2)
    assert np.abs(none).max() < 1e-15


def rate_of_coordinates(machine: Model, q: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """Rates of all coordinates on a platform motion."""
    shape = machine.topology
    state = machine.platform.kinematics(machine.platform.ports.at(q), twist, start=q)
    v, rate = np.asarray(state.v), np.zeros(shape.n_q)
    for iv, iq in enumerate(shape.q_of_v):
        if iq >= 0:
            rate[iq] = v[iv]
    for q0, v0 in shape.quaternions:
        rate[q0 : q0 + 4] = 0.5 * quaternion_product(
            np.array([0.0, *v[v0 : v0 + 3]]), state.q[q0 : q0 + 4]
        )
    return rate


@needs_compiler
def test_a_part_of_a_rotation_is_followed_in_platform_space():
    made = trajectory("gantry_tau_5dof", 0.3)
    controller = FeedForward(bandwidth=100.0, space="platform")
    motion = follow(made, controller, Sampling(saturates=False), settling=0.1)
    moved = np.ptp(motion.reference, axis=0)
    assert (moved[3:] > 1e-3).all()
    assert (np.abs(motion.reference - motion.position).max(axis=0) < 0.01 * moved.max()).all()
    assert not motion.end


# What is refused


@pytest.mark.parametrize(
    ("make", "wheres"),
    [
        (lambda: PD(bandwidth=0.0, damping=-1.0, space="tool"), ["bandwidth", "damping", "space"]),
        (
            lambda: Sampling(frequency=0.0, delay=-1.0, resolution=-1.0),
            ["frequency", "delay", "resolution"],
        ),
    ],
)
def test_numbers_that_make_no_controller_are_refused_all_at_once(make, wheres):
    with pytest.raises(InputError) as caught:
        make()
    assert [problem.where for problem in caught.value.problems] == wheres


def test_what_does_not_fit_the_machine_is_refused_all_at_once():
    with pytest.raises(InputError) as caught:
        follow(
            trajectory("gantry_tau_5dof"),
            PD(bandwidth=1.0),
            Sampling(resolution=np.zeros(3)),
            plant=model("nuwar"),
            substeps=0,
            settling=-1.0,
        )
    wheres = [problem.where for problem in caught.value.problems]
    assert wheres == ["plant", "resolution", "substeps", "settling"]


@needs_compiler
def test_a_loop_compiled_for_another_law_is_refused():
    machine = model("nuwar")
    loop = CompiledLoop(machine, machine, PD(bandwidth=1.0))
    with pytest.raises(InputError, match="compiled for another"):
        follow(trajectory("nuwar"), PD(bandwidth=1.0, space="platform"), Sampling(), loop=loop)


# The example and the benchmark


def program(folder: str, name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / folder))
    return importlib.import_module(name)


@needs_compiler
def test_the_example_shows_what_the_model_is_worth(monkeypatch, tmp_path, capsys):
    module = program("examples", "nuwar_control", monkeypatch)
    outcome = module.main(tmp_path)
    for space in ("joint", "platform"):
        assert (
            outcome["ideal", space, "pd"].peak_error
            > 20 * outcome["ideal", space, "computed-torque"].peak_error
        )
        assert outcome["ideal", space, "computed-torque"].status is Status.OK
        for case in ("delay and encoders", "unknown payload"):
            assert (
                outcome[case, space, "pd"].peak_error
                > 2 * outcome[case, space, "computed-torque"].peak_error
            )
    assert not any(result.end for result in outcome.values())
    assert (
        len(json.loads((tmp_path / "nuwar_control.json").read_text(encoding="utf-8"))["runs"]) == 30
    )
    assert (tmp_path / "nuwar_control.png").read_bytes().startswith(b"\x89PNG")
    assert "Tracking error" in capsys.readouterr().out


@needs_compiler
def test_the_benchmark_measures_both_machines_and_their_errors(monkeypatch, capsys):
    """No time is judged; errors are, and MuJoCo's motion under the same forces tends to ours as its steps shrink."""
    module = program("benchmarks", "bench_control", monkeypatch)
    assert module.main(["--seconds", "0.001", "--no-cpp", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = document["rows"]
    own = [row for row in rows if row["contender"].startswith("Tauloop")]
    assert len(own) == 8
    for row in own:
        assert row["error"] < (1e-8 if "Runge-Kutta" in row["method"] else 1e-5)
        assert row["tracking"] < 1e-3
    missing = [reason for reason in document["left_out"] if reason.startswith("MuJoCo")]
    if missing:
        pytest.skip(f"not run: {missing}")
    for machine in ("nuwar", "rcid"):
        errors = {
            row["method"]: row["error"]
            for row in rows
            if row["machine"] == machine and row not in own
        }
        assert errors["Runge-Kutta 4, 10 steps"] < 1e-6
        assert errors["Runge-Kutta 4, 10 steps"] < 0.1 * errors["Runge-Kutta 4, 1 step"]
        assert (
            max(row["error"] for row in own if row["machine"] == machine)
            < errors["Runge-Kutta 4, 1 step"]
        )
