"""Controllers of machines with more actuators than freedoms: a few lines of NumPy, energies and differences of runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from python_runs import InterpretedLoop
from redundant_machines import CHANGES, redundant as model
from scipy.optimize import least_squares

import tauloop as tl
from tauloop import Model, loads
from tauloop.compiler.catalogue import MEASURED_MOTION
from tauloop.display import Table
from tauloop.display.tables.motion.control_tables import control_tables
from tauloop.formats.library import source_path
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, Trajectory, plan, stroke
from tauloop.simulation.controllers.error_steps import ErrorSteps
from tauloop.simulation.controllers.laws import Controller, Sampling
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.loop import CompiledLoop
from tauloop.simulation.controllers.predictive import (
    PredictiveRun,
    PredictiveTracking,
    condensed,
    last_cost,
)
from tauloop.simulation.controllers.redundant import MIN_NOISE_RATIO, lengths, motor_masses, spread
from tauloop.simulation.controllers.run import ControlledMotion, follow, prepared_loop

#: Two orders of the same operations.
SAME = 1e-9
#: Errors of this size, m or rad, and what is left of them in squares.
SMALL, SQUARE = 1e-4, 1e-6


@cache
def trajectory(name: str, seconds: float, reach: float):
    machine = model(name)
    here, ports = machine.platform.ports.at(machine.assembly.q), machine.platform.ports.position
    sliding = [i for i, unit in enumerate(ports.units) if unit != "1"][:3]
    line = Line(here[sliding], here[sliding] + reach * np.cos(np.arange(len(sliding))))
    return plan(
        stroke(machine, line, [ports.columns[i] for i in sliding]), POLYNOMIAL_345, Seconds(seconds)
    )


def law(name: str, space: str = "joint") -> Controller:
    return CONTROLLERS[name](bandwidth=100.0, space=space)


def fitted(
    machine: Model, measured: np.ndarray, speed: np.ndarray, weigh: np.ndarray
) -> dict[str, np.ndarray]:
    leading = list(machine.assembly.leading)
    motion = {"position": measured[leading], "velocity": speed[leading]}
    seen = {"measured": measured, "measured_speed": speed, "spread": weigh}
    extra = {name: value[None] for name, value in seen.items()}
    runner = machine.actuators.runner
    return {
        name: value[0]
        for name, value in runner.run(MEASURED_MOTION, motion, extra=extra)[0].items()
    }


@pytest.mark.parametrize("name", CHANGES)
def test_all_actuators_tell_the_motion_by_least_squares(name: str) -> None:
    """Oracle: SciPy's least squares over forward kinematics; what one motion explains is that motion."""
    machine, rng = model(name), np.random.default_rng(3)
    leading, n_u = list(machine.assembly.leading), len(machine.mechanism.actuators)
    here = machine.actuators.ports.at(machine.assembly.q)
    x, rate = here + 0.01 * rng.standard_normal(here.shape), rng.standard_normal(here.shape)
    weigh = spread(machine, np.zeros(n_u))
    whole = machine.actuator_position(machine.actuators.kinematics(x).q)
    R = machine.actuators.actuator_jacobian(x)
    made = fitted(machine, whole, R @ rate, weigh)
    assert made["x"] == pytest.approx(x, abs=SAME)
    assert made["speed"] == pytest.approx(rate, abs=SAME * 10)
    noisy = whole + SMALL * rng.uniform(-1.0, 1.0, n_u) * lengths(machine)
    made = fitted(machine, noisy, R @ rate, weigh)

    def left(x: np.ndarray) -> np.ndarray:
        return (machine.actuator_position(machine.actuators.kinematics(x).q) - noisy) / weigh

    best = least_squares(
        left, noisy[leading], x_scale=lengths(machine)[leading], xtol=1e-14, ftol=1e-14, gtol=1e-14
    ).x
    assert np.abs(noisy[leading] - best).max() > 10 * SQUARE
    assert np.abs((made["x"] - best) / lengths(machine)[leading]).max() < SQUARE


@pytest.mark.parametrize("name", ["delta", "cable_robot"])
def test_forces_are_shared_by_the_least_norm(name: str) -> None:
    """Oracle: NumPy's pseudo-inverse, of R that differences of forward kinematics give."""
    machine = model(name)
    x = machine.actuators.ports.at(machine.assembly.q)
    n_u, m = len(machine.mechanism.actuators), len(x)

    def whole(x: np.ndarray) -> np.ndarray:
        return machine.actuator_position(machine.actuators.kinematics(x).q)

    steps = 1e-5 * np.eye(m)
    R = np.stack([(whole(x + step) - whole(x - step)) / 2e-5 for step in steps], axis=1)
    made = fitted(machine, whole(x), np.zeros(n_u), np.ones(n_u))
    assert made["R"].reshape(m, n_u).T == pytest.approx(R, abs=1e-6)
    assert made["share"].reshape(m, n_u).T == pytest.approx(np.linalg.pinv(R.T), abs=1e-6)


@pytest.mark.parametrize("space", ["joint", "platform"])
@pytest.mark.parametrize("name", ["five_bar", "delta"])
def test_an_error_decays_as_gains_say(name: str, space: str) -> None:
    """e'' + 2 z w e' + w^2 e = 0 of the leading actuators, or of the platform, but for the holding of forces."""
    machine, w, z = model(name), 80.0, 0.7
    controller = CONTROLLERS["computed-torque"](bandwidth=w, damping=z, space=space)
    run, left = CompiledLoop(machine, machine, controller), []
    motion = machine.platform if space == "platform" else machine.actuators
    still = trajectory(name, 0.05, 1e-9)
    first = SMALL * 30 * np.cos(np.arange(motion.ports.velocity.size))
    start = motion.kinematics(motion.ports.at(machine.assembly.q) - first)
    rate = 1j * w * np.sqrt(1 - z**2) - w * z
    for frequency in (4e3, 8e3):
        loop, _ = prepared_loop(still, controller, Sampling(frequency=frequency, saturates=False))
        trace = run(replace(loop, position=machine.platform.ports.at(start.q), q=start.q))
        time = np.arange(len(trace.position)) / frequency
        q = machine.platform.kinematics(
            trace.position, start=np.broadcast_to(start.q, (len(time), len(start.q)))
        ).q
        error = motion.ports.at(machine.assembly.q) - motion.ports.at(q)
        decay = (np.exp(rate * time) * (1 - 1j * (w * z) / rate.imag)).real
        left.append(np.abs(error - decay[:, None] * first).max() / np.abs(first).max())
    assert left[1] < 0.02
    assert left[1] < 0.6 * left[0]  # of first order in the period


@pytest.mark.parametrize("name", ["five_bar", "cable_robot"])
def test_the_work_of_all_actuators_is_the_energy_of_the_machine(name: str) -> None:
    """Forces are held from sample to sample, so their work is a sum; friction is taken away."""
    viscous = [leaf for leaf in model(name).mechanism.parameters.names if "viscous" in leaf]
    made = trajectory(name, 0.1, 0.02)
    run = follow(made, law("computed-torque"), Sampling(saturates=False))
    machine = run.model
    q = machine.platform.kinematics(
        run.position,
        start=np.broadcast_to(machine.assembly.q, (len(run.time), machine.topology.n_q)),
    ).q
    moved = np.diff(machine.actuator_position(q), axis=0)
    platform, k = machine.platform, len(run.time) // 2
    energy = [
        platform.kinetic_energy(run.position[i], run.velocity[i], start=q[i])
        + platform.potential_energy(run.position[i], start=q[i])
        for i in (0, k)
    ]
    work = float((run.force[:k] * moved[:k]).sum())
    assert not viscous
    assert energy[1] - energy[0] > 1e-3
    assert work == pytest.approx(energy[1] - energy[0], rel=1e-6)


@pytest.mark.parametrize("name", ["pd", "feed-forward", "gravity"])
def test_actuators_by_themselves_do_not_press_against_each_other(name: str) -> None:
    """The machine that moves has another length, encoders count: what each asks for by itself would press."""
    machine, made, step = model("five_bar"), trajectory("five_bar", 0.02, 0.005), 1e-4
    plant = Model(machine.mechanism.with_values({"link_length": 0.3502}))
    run = follow(
        made,
        law(name),
        Sampling(resolution=step, saturates=False),
        plant=plant,
        loop=InterpretedLoop(),
    )
    loop, _ = prepared_loop(made, law(name), Sampling())
    state = plant.platform.kinematics(run.position, run.velocity)
    seen = np.floor(plant.actuator_position(state.q) / step + 0.5) * step
    lead = seen[:, list(machine.assembly.leading)]
    R = machine.actuators.actuator_jacobian(lead)
    alone = loop.gains[0] * (loop.reference[0] - seen)
    alone += loop.gains[1] * (loop.reference[1] - state.v @ plant.assembly.loops.transmission.T)
    x = np.stack([fitted(machine, row, np.zeros(3), np.ones(3))["x"] for row in seen])
    still = np.zeros_like(x)
    own = {"pd": 0.0, "feed-forward": loop.feedforward, "gravity": 0.0}[name]
    if name == "gravity":
        own = machine.actuators.inverse_dynamics(x, still, still).force
    expected = own + np.einsum("kij,kjl,kl->ki", R, np.linalg.pinv(R), alone)
    assert run.force == pytest.approx(expected, abs=1e-8)
    pressing = np.linalg.svd(R.mT)[2][:, -1]
    assert np.abs(np.einsum("ki,ki->k", pressing, alone)).max() > 0.05


def test_gains_of_motors_on_one_axis_are_halves() -> None:
    """As many actuators as freedoms have the diagonal of the mass matrix; two alike have half of it each."""
    rng = np.random.default_rng(1)
    half = rng.standard_normal((3, 3))
    mass, unit = half @ half.T, rng.uniform(0.5, 2.0, 3)
    assert motor_masses(np.eye(3), mass, unit) == pytest.approx(np.diagonal(mass), abs=SAME)
    assert motor_masses(np.ones((2, 1)), np.array([[3.0]]), np.ones(2)) == pytest.approx([1.5, 1.5])
    # what is counted in other units is the same machine
    R, scale = rng.standard_normal((4, 3)), rng.uniform(0.1, 10.0, 4)
    ones = motor_masses(R, mass, np.ones(4))
    assert motor_masses(scale[:, None] * R, mass, scale) == pytest.approx(ones / scale**2)
    assert motor_masses(np.array([[1.0], [0.0]]), np.array([[2.0]]), np.ones(2)) == pytest.approx(
        [2.0, 0.0]
    )


def test_encoders_are_trusted_by_their_steps() -> None:
    machine = model("delta")
    steps = np.array([1e-4, 2e-4, 4e-4, 1e-5])
    assert spread(machine, steps) / steps == pytest.approx((spread(machine, steps) / steps)[0])
    exact = spread(machine, np.array([1e-4, 0.0, 1e-4, 1e-4])) / lengths(machine)
    assert exact.min() / exact.max() <= MIN_NOISE_RATIO * 1.0001
    assert np.ptp(spread(machine, np.zeros(4)) / lengths(machine)) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("name", "which", "space"),
    [
        ("five_bar", "pd", "joint"),
        ("delta", "gravity", "joint"),
        ("cable_robot", "gravity", "platform"),
        ("cable_robot", "computed-torque", "platform"),
        ("four_bar", "computed-torque", "joint"),
    ],
)
def test_machine_code_does_what_python_does(name: str, which: str, space: str) -> None:
    """Delayed, quantised and differenced."""
    machine, controller = model(name), law(which, space)
    realistic = Sampling(frequency=1000.0, delay=0.0005, resolution=2e-5, velocity_differences=True)
    made = trajectory(name, 0.005, 1e-3)
    fast, slow = (
        follow(made, controller, realistic, loop=loop, substeps=2)
        for loop in (CompiledLoop(machine, machine, controller), InterpretedLoop())
    )
    assert len(fast.time) == len(slow.time) == 6
    assert fast.position == pytest.approx(slow.position, abs=SAME)
    assert np.abs(fast.force - slow.force).max() < SAME * np.abs(slow.force).max()


def test_derivatives_of_a_loop_are_those_of_differences_of_runs() -> None:
    machine, made, names = (
        model("five_bar"),
        trajectory("five_bar", 0.02, 0.01),
        ("tip_mass", "bandwidth"),
    )
    run = follow(made, law("pd"), Sampling(), sensitivities=names)
    assert run.sensitivities is not None
    by, step = run.sensitivities["position"].values, 1e-4
    for k, change in enumerate((1.0, 100.0)):
        ends = []
        for sign in (-1.0, 1.0):
            moved = sign * step * change
            plant = (
                Model(machine.mechanism.with_values({"tip_mass": 0.3 + moved})) if k == 0 else None
            )
            other = replace(law("pd"), bandwidth=100.0 + moved * (k == 1))
            ends.append(follow(made, other, Sampling(), plant=plant).position)
        assert by[:, :, k] == pytest.approx(
            (ends[1] - ends[0]) / (2 * step * change), abs=1e-6 * np.abs(by[:, :, k]).max()
        )


def test_forces_beyond_a_limit_are_named() -> None:
    run = follow(trajectory("five_bar", 0.02, 0.05), law("computed-torque"), Sampling())
    assert run.status is tl.common.result.Status.DOUBTFUL
    assert any(
        "fraction of saturated forces" in item.name and (item.value or 0) > 0.1
        for item in run.diagnostics
    )


def test_freedoms_that_nothing_drives_are_named() -> None:
    text = source_path("five_bar").read_text(encoding="utf-8")
    machine = Model(
        loads(
            text.replace("  motor_2: {on: shoulder_2, inertia: rotor_inertia, force: 8 N m}\n", "")
        )
    )
    ordinary = trajectory("five_bar", 0.02, 0.005)
    with pytest.raises(
        tl.InputError, match=r"no actuator moves .*elbow_2.* \(1 actuator, 2 degrees of freedom\)"
    ):
        follow(
            replace(ordinary, stroke=replace(ordinary.stroke, model=machine)), law("pd"), Sampling()
        )


def test_a_comparison_has_all_actuators_with_their_units() -> None:
    stroke = tl.StrokeOptions(end={"x": 0.01}, duration=0.02)
    options = tl.ControlOptions(
        stroke=stroke, controller=("pd",), quantization="10 um,0.1 mrad,0.1 mrad,0.1 mrad"
    )
    result = tl.follow_path(model("delta"), options)
    run, answer = result.runs["pd"], result.as_dict()
    assert answer["position_units"] == ["m", "rad", "rad", "rad"]
    assert answer["force_units"] == ["N", "N m", "N m", "N m"]
    behind = [item for item in run.variables() if item.name.startswith("actuator_error")]
    assert [item.unit for item in behind] == ["m", "rad", "rad", "rad"]
    (shown, *_) = control_tables(result)
    assert isinstance(shown, Table)
    assert [head for head in shown.heads if "actuators" in head] == [
        "actuators,\npeak [m]",
        "actuators,\npeak [rad]",
    ]


# Predictive tracking


def freely(machine: Model, R: np.ndarray, force: np.ndarray) -> np.ndarray:
    """Of forces (n_u,) the part that moves the machine."""
    return np.asarray(R @ np.linalg.lstsq(R, force)[0])


@pytest.mark.parametrize("name", ["five_bar", "delta", "cable_robot"])
def test_one_step_ahead_is_the_least_norm_of_one_small_least_squares(name: str) -> None:
    """Oracle: NumPy's least squares of least norm, with what nothing needs taken off."""
    machine, w, T, k = model(name), 100.0, 1e-3, 7
    tracking = PredictiveTracking(bandwidth=w, horizon=1)
    loop, _ = prepared_loop(trajectory(name, 0.04, 0.005), tracking, Sampling(saturates=False))
    tracker, m = PredictiveRun(tracking, loop), machine.platform.ports.velocity.size
    steps, e = tracker._steps, np.linspace(-1.0, 1.0, 2 * m) * np.repeat([1e-5, 1e-3], m)
    (p, c), (_, d) = last_cost(w, 1.0, T)
    half = np.linalg.cholesky(np.kron([[p, c], [c, d]], np.eye(m))).T
    rest = steps.A[k] @ e + steps.drift[k]
    rows = np.vstack([half @ steps.B[k], steps.B[k][m:] / np.sqrt(T)])
    right = -np.concatenate([half @ rest, (rest - e)[m:] / np.sqrt(T)])
    by_hand = steps.mean[k] + np.linalg.lstsq(rows, right)[0]
    by_hand = freely(machine, steps.B[k][m:].T, by_hand)
    x = machine.actuators.ports.at(trajectory(name, 0.04, 0.005).states(np.array([k * T])).q)
    R = machine.actuators.actuator_jacobian(x, start=loop.q[None])[0]
    made = tracker(
        k * T, loop.reference[0][k] + R @ e[:m], loop.reference[1][k] + R @ e[m:], by_hand
    )
    assert made == pytest.approx(by_hand, rel=1e-7, abs=1e-7 * np.abs(by_hand).max())


def test_forces_of_unlike_units_are_shared_too() -> None:
    """Two freedoms, a cylinder of meganewtons and drives of some newton metres: H is definite, the norm the least."""
    rng, unit = np.random.default_rng(2), np.array([1e8, 2e5, 1e3, 3e6])
    R = rng.standard_normal((2, 4)) / unit
    A = np.eye(4) + 1e-3 * np.eye(4, k=2)
    B = np.concatenate([0.5e-3 * R, R]) * 1e-3
    steps = ErrorSteps(
        A=np.tile(A, (12, 1, 1)),
        B=np.tile(B, (12, 1, 1)),
        mean=np.zeros((12, 4)),
        drift=np.zeros((12, 4)),
        speed=np.zeros((12, 4)),
        actuator_jacobian=np.zeros((12, 4, 4)),
        output_jacobian=np.tile(np.eye(4), (12, 1, 1)),
    )
    made = condensed(
        steps, PredictiveTracking(bandwidth=100.0, horizon=10), 1e-3, unit, np.array([0])
    )
    force = unit * (made.best[0] @ np.array([1e-3, -2e-3, 0.1, 0.2, 1.0]))[:4]
    moving = np.linalg.pinv(R) @ (R @ force)
    assert np.abs(force - moving).max() < 1e-5 * np.abs(force).max()
    assert np.linalg.eigvalsh(made.H[0]).min() > 0


def test_in_fast_samples_it_is_computed_torque() -> None:
    """tau(x, v, a_ref - 2 z w e' - w^2 e), shared by the least norm, at ever shorter periods."""
    machine, apart = model("delta"), []
    x, lead = machine.actuators.ports.at(machine.assembly.q), list(machine.assembly.leading)
    e, rate = 1e-5 * np.cos(np.arange(3)), 1e-3 * np.sin(np.arange(3))
    for frequency in (4000.0, 16000.0):
        tracking = PredictiveTracking(bandwidth=100.0, damping=0.8, horizon=5)
        sampling = Sampling(frequency=frequency, saturates=False)
        loop, _ = prepared_loop(trajectory("delta", 0.02, 4e-4), tracking, sampling)
        k = round(0.006 * frequency)
        x, v, a = (part[k][lead] for part in loop.reference)
        asked = a - 100.0**2 * e - 160.0 * rate
        shared = machine.actuators.inverse_dynamics(x + e, v + rate, asked, start=loop.q).force
        rest = machine.actuators.inverse_dynamics(x, v, a, start=loop.q).force
        state = machine.actuators.kinematics(x + e, v + rate, start=loop.q)
        seen = machine.actuator_position(state.q), machine.assembly.loops.transmission @ state.v
        tracker = PredictiveRun(tracking, loop)
        predicted = tracker(k / frequency, *seen, shared) - tracker._steps.mean[k]
        apart.append(np.abs(predicted - (shared - rest)).max() / np.abs(shared - rest).max())
    assert apart[0] < 0.15
    assert apart[1] < apart[0] / 2.5


def test_what_one_motor_lacks_the_others_give() -> None:
    """Beyond the limits of shared forces, but not of all: forces that are cut off lose ten times as much."""
    machine, made = model("five_bar"), trajectory("five_bar", 0.045, 0.02)
    cut, ahead = (
        follow(made, law(name), Sampling(), settling=0.05)
        for name in ("computed-torque", "predictive")
    )
    assert ahead.rms_error < 0.1 * cut.rms_error
    assert np.abs(ahead.force).max() <= 8.0 * (1 + 1e-9)
    q = machine.platform.kinematics(ahead.position).q
    R = machine.actuators.actuator_jacobian(machine.actuators.ports.at(q), start=q)
    pressing = np.linalg.svd(R.mT)[2][:, -1]
    pressed = np.abs(np.einsum("ki,ki->k", pressing, ahead.force))
    full = np.abs(ahead.force).max(axis=1) > 8.0 * (1 - 1e-6)
    assert pressed[full].max() > 1.0
    assert np.median(pressed[~full]) < 0.02


def test_speeds_of_motors_that_follow_are_kept() -> None:
    """The third motor alone has a largest speed; how errors move it beside differences of its speed."""
    machine, made = model("five_bar"), trajectory("five_bar", 0.06, 0.03)
    A = machine.assembly.loops.transmission

    def speeds(run: ControlledMotion) -> np.ndarray:
        return np.asarray(
            np.abs(machine.platform.kinematics(run.position, run.velocity).v @ A.T).max(axis=0)
        )

    (follower,) = set(range(3)) - set(machine.assembly.leading)
    most = 0.9 * speeds(follow(made, law("predictive"), Sampling()))[follower]
    actuators = [
        replace(each, speed=most if i == follower else np.inf)
        for i, each in enumerate(machine.mechanism.actuators)
    ]
    slow = Model(replace(machine.mechanism, actuators=tuple(actuators)))
    run = follow(
        replace(made, stroke=replace(made.stroke, model=slow)), law("predictive"), Sampling()
    )
    assert speeds(run)[follower] < 1.003 * most
    loop, _ = prepared_loop(made, law("predictive"), Sampling())
    steps = PredictiveRun(PredictiveTracking(bandwidth=100.0), loop)._steps
    k, lead = 20, list(machine.assembly.leading)
    middle = [0.5 * (part[k][lead] + part[k + 1][lead]) for part in loop.reference[:2]]
    for i, step in enumerate(1e-5 * np.eye(4)):
        low, high = (
            A
            @ machine.actuators.kinematics(
                middle[0] + s * step[:2], middle[1] + s * step[2:], start=loop.q
            ).v
            for s in (-1.0, 1.0)
        )
        assert steps.actuator_jacobian[k][:, i] == pytest.approx((high - low) / 2e-5, abs=0.02)
    at_end = machine.platform.kinematics(*made_at(made, (k + 1) * 1e-3)).v
    assert steps.speed[k] == pytest.approx((at_end @ A.T)[0], abs=1e-6)


def made_at(made: Trajectory, time: float) -> tuple[np.ndarray, np.ndarray]:
    state, ports = made.states(np.array([time])), made.stroke.model.platform.ports
    return ports.at(state.q), ports.rates(state.v)


def test_machine_code_and_python_call_predictive_tracking_alike() -> None:
    machine, tracking = (
        model("delta"),
        PredictiveTracking(bandwidth=100.0, horizon=4, space="platform"),
    )
    realistic = Sampling(delay=0.0005, resolution=2e-5, velocity_differences=True)
    fast, slow = (
        follow(trajectory("delta", 0.01, 1e-3), tracking, realistic, loop=loop, substeps=2)
        for loop in (CompiledLoop(machine, machine, tracking), InterpretedLoop())
    )
    assert fast.force == pytest.approx(slow.force, rel=1e-7, abs=1e-7)
