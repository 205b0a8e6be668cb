"""Simulation: conservation, routes and integrators beside each other and beside SciPy, singularities, round trips."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from compiled_machines import compilers
from core_machines import CORE_MACHINES
from python_runs import InterpretedStepper
from scaled_machines import Scale, scaled
from scipy.integrate import solve_ivp
from simulation_machines import FINE, frictionless, simulated, swinger, swinging
from tabulated import assert_tabulated

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import AssemblyError, InputError
from tauloop.common.result import Status
from tauloop.compiler.c.calling.evaluator import Compiled, Evaluator, Interpreted
from tauloop.compiler.functions.extended import projection_program
from tauloop.equations.assembly.closing import close_loops
from tauloop.integrate.tableau import dormand_prince, runge_kutta_4
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.model import Friction
from tauloop.simulation import (
    Baumgarte,
    ConstantForce,
    DormandPrince,
    Ending,
    Event,
    ExtendedSpace,
    Feedback,
    ForceLaw,
    IndependentCoordinates,
    Multipliers,
    Projected,
    Radau,
    RungeKutta4,
    Simulator,
    ToolForce,
    simulate_many,
    start_state,
)
from tauloop.simulation.controllers.system import pose_error
from tauloop.simulation.planned.spline_motion import SplineMotion
from tauloop.simulation.round_trips import RoundTrip, round_trip
from tauloop.simulation.stepping.compiled import CompiledStepper
from tauloop.simulation.stepping.stepper import Laws

MACHINES = CORE_MACHINES
#: Machines with the features that matter here: closed forms, Newton blocks, quaternions, dropped
#: rows, no loops.
FEW = ("delta", "five_bar", "gantry_tau_6link", "pendulum_arm")
#: Every machine by its independent coordinates; by projection those that are quickly built.
SWINGS = [(name, IndependentCoordinates()) for name in MACHINES] + [
    (name, Projected()) for name in (*FEW, "rcid")
]
#: The issue's limits on a conservative swing.
ENERGY_KEPT, LOOPS_KEPT = 1e-8, 1e-10
#: Routes integrate other variables with steps of 1e-11: what errors of a step add up to over a
#: second.
ROUTES_AGREE = 1e-8
#: Machine code and interpreter do the same operations in another order.
SAME = 1e-11
#: The issue's limit on a round trip, m.
RETURNED = 1e-9
#: Two integrations with tolerances of 1e-10 and 1e-11.
INTEGRATED = 1e-8

needs_compiler = pytest.mark.skipif(not compilers(), reason="no C compiler: nothing is compiled")


# What is conserved


@pytest.mark.parametrize(
    ("name", "route"), SWINGS, ids=[f"{name}-{type(route).__name__}" for name, route in SWINGS]
)
def test_a_conservative_swing_keeps_its_energy_and_its_loops(name, route):
    ready = swinging(name)
    motion = swinger(name, route).run(1.0, q=ready.q, v=ready.v)
    assert motion.status is Status.OK
    assert motion.relative_energy_error <= ENERGY_KEPT
    assert motion.residual.max() <= LOOPS_KEPT
    moved = np.ptp(motion.q, axis=0).max()
    assert moved > 0.01  # it did swing


@pytest.mark.parametrize("name", FEW)
def test_routes_agree(name):
    ready = swinging(name)
    ends = [
        swinger(name, route).run(0.5, q=ready.q, v=ready.v)
        for route in (IndependentCoordinates(), Projected(), ExtendedSpace(), Multipliers())
    ]
    for other in ends[1:]:
        np.testing.assert_allclose(other.q[-1], ends[0].q[-1], rtol=0, atol=ROUTES_AGREE)
        np.testing.assert_allclose(other.v[-1], ends[0].v[-1], rtol=0, atol=100 * ROUTES_AGREE)


def test_baumgarte_closes_what_drifts():
    ready, loose = swinging("four_bar"), DormandPrince(rtol=1e-6, atol=1e-7)
    drifting, held = (
        swinger("four_bar", ExtendedSpace(stabilization=choice), loose).run(
            5.0, q=ready.q, v=ready.v
        )
        for choice in (None, Baumgarte(alpha=50.0, beta=50.0))
    )
    assert drifting.residual[-1] > 1e-7
    assert held.residual[-1] < 1e-2 * drifting.residual[-1]
    assert drifting.status is Status.DOUBTFUL


def test_an_open_residual_dies_out_as_baumgarte_says():
    """psi'' + 2 a psi' + a^2 psi = 0 from psi = psi_0, psi' = 0 is psi_0 (1 + a t) exp(-a t)."""
    alpha, offset, duration = 40.0, 1e-4, 0.1
    simulator = swinger("delta", Multipliers(stabilization=Baumgarte(alpha=alpha, beta=alpha)))
    system, ready = simulator.system, swinging("delta")
    y = system.encode(ready.q, np.zeros(6))
    y[2] += offset
    progress = simulator.stepper.begin(y, Laws(np.zeros(3)), ready.q)
    steps = simulator.stepper.advance(progress, duration)
    loops = simulator.model.assembly.loops
    first, last = (loops.residuals(row[None, :6])[0][0] for row in (steps.y[0], steps.y[-1]))
    np.testing.assert_allclose(
        last, first * (1 + alpha * duration) * np.exp(-alpha * duration), rtol=1e-6
    )


def test_work_of_actuators_wrench_and_friction_balances_the_energy():
    model = Model(load("five_bar"))
    motion = simulated(
        model,
        0.05,
        force=Feedback(lambda t, q, v: np.array([0.3 + t, -0.2 * v[2]])),
        wrench=lambda t: np.array([2.0 * t, 1.0, 0, 0, 0, 0.1]),
        integrator=DormandPrince(rtol=1e-9, atol=1e-10),
    )
    assert motion.ending is Ending.SUCCESS
    assert np.abs(motion.work).max() > 1e-3
    assert motion.loss[-1] > 0
    assert motion.relative_energy_error < 1e-7


# Routes against an independent integrator, and machine code against the interpreter


@pytest.mark.parametrize("name", ["delta", "pendulum_arm"])
def test_it_goes_where_scipy_goes_with_forward_dynamics(name):
    model = frictionless(name)
    n = model.platform.ports.velocity.size
    at, force = model.platform_position(model.assembly.q), np.linspace(0.5, 1.0, n)

    def rate(time: float, y: np.ndarray) -> np.ndarray:
        state = model.platform.forward_dynamics(y[:n], y[n:], force)
        return np.concatenate([y[n:], state.a[list(model.platform.ports.v)]])

    wanted = solve_ivp(
        rate, (0, 0.05), np.concatenate([at, np.zeros(n)]), method="DOP853", rtol=1e-10, atol=1e-11
    )
    motion = simulated(model, 0.05, force=ConstantForce(tuple(force)), integrator=FINE)
    np.testing.assert_allclose(
        model.platform_position(motion.q[-1]), wanted.y[:n, -1], rtol=0, atol=INTEGRATED
    )


@pytest.mark.parametrize("integrator", [FINE, RungeKutta4(step=1e-3)], ids=["dopri", "rk4"])
@pytest.mark.parametrize(
    ("name", "route"),
    [
        ("five_bar", IndependentCoordinates()),
        ("delta", Projected()),
        ("rcid", IndependentCoordinates()),
    ],
    ids=["newton", "projected", "quaternion"],
)
def test_machine_code_is_the_interpreter(name, route, integrator):
    compiled, ready = swinger(name, route, integrator), swinging(name)
    slow = Simulator(ready.model, route=route, integrator=integrator)
    slow.stepper = InterpretedStepper(slow.system, integrator)  # type: ignore[assignment]
    a, b = (each.run(0.03, q=ready.q, v=ready.v) for each in (compiled, slow))
    # the very first error estimates are rounding, and with them the lengths of these steps
    if integrator is FINE:
        assert abs(len(a.steps) - len(b.steps)) <= 3
        np.testing.assert_allclose(a.q[-1], b.q[-1], rtol=0, atol=INTEGRATED)
        return
    assert len(a.steps) == len(b.steps) == 30
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=SAME)
    np.testing.assert_allclose(a.v, b.v, rtol=0, atol=100 * SAME)


def test_the_implicit_integrator_agrees():
    ready = swinging("delta")
    exact = swinger("delta", IndependentCoordinates()).run(0.2, q=ready.q, v=ready.v)
    for route in (IndependentCoordinates(), Projected()):
        motion = swinger("delta", route, Radau(rtol=1e-9, atol=1e-10)).run(
            0.2, q=ready.q, v=ready.v
        )
        np.testing.assert_allclose(motion.q[-1], exact.q[-1], rtol=0, atol=1e-7)
        assert motion.residual.max() < LOOPS_KEPT


def test_the_implicit_integrator_takes_longer_steps_on_a_stiff_machine():
    """A stiff damper on every joint: explicit steps are bound by stability, implicit ones are not."""
    arm = frictionless("pendulum_arm").mechanism
    stiff = Friction(viscous=Constant(300.0))
    joints = tuple(
        replace(j, freedoms=tuple(replace(f, friction=stiff) for f in j.freedoms))
        for j in arm.joints
    )
    model = Model(replace(arm, joints=joints))
    explicit, implicit = (
        simulated(model, 0.05, integrator=choice)
        for choice in (DormandPrince(rtol=1e-5, atol=1e-7), Radau(rtol=1e-5, atol=1e-7))
    )
    assert len(implicit.steps) < 0.1 * len(explicit.steps)
    np.testing.assert_allclose(implicit.q[-1], explicit.q[-1], rtol=0, atol=1e-5)


def test_the_error_falls_with_the_fourth_power_of_the_step():
    ready = swinging("delta")
    exact = swinger("delta", IndependentCoordinates()).run(0.1, q=ready.q, v=ready.v).q[-1]
    errors = [
        np.abs(
            swinger("delta", IndependentCoordinates(), RungeKutta4(step=h))
            .run(0.1, q=ready.q, v=ready.v)
            .q[-1]
            - exact
        )
        for h in (0.01, 0.005)
    ]
    assert np.log2(errors[0].max() / errors[1].max()) == pytest.approx(4.0, abs=0.4)


def test_tableaus_satisfy_their_order_conditions():
    for tableau, order in ((dormand_prince(), 5), (runge_kutta_4(), 4)):
        b, c = tableau.A[-1], tableau.c
        for k in range(1, order + 1):
            assert b @ c ** (k - 1) == pytest.approx(1 / k, abs=1e-14)
        np.testing.assert_allclose(tableau.A.sum(axis=1), c, atol=1e-14)
        np.testing.assert_allclose(
            tableau.dense.sum(axis=1), b, atol=1e-12
        )  # the dense output ends where the step ends


def test_between_steps_the_dense_output_is_nearly_as_good():
    ready = swinging("rcid")
    motion = swinger("rcid", IndependentCoordinates()).run(0.1, q=ready.q, v=ready.v)
    times = np.linspace(0, 0.1, 7)[1:-1]
    q, v = motion.at(times)
    for k, time in enumerate(times):
        exact = swinger("rcid", IndependentCoordinates()).run(time, q=ready.q, v=ready.v)
        np.testing.assert_allclose(q[k], exact.q[-1], rtol=0, atol=INTEGRATED)
        np.testing.assert_allclose(v[k], exact.v[-1], rtol=0, atol=1e-6)
    assert np.abs(motion.system.model.assembly.loops.residuals(q)[0]).max() < LOOPS_KEPT
    with pytest.raises(InputError, match=r"0\.2 to 0\.2 s is outside"):
        motion.at([0.2])


# Forces


def test_the_round_trip_returns_the_motion():
    model = Model(load("nuwar"))
    at = model.platform_position(model.assembly.q)
    time = np.linspace(0, 0.2, 60)
    path = at + 0.05 * np.sin(2 * np.pi * np.outer(time, [3.0, 4.0, 5.0]) + [0.1, 0.5, 0.9])
    motion = SplineMotion(model, time, path)
    for route in (IndependentCoordinates(), ExtendedSpace()):
        trip = round_trip(
            model, motion, 0.2, route=route, integrator=DormandPrince(rtol=1e-10, atol=1e-11)
        )
        assert trip.simulation.ending is Ending.SUCCESS
        assert trip.position_error <= RETURNED
        assert np.ptp(trip.simulation.force, axis=0).min() > 1.0  # N m: it had to be driven


@pytest.mark.parametrize("name", ["rcid", "gantry_tau_5dof"])
def test_splines_turn_platforms_too(name):
    """Sampled quaternions, whole and in part: angular velocities beside differences of the spline's own poses."""
    model = Model(load(name))
    at, n = model.platform_position(model.assembly.q), 40
    time = np.linspace(0, 0.2, n)
    position = at + 0.01 * np.sin(15 * np.outer(time, 1 + 0.2 * np.arange(len(at))))
    if name == "rcid":
        position[:, 3:] /= np.linalg.norm(position[:, 3:], axis=1, keepdims=True)
        position[10:, 3:] *= -1.0  # the same rotations
    motion = SplineMotion(model, time, position)
    h, now = 1e-5, np.array([0.0513, 0.1234])
    before, here, after = (motion.at(now + shift) for shift in (-h, 0.0, h))
    q = [
        model.platform.kinematics(part.position, start=model.assembly.q).q
        for part in (before, here, after)
    ]
    errors = [ca.DM(pose_error(model, ca.SX(a), ca.SX(b))) for a, b in zip(q[2], q[0], strict=True)]
    speeds = np.array(errors)[:, :, 0] / (2 * h)
    np.testing.assert_allclose(here.velocity, speeds, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        here.acceleration, (after.velocity - before.velocity) / (2 * h), rtol=0, atol=1e-4
    )
    trip = round_trip(model, motion, 0.02, integrator=DormandPrince(rtol=1e-10, atol=1e-11))
    assert trip.position_error <= RETURNED
    assert trip.turning_error <= RETURNED
    assert_tabulated(trip, "wanted.platform.x", "error.platform.x")


def test_a_wrench_at_the_tool_is_what_the_actuators_have_to_carry():
    """Forces that hold a machine under a wrench are its forces at rest less J^T w, by virtual work."""
    model = frictionless("rcid")
    position, zero = model.platform_position(model.assembly.q), np.zeros(6)
    wrench = np.array([20.0, -10.0, 30.0, 1.0, 2.0, -3.0])
    at_rest = model.platform.inverse_dynamics(position, zero, zero).force
    J = model.platform.actuator_jacobian(position)
    tool = np.array([model.mechanism.value(x) for x in model.mechanism.platform.tool.position])
    # at the platform's origin, which stands upright at reference
    moment = wrench[3:] + np.cross(tool, wrench[:3])
    np.testing.assert_allclose(model.assembly.q[3:7], [1, 0, 0, 0], atol=1e-12)
    held = at_rest - np.linalg.solve(J.T, np.concatenate([wrench[:3], moment]))
    for route in (IndependentCoordinates(), Projected()):
        motion = simulated(
            model, 0.02, force=ConstantForce(tuple(held)), wrench=wrench, route=route
        )
        assert np.abs(motion.v[-1]).max() < 1e-8
        assert np.abs(motion.work[-1]) < 1e-10


class _Held(ForceLaw):
    """A proportional law, sampled and held."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    @property
    def period(self) -> float:
        return 0.01

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.seen.append(time)
        return -5.0 * q


@pytest.mark.parametrize(
    "integrator", [FINE, Radau(rtol=1e-10, atol=1e-11)], ids=["dopri", "radau"]
)
def test_a_sampled_law_is_held_between_its_samples(integrator):
    model, law = frictionless("pendulum_arm"), _Held()
    motion = simulated(model, 0.035, force=law, integrator=integrator)
    np.testing.assert_allclose(law.seen, [0.0, 0.01, 0.02, 0.03], atol=1e-15)
    q = model.assembly.q
    v = np.zeros(3)
    for length in (0.01, 0.01, 0.01, 0.005):
        part = simulated(
            model, length, q=q, v=v, force=ConstantForce(tuple(-5.0 * q)), integrator=FINE
        )
        q, v = part.q[-1], part.v[-1]
    np.testing.assert_allclose(motion.q[-1], q, rtol=0, atol=INTEGRATED)


class _Idle(ForceLaw):
    """No forces, sampled."""

    @property
    def period(self) -> float:
        return 0.01

    def force(self, time: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.zeros(3)


@pytest.mark.parametrize(
    "wrench",
    [
        lambda time: np.array([3.0 * np.sin(200.0 * time), 0, 0, 0, 0, 0]),
        ToolForce(lambda time, tool: np.append(-20.0 * tool.twist[:3], np.zeros(3))),
    ],
    ids=["time", "motion"],
)
def test_a_wrench_goes_on_between_the_samples_of_forces(wrench):
    """A law that is sampled and gives nothing changes nothing but where steps end."""
    model = frictionless("pendulum_arm")
    options = {"v": np.array([1.0, 0.5, -0.5]), "wrench": wrench, "integrator": FINE}
    alone, beside = (simulated(model, 0.025, force=force, **options) for force in (None, _Idle()))
    np.testing.assert_allclose(beside.q[-1], alone.q[-1], rtol=0, atol=INTEGRATED)
    np.testing.assert_allclose(beside.v[-1], alone.v[-1], rtol=0, atol=100 * INTEGRATED)
    held = simulated(
        model, 0.025, wrench=np.asarray(alone.wrench[0]), v=options["v"], integrator=FINE
    )
    # a wrench that is held leads elsewhere
    assert np.abs(held.q[-1] - alone.q[-1]).max() > 1e3 * INTEGRATED


def test_what_a_law_raises_reaches_the_caller():
    def broken(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        raise RuntimeError("the law is broken")

    with pytest.raises(RuntimeError, match="the law is broken"):
        simulated(frictionless("pendulum_arm"), 0.1, force=Feedback(broken))


# Events and endings


def test_events_are_found_where_they_are():
    ready = swinging("delta")
    simulator = swinger("delta", IndependentCoordinates())
    level = ready.q[2]

    def height(time: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return q[:, 2] - level - 1e-3

    rising = Event(name="rises", function=height, direction=1, is_terminal=False)
    falling = Event(name="falls", function=height, direction=-1)
    motion = simulator.run(1.0, q=ready.q, v=ready.v, events=[falling, rising])
    names = [item.name for item in motion.occurrences]
    assert motion.ending is Ending.EVENT
    assert names.count("falls") == 1
    assert names[-1] == "falls"
    assert motion.time[-1] == motion.occurrences[-1].time
    for item in motion.occurrences:
        assert abs(item.q[2] - level - 1e-3) < 1e-10
        assert (item.v[2] > 0) == (item.name == "rises")
    assert abs(motion.q[-1, 2] - level - 1e-3) < 1e-9
    assert motion.status is Status.OK


@pytest.mark.parametrize("name", ["delta", "nuwar", "spidermill"])
def test_a_free_fall_into_a_singularity_is_stopped_and_named(name):
    model = frictionless(name)
    start = start_state(
        model,
        model.platform_position(model.assembly.q),
        0.1 * np.cos(np.arange(model.platform.ports.velocity.size)),
    )
    motion = simulated(model, 3.0, q=start[0], v=start[1])
    assert motion.ending is Ending.SINGULAR
    assert motion.problem is not None
    assert "singular or unreachable pose" in motion.problem.what
    assert "condition number" in motion.problem.what
    elements = (*model.mechanism.rods, *model.mechanism.joints)
    assert motion.problem.where in {element.name for element in elements} | {"loop velocities"}
    assert 0.1 < motion.time[-1] < 3.0
    assert np.isfinite(motion.q).all()
    assert motion.relative_energy_error < 1e-5  # what was reached is good to its end
    assert motion.status is Status.DOUBTFUL


@pytest.mark.parametrize("compiled", [True, False])
def test_a_fall_from_rest_that_creeps_into_a_singularity_ends_there(compiled):
    """All legs stretch at once: the plate comes to rest where its legs do not, and steps must not shrink forever."""
    model = Model(load("delta")) if compiled else Model(load("delta"), evaluator=Interpreted())
    motion = simulated(model, 0.3)
    assert motion.ending is Ending.SINGULAR
    assert motion.problem is not None
    assert "forearm" in motion.problem.where
    assert 0.2 < motion.time[-1] < 0.25
    assert len(motion.time) < 1000


def test_full_coordinates_pass_through_a_leg_side_singularity():
    model = frictionless("delta")
    q, v = start_state(model, model.platform_position(model.assembly.q), [0.1, 0.05, 0.0])
    motion = simulated(
        model, 1.0, q=q, v=v, route=Projected(), integrator=DormandPrince(rtol=1e-10, atol=1e-11)
    )
    assert motion.ending is Ending.SUCCESS
    assert motion.relative_energy_error < ENERGY_KEPT
    assert motion.residual.max() < LOOPS_KEPT


@pytest.mark.parametrize("compiled", [True, False])
def test_where_the_loops_lose_rank_full_coordinates_end_or_go_on_with_all_their_energy(compiled):
    """Five-bar, tip between the elbows: steps there are as good as their error says, but the way back is not.

    A step that happens to lead from one side of the pose to the other sees nothing of it: eight of
    31 tolerances from 1e-7 to 1e-10 go on, the others end there.
    """
    model = (
        Model(load("five_bar")) if compiled else Model(load("five_bar"), evaluator=Interpreted())
    )
    ended = 0
    for rtol in (1e-7, 1e-8, 1e-9, 1e-10):
        motion = simulated(
            model, 0.5, route=Projected(), integrator=DormandPrince(rtol=rtol, atol=0.1 * rtol)
        )
        assert motion.relative_energy_error < 1e-7
        assert motion.residual.max() < LOOPS_KEPT
        if motion.ending is Ending.SUCCESS:
            continue
        ended += 1
        assert motion.ending is Ending.SINGULAR
        assert motion.problem is not None
        assert "singular or unreachable pose" in motion.problem.what
        assert 0.27 < motion.time[-1] < 0.28
        assert np.abs(motion.q[-1, 1]) < 0.01  # m: the singular pose is at y = 0
    assert ended >= 3


# Many starts


@needs_compiler
@pytest.mark.parametrize("name", ["delta", "rcid"])
def test_many_starts_in_one_call_are_the_starts_one_by_one(name):
    simulator = swinger(name, IndependentCoordinates(), DormandPrince(rtol=1e-8, atol=1e-9))
    ready = swinging(name)
    q = np.repeat(ready.q[None, :], 3, axis=0)
    v = np.array([1.0, 0.3, -0.7])[:, None] * ready.v
    force = np.zeros((3, len(simulator.model.mechanism.actuators)))
    force[1, 0] = 0.1
    many = simulate_many(simulator, 0.1, q, v, force=force, samples=7)
    assert isinstance(simulator.stepper, CompiledStepper)
    assert many.status is Status.OK
    for i in range(3):
        motion = simulator.run(0.1, q=q[i], v=v[i], force=ConstantForce(tuple(force[i])))
        assert many.endings[i] is Ending.SUCCESS
        assert many.steps[i] == len(motion.steps)
        np.testing.assert_allclose(many.q[i], motion.at(many.time)[0], rtol=0, atol=SAME)
        np.testing.assert_allclose(many.v[i], motion.at(many.time)[1], rtol=0, atol=100 * SAME)
        # energies of one are looked at where steps end, of many at the wanted times
        assert many.energy_error[i] <= 2 * motion.relative_energy_error + 1e-9
    assert np.abs(many.q[0, -1] - many.q[1, -1]).max() > 1e-4
    assert_tabulated(many, "residual")


def test_many_starts_without_a_compiler_and_one_that_falls_into_a_singularity():
    model = Model(load("delta"), evaluator=Interpreted())
    simulator = Simulator(model, integrator=DormandPrince(rtol=1e-5, atol=1e-6))
    q = np.repeat(model.assembly.q[None, :], 2, axis=0)
    held = model.platform.inverse_dynamics(
        model.platform_position(q[0]), np.zeros(3), np.zeros(3)
    ).force
    many = simulate_many(simulator, 0.3, q, force=np.stack([held, 0 * held]), samples=4)
    assert many.endings == (Ending.SUCCESS, Ending.SINGULAR)
    assert many.reached[0] == 0.3
    assert 0.2 < many.reached[1] < 0.25
    assert np.isfinite(many.q[0]).all()
    assert np.isfinite(many.q[1]).all(axis=1).tolist() == [True, True, True, False]
    assert np.abs(many.q[0] - q[0]).max() < 1e-6
    assert many.status is Status.DOUBTFUL
    with pytest.raises(InputError) as caught:
        simulate_many(simulator, 0.0, q, force=np.zeros(4), samples=1)
    assert [problem.where for problem in caught.value.problems] == ["force", "duration", "samples"]


@needs_compiler
def test_many_motions_come_out_alike_by_both_compilers_and_on_threads():
    """One start falls into a singularity: what was not reached stays no number."""
    model, results, rng = Model(load("delta")), [], np.random.default_rng(3)
    force = rng.normal(size=(9, 3))
    q = np.repeat(model.assembly.q[None, :], 9, axis=0)
    v = model.platform.kinematics(model.platform.ports.at(q), 0.1 * rng.normal(size=(9, 3))).v
    for evaluator in (
        Compiled(at_least=100_000),
        Compiled(at_least=10),
        Compiled(at_least=10, threads=3),
    ):
        simulator = Simulator(
            Model(load("delta"), evaluator=evaluator),
            integrator=DormandPrince(rtol=1e-5, atol=1e-6),
        )
        results.append(simulate_many(simulator, 0.3, q, v, force=force, samples=2000))
    assert {*results[0].endings} == {Ending.SUCCESS, Ending.SINGULAR}
    # the very first error estimates are rounding, and with them the lengths of these steps
    assert np.abs(results[0].steps - results[1].steps).max() <= 10
    assert np.array_equal(results[1].steps, results[2].steps)
    for key in ("q", "v", "energy_error", "residual", "reached"):
        embedded, compiled, threaded = (np.asarray(getattr(result, key)) for result in results)
        assert np.array_equal(compiled, threaded, equal_nan=True), key
        assert np.array_equal(np.isnan(embedded), np.isnan(compiled)), key
        # speeds of the leg that stretches grow without bound, and their rounding with them, more so
        # in sums of energies
        rtol = 1e-6 if key == "energy_error" else 1e-7
        np.testing.assert_allclose(compiled, embedded, rtol=rtol, atol=SAME, err_msg=key)


def test_too_many_steps_are_given_up_and_friction_is_blamed():
    motion = simulated(Model(load("pendulum_arm")), 1.0, integrator=DormandPrince(max_steps=600))
    assert motion.ending is Ending.MAX_STEPS
    assert motion.problem is not None
    assert "Coulomb friction holds waist" in motion.problem.what
    assert "fixed steps" in motion.problem.remedy
    fixed = simulated(Model(load("pendulum_arm")), 0.05, integrator=RungeKutta4(step=1e-4))
    assert fixed.ending is Ending.SUCCESS
    # nothing turns it
    assert abs(fixed.coordinate("waist")[-1] - fixed.coordinate("waist")[0]) < 1e-5
    assert len(motion.steps) >= 600


# What is refused


def test_a_freedom_without_inertia_is_refused_by_name(tmp_path):
    link = '<body name="b"><joint name="idle" axis="0 1 0"/><inertial pos="0 0 0" mass="0" diaginertia="0 0 0"/></body>'
    body = f'<body name="a"><joint name="turn"/><geom size="0.1"/>{link}</body>'
    file = tmp_path / "massless.xml"
    file.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>", encoding="utf-8")
    model = Model(load(file))
    with pytest.raises(AssemblyError, match="idle: moves nothing with mass"):
        simulated(model, 0.1)
    with pytest.raises(AssemblyError, match="idle: moves nothing with mass"):
        simulated(model, 0.1, route=Projected())
    with pytest.raises(AssemblyError, match="idle: moves nothing with mass"):
        model.platform.forward_dynamics([0.0, 0.0], [0.0, 0.0], [])


def test_a_start_that_is_not_assembled_is_refused():
    model = frictionless("delta")
    q = model.assembly.q.copy()
    q[2] += 0.01
    with pytest.raises(AssemblyError, match="forearm"):
        simulated(model, 0.1, q=q)
    v = np.zeros(6)
    v[2] = 1.0
    with pytest.raises(AssemblyError, match="opens this loop at"):
        simulated(model, 0.1, v=v)
    with pytest.raises(InputError, match="needs 6 finite numbers"):
        simulated(model, 0.1, q=q[:3])
    turned = frictionless("rcid").assembly.q.copy()
    turned[3] = 1.01
    with pytest.raises(AssemblyError):
        simulated(frictionless("rcid"), 0.1, q=turned)


def test_limits_that_cannot_be_met_are_refused():
    for make in (
        lambda: DormandPrince(rtol=1e-18),
        lambda: Radau(atol=0.0),
        lambda: RungeKutta4(step=0.0),
        lambda: RungeKutta4(step=np.inf),
        lambda: DormandPrince(max_steps=0),
        lambda: Baumgarte(alpha=-1.0),
    ):
        with pytest.raises(InputError):
            make()
    with pytest.raises(InputError) as caught:
        DormandPrince(rtol=2.0, atol=-1.0, max_step=0.0)
    assert len(caught.value.problems) == 3
    with pytest.raises(InputError, match="duration"):
        simulated(frictionless("delta"), -1.0)
    with pytest.raises(InputError, match="force"):
        simulated(frictionless("delta"), 0.1, force=ConstantForce((1.0,)))


def test_momenta_that_give_no_velocities_are_refused():
    with pytest.raises(InputError, match=r"strut.*this motion has no inertia"):
        Simulator(frictionless("hexapod"), route=ExtendedSpace())


def test_motions_that_splines_cannot_follow_are_refused():
    with pytest.raises(InputError) as caught:
        SplineMotion(frictionless("rcid"), np.array([1.0, 0.5]), np.zeros((2, 7)))
    assert len(caught.value.problems) == 3
    assert "order is w, x, y, z" in str(caught.value)


def test_closed_forms_follow_the_branch_of_the_start():
    """Two routes: the closed forms of the start's own elbow, and full coordinates, which know no branches."""
    model = frictionless("delta")
    q = model.assembly.q.copy()[None, :]
    q[0, 3] += 2.5  # the other elbow of the first leg
    other, residual = close_loops(model.assembly.loops, q, held=(0, 1, 2))
    assert residual[0] < LOOPS_KEPT
    assert abs(other[0, 3] - model.assembly.q[3]) > 0.5
    tight = DormandPrince(rtol=1e-10, atol=1e-12)
    closed = simulated(model, 0.05, q=other[0], integrator=tight)
    full = simulated(model, 0.05, q=other[0], route=Projected(), integrator=tight)
    assert closed.status is full.status is Status.OK
    assert np.abs(closed.q[-1] - full.q[-1]).max() < 1e-8
    assert np.abs(closed.q[-1] - other[0]).max() > 1e-3
    many = simulate_many(
        Simulator(model, integrator=tight), 0.05, [other[0], model.assembly.q, other[0]]
    )
    assert many.status is Status.OK
    assert np.abs(many.q[[0, 2], -1] - full.q[-1]).max() < 1e-8
    assert np.abs(many.q[1, -1] - simulated(model, 0.05, integrator=tight).q[-1]).max() < 1e-8


def test_a_start_is_stated_in_a_text_or_by_names() -> None:
    model = Model(load("delta"))
    text, names = (
        tl.simulate(
            model, tl.SimulationOptions(duration=0.001, pose=at, velocity=speed, force=force)
        )
        for at, speed, force in (
            ("x=10 mm", "z=0.1", "leg1.motor=1"),
            ({"x": 0.01}, {"z": "0.1 m/s"}, {"leg1.motor": "1 N m"}),
        )
    )
    assert text.q.tolist() == names.q.tolist()
    assert text.force[0].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("scale", [Scale(1e-6, 1e-18, 1.0), Scale(1e3, 1e9, 1.0)])
def test_limits_of_residuals_and_trips_are_shares_of_the_machine(scale: Scale) -> None:
    """They were 1e-8 m and 1e-9 m: a tenth of a machine of micrometres, and rounding of one of kilometres."""
    trips = [returned_trip(chosen) for chosen in (Scale(), scale)]
    assert trips[1].limit == pytest.approx(trips[0].limit * scale.length)
    residuals = [
        next(item for item in trip.simulation.diagnostics if "residual" in item.name)
        for trip in trips
    ]
    assert residuals[1].upper == pytest.approx(residuals[0].upper * scale.length)
    assert all(residual.is_good for residual in residuals)
    assert next(item.upper for item in trips[1].diagnostics if item.unit == "m") == trips[1].limit


@pytest.mark.parametrize("length", [1e-6, 1e5])
def test_loops_are_projected_alike_at_every_scale(length: float) -> None:
    """Residuals below 1e-13 m were rounding: a ten-millionth of a micrometre's machine, and never reached at 1e5 m."""
    scale = Scale(length, length**3, 1.0)
    expected = projected_end(Scale(), Interpreted())
    for evaluator in (Interpreted(), Compiled()) if compilers() else (Interpreted(),):
        assert projected_end(scale, evaluator) == pytest.approx(expected, abs=SAME)
    gaps = [opened_gap(chosen) for chosen in (Scale(), scale)]
    assert gaps[1] == pytest.approx(gaps[0], rel=1e-6)


def projected_end(scale: Scale, evaluator: Evaluator) -> np.ndarray:
    """Return the last coordinates, in the units of the file, of a short motion whose loops are closed by projection."""
    model = Model(scaled("five_bar", scale).without_friction(), evaluator=evaluator)
    simulator = Simulator(model, route=Projected(), integrator=RungeKutta4(step=1e-3))
    motion = simulator.run(0.01, q=model.assembly.q, v=np.zeros(model.topology.n_v))
    assert motion.status is Status.OK
    return motion.q[-1] / scale.coordinates(model.topology)


def opened_gap(scale: Scale) -> float:
    """Return what a projection finds at a pose whose first coordinate is off by a millionth."""
    assembly = Model(scaled("five_bar", scale), evaluator=Interpreted()).assembly
    q = assembly.q.copy()
    q[0] += 1e-6 * scale.coordinates(assembly.topology)[0]
    inputs = {"q": q[None], "v": np.zeros((1, assembly.topology.n_v)), "theta": np.zeros((1, 0))}
    return float(projection_program(assembly).run(inputs, 1)[0]["gap"][0, 0])


def returned_trip(scale: Scale) -> RoundTrip:
    model = Model(scaled("five_bar", scale).without_friction(), evaluator=Interpreted())
    time = np.linspace(0.0, 0.1, 8)
    path = 0.005 * np.sin(np.outer(time, [10.0, 20.0]))
    motion = SplineMotion(
        model, scale.time * time, model.platform_position(model.assembly.q) + scale.length * path
    )
    return round_trip(model, motion, 0.05 * scale.time)


def test_programs_of_a_model_are_built_once_and_go_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    build, built = tl.simulation.routes.independent_rate_program, []

    def counted(*arguments, **options):
        built.append(options["with_wrench"])
        return build(*arguments, **options)

    monkeypatch.setattr(tl.simulation.routes, "independent_rate_program", counted)
    model = Model("four_bar")
    first, again = (tl.simulate(model, duration=0.01) for _ in range(2))
    np.testing.assert_array_equal(again.q, first.q)
    tl.simulate(model, duration=0.01, wrench=[1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert built == [False, True]
    waiting = weakref.ref(model)
    del model, first, again
    gc.collect()
    assert waiting() is None
