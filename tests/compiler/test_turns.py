"""Angles that turn further than half a turn, against a plane linkage in SciPy whose angles are never wrapped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from simulation_machines import simulated

from tauloop import DynamicsOptions, inverse_dynamics, loads
from tauloop.common.errors import DescriptionError
from tauloop.common.result import Status, plain
from tauloop.compiler.c.calling.evaluator import Compiled, Interpreted
from tauloop.compiler.state import Turns
from tauloop.display.tables.motion.dynamics_tables import dynamics_tables
from tauloop.model import Model
from tauloop.motion import POLYNOMIAL_345, Line, Seconds, plan, stroke
from tauloop.simulation import (
    DormandPrince,
    IndependentCoordinates,
    Integrator,
    Multipliers,
    Projected,
    Radau,
    Route,
    RungeKutta4,
)
from tauloop.simulation.controllers.laws import Sampling
from tauloop.simulation.controllers.library import CONTROLLERS
from tauloop.simulation.controllers.run import follow

#: Machine code of the embedded compiler, which compiles in milliseconds. That of the system's compiler
#: is compared with the interpreter in `tests/compiler`.
EMBEDDED = Compiled(at_least=10**9)

#: The double crank: the base is the shortest link, so that both cranks go around, and the coupler
#: with them.
BASE, LENGTH, MASS, INERTIA = 0.1, (0.25, 0.22, 0.27), (1.0, 0.8, 1.2), (0.006, 0.004, 0.008)
#: Springs on A, B, D and C: N m/rad and rad.
STIFFNESS, REST = np.array([0.02, 0.05, 0.03, 0.04]), np.array([0.3, -0.4, 0.7, 0.5])
FIVE_TURNS = 10 * np.pi
#: Of the issue: independent, projected and multipliers against SciPy, rad; energy relative to the
#: largest kinetic one.
AGREED = 1e-8

TEXT = f"""
format: tauloop-machine/1
name: double_crank
provenance: {{status: chosen, source: a test}}
gravity: [0, 0, 0]
bodies:
  crank: {{mass: 1 kg, center: [0.125 m, 0, 0], inertia: {{xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.006 kg m^2}}}}
  coupler: {{mass: 0.8 kg, center: [0.11 m, 0, 0], inertia: {{xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.004 kg m^2}}}}
  rocker: {{mass: 1.2 kg, center: [0.135 m, 0, 0], inertia: {{xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.008 kg m^2}}}}
joints:
  A:
    {{type: revolute, axis: z, parent: base, child: crank, reference: 1 rad,
      spring: {{stiffness: {STIFFNESS[0]} N m/rad, rest: {REST[0]} rad}}}}
  B:
    {{type: revolute, axis: z, parent: {{on: crank, at: [0.25 m, 0, 0]}}, child: coupler, reference: -1 rad,
      spring: {{stiffness: {STIFFNESS[1]} N m/rad, rest: {REST[1]} rad}}}}
  D:
    {{type: revolute, axis: z, parent: {{on: base, at: [0.1 m, 0, 0]}}, child: rocker, reference: 0.6 rad,
      spring: {{stiffness: {STIFFNESS[2]} N m/rad, rest: {REST[2]} rad}}}}
  C:
    {{type: revolute, axis: z, parent: {{on: rocker, at: [0.27 m, 0, 0]}}, child: {{on: coupler, at: [0.22 m, 0, 0]}},
      spring: {{stiffness: {STIFFNESS[3]} N m/rad, rest: {REST[3]} rad}}}}
actuators: {{motor: {{on: A}}}}
platform: {{body: crank, independent: [A]}}
"""


@cache
def model(kind: str = "compiled") -> Model:
    return Model(loads(TEXT), evaluator=Interpreted() if kind == "interpreted" else EMBEDDED)


def in_order(machine: Model, q: np.ndarray) -> np.ndarray:
    """Angles A, B, D and C of the machine's coordinates."""
    return np.asarray(q)[..., [machine.topology.coordinate_names.index(name) for name in "ABDC"]]


def linkage(q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Residual, Jacobian of the three loop equations in A, B, D and C, and the mass centres' Jacobians and biases."""
    a, b, c = LENGTH
    A, AB, D = q[0], q[0] + q[1], q[2]
    e = lambda x: np.array([np.cos(x), np.sin(x)])  # noqa: E731
    n = lambda x: np.array([-np.sin(x), np.cos(x)])  # noqa: E731
    phi = np.append(a * e(A) + b * e(AB) - [BASE, 0] - c * e(D), AB - D - q[3])
    K = np.zeros((3, 4))
    K[:2, 0], K[:2, 1], K[:2, 2] = a * n(A) + b * n(AB), b * n(AB), -c * n(D)
    K[2] = [1, 1, -1, -1]
    J = np.zeros((3, 2, 4))
    J[0, :, 0] = a / 2 * n(A)
    J[1, :, 0], J[1, :, 1] = a * n(A) + b / 2 * n(AB), b / 2 * n(AB)
    J[2, :, 2] = c / 2 * n(D)
    return phi, K, J, np.array([e(A), e(AB), e(D)])


def acceleration(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """M a + h + k (q - rest) = K^T lambda, K a = -K' v, by hand: about mass centres, in the plane."""
    a, b, c = LENGTH
    _, K, J, (eA, eAB, eD) = linkage(q)
    wA, wAB, wD = v[0], v[0] + v[1], v[2]
    bias = np.array(
        [-a / 2 * eA * wA**2, -a * eA * wA**2 - b / 2 * eAB * wAB**2, -c / 2 * eD * wD**2]
    )
    turns = np.array([[1.0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]])
    M = sum(
        m * j.T @ j + I * np.outer(t, t) for m, j, I, t in zip(MASS, J, INERTIA, turns, strict=True)
    )
    h = sum(m * j.T @ g for m, j, g in zip(MASS, J, bias, strict=True)) + STIFFNESS * (q - REST)
    k = np.append(a * eA * wA**2 + b * eAB * wAB**2 - c * eD * wD**2, 0.0)
    whole = np.block([[M, K.T], [K, np.zeros((3, 3))]])
    return np.linalg.solve(whole, np.concatenate([-h, k]))[:4]


@cache
def start() -> tuple[np.ndarray, np.ndarray]:
    state = model().platform.kinematics(model().platform_position(model().assembly.q), [40.0])
    return state.q, np.asarray(state.v)


@cache
def by_scipy(duration: float, starts_at: tuple[float, ...]) -> np.ndarray:
    """Angles A, B, D and C at the end, integrated as they are."""
    v = in_order(model(), start()[1])
    y = np.concatenate([starts_at, v])
    rate = lambda t, y: np.concatenate([y[4:], acceleration(y[:4], y[4:])])  # noqa: E731
    solution = solve_ivp(rate, (0, duration), y, method="DOP853", rtol=1e-13, atol=1e-13)
    assert np.abs(linkage(solution.y[:4, -1])[0]).max() < 1e-10
    return np.asarray(solution.y[:4, -1])


def of_scipy(duration: float) -> np.ndarray:
    return by_scipy(duration, tuple(in_order(model(), start()[0])))


#: Time in which the crank turns five times.
DURATION = 0.79
TIGHT = DormandPrince(rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "route", [IndependentCoordinates(), Projected(), Multipliers()], ids=lambda r: type(r).__name__
)
def test_a_double_crank_with_springs_on_every_joint_turns_five_times(route: Route) -> None:
    result = simulated(model(), DURATION, q=start()[0], v=start()[1], route=route, integrator=TIGHT)
    outcome, expected = in_order(model(), result.q[-1]), of_scipy(DURATION)
    assert expected[0] - 1.0 > FIVE_TURNS
    assert expected[2] - 0.49 > FIVE_TURNS - 1
    assert np.abs(outcome - expected).max() < AGREED
    assert result.relative_energy_error < AGREED


@pytest.mark.parametrize(
    ("kind", "integrator", "near"),
    [
        ("interpreted", DormandPrince(rtol=1e-8, atol=1e-10), 1e-5),
        ("compiled", RungeKutta4(step=5e-4), 1e-5),
        ("compiled", Radau(rtol=1e-8, atol=1e-10), 1e-4),
    ],
    ids=["without a compiler", "fixed steps", "implicit"],
)
def test_every_integrator_keeps_count_of_the_turns(
    kind: str, integrator: Integrator, near: float
) -> None:
    result = simulated(model(kind), 0.3, q=start()[0], v=start()[1], integrator=integrator)
    assert np.abs(in_order(model(), result.q[-1]) - of_scipy(0.3)).max() < near
    between, _ = result.at([0.299])
    assert np.abs(between[0] - result.q[-1]).max() < 0.2


def test_a_start_some_turns_away_counts_from_there() -> None:
    q = start()[0] + 4 * np.pi * np.isin(model().topology.coordinate_names, ["A", "D"])
    result = simulated(model(), 0.3, q=q, v=start()[1], integrator=TIGHT)
    expected = by_scipy(0.3, tuple(in_order(model(), q)))
    assert np.abs(in_order(model(), result.q[-1]) - expected).max() < AGREED
    assert np.abs(expected - of_scipy(0.3) - 4 * np.pi)[0] > 1e-4  # the springs are wound up


def circling() -> tuple[np.ndarray, np.ndarray]:
    """Five turns of the crank and the rocker's angle by plane geometry, unwrapped."""
    a, b, c = LENGTH
    crank = 1.0 + np.linspace(0, FIVE_TURNS, 400)
    pin = a * np.exp(1j * crank) - BASE
    open_angle = np.arccos((np.abs(pin) ** 2 + c**2 - b**2) / (2 * np.abs(pin) * c))
    side = np.sign(
        np.angle(np.exp(1j * (in_order(model(), model().assembly.q)[2] - np.angle(pin[0]))))
    )
    return crank, np.unwrap(np.angle(pin) + side * open_angle)


@pytest.mark.parametrize("kind", ["compiled", "interpreted"])
def test_a_tracked_motion_goes_on_through_all_turns(kind: str) -> None:
    crank, rocker = circling()
    q = in_order(model(kind), model(kind).platform.track(crank[:, None]).q)
    assert np.abs(q[:, 2] - rocker).max() < 1e-9
    q = in_order(model(kind), model(kind).platform.track(crank[:, None], start()[0] + 2 * np.pi).q)
    assert np.abs(q[:, 2] - rocker - 2 * np.pi).max() < 1e-9


def test_single_poses_are_on_the_turn_of_the_start_or_nearest_to_the_reference() -> None:
    crank, rocker = circling()
    platform, reference = model().platform, in_order(model(), model().assembly.q)
    alone = in_order(model(), platform.kinematics(crank[:, None]).q)[:, 2]
    assert np.abs(alone - reference[2]).max() < np.pi + 1e-9
    assert np.abs(np.exp(1j * alone) - np.exp(1j * rocker)).max() < 1e-9
    tracked = platform.track(crank[:, None]).q
    assert np.abs(platform.kinematics(crank[:, None], start=tracked).q - tracked).max() < 1e-12
    further = in_order(model(), platform.kinematics(crank[:, None], start=tracked + 6 * np.pi).q)
    assert np.abs(further[:, 2] - rocker - 6 * np.pi).max() < 1e-9


def test_springs_feel_the_turn_that_they_are_told() -> None:
    """Against the generalised force of the springs on the crank by virtual work, G^T k (q - rest)."""
    crank, _ = circling()
    platform, zero = model().platform, np.zeros((400, 1))
    tracked = platform.track(crank[:, None])
    q = in_order(model(), tracked.q)
    K = np.array([linkage(angle)[1] for angle in q])
    G = np.concatenate([np.ones((400, 1, 1)), -np.linalg.solve(K[:, :, 1:], K[:, :, :1])], axis=1)
    expected = np.einsum("nij,ni->n", G, STIFFNESS * (q - REST))
    forces = platform.inverse_dynamics(crank[:, None], zero, zero, start=tracked.q)
    assert np.abs(forces.force[:, 0] - expected).max() < 1e-10
    kernel = platform.compiled("inverse_dynamics", ("force",))
    assert "start" in [port.name for port in kernel.function.inputs]
    inputs = {
        "position": crank[:, None],
        "velocity": zero,
        "acceleration": zero,
        "start": tracked.q,
    }
    assert np.abs(kernel.batch(inputs, 400)["force"][:, 0] - expected).max() < 1e-10


def test_the_result_says_where_its_turns_come_from() -> None:
    platform, here = model().platform, [[1.0]]
    assert platform.kinematics(here).turns == Turns(
        angles=("D", "B", "C"), nearest="reference pose"
    )
    assert platform.kinematics(here, start=start()[0]).turns.nearest == "start"
    assert platform.inverse_dynamics(here, [[0.0]], [[0.0]]).state.turns.nearest == "reference pose"
    assert platform.track(here).turns.nearest == "sample before"
    assert model().actuators.turning == ("D", "B", "C")


def test_turns_are_counted_along_a_table_and_this_is_reported(tmp_path: Path) -> None:
    """Forces of springs at rest, against those of a tracked motion; a single pose is on the reference's turn."""
    table = tmp_path / "motion.csv"
    crank, _ = circling()
    rows = "\n".join(f"{i},{angle},0,0" for i, angle in enumerate(crank.tolist()))
    head = "time [s],position.A [rad],velocity.A [rad/s],acceleration.A [rad/s^2]"
    table.write_text(f"{head}\n{rows}\n")
    result = inverse_dynamics(model(), DynamicsOptions(motion=table))
    zero = np.zeros((400, 1))
    tracked = model().platform.inverse_dynamics(
        crank[:, None], zero, zero, start=model().platform.track(crank[:, None]).q
    )
    assert np.abs(result.forces.force - tracked.force).max() < 1e-9
    assert plain(result.as_dict()["turns"]) == {
        "angles": ["D", "B", "C"],
        "nearest": "sample before",
    }
    text = "\n".join(
        map(str, dynamics_tables(inverse_dynamics(model(), DynamicsOptions(pose="A=33"))))
    )
    assert "springs on D, B, C use the rotation nearest to the reference pose" in " ".join(
        text.split()
    )


def test_a_spring_on_a_ball_joint_which_has_no_angle_is_refused() -> None:
    hinge = "type: revolute, axis: z, parent: base, child: crank, reference: 1 rad,"
    text = TEXT.replace(hinge, "type: spherical, parent: base, child: crank,")
    with pytest.raises(DescriptionError, match="spring"):
        loads(text)


@pytest.mark.parametrize("space", ["joint", "platform"])
def test_controllers_measure_a_motor_through_all_turns(space: str) -> None:
    """The motor turns the rocker, whose angle follows from the crank's; its encoder counts on (`circling`)."""
    machine = Model(loads(TEXT.replace("{on: A}", "{on: D}")))
    crank, rocker = circling()
    trajectory = plan(
        stroke(machine, Line([crank[0]], [crank[-1]]), ("A",)), POLYNOMIAL_345, Seconds(2.0)
    )
    controller = CONTROLLERS["computed-torque"](bandwidth=100.0, space=space)
    motion = follow(trajectory, controller, Sampling(frequency=1000.0))
    assert motion.status is Status.OK
    assert abs(motion.position[-1, 0] - crank[-1]) < 1e-4
    assert abs(machine.actuator_position(trajectory.stroke.q)[-1, 0] - rocker[-1]) < 1e-9


def test_forces_that_no_turn_enters_take_no_start() -> None:
    platform = Model(loads(re.sub(r"spring: {[^}]*}", "", TEXT))).platform
    for outputs, expected in ((("force",), False), (("force", "q"), True)):
        ports = platform.compiled("inverse_dynamics", outputs).function.inputs
        assert ("start" in [port.name for port in ports]) is expected


#: A second crank E, driven by a point of the coupler, that goes around with the others; and a wheel
#: geared to D.
SIX_BAR = TEXT.replace(
    "joints:\n",
    """  arm: {mass: 0.5 kg, center: [0.1 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.004 kg m^2}}
  link: {mass: 0.5 kg, center: [0.08 m, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.004 kg m^2}}
joints:
  E: {type: revolute, axis: z, parent: {on: base, at: [0.05 m, 0.02 m, 0]}, child: arm, reference: 0.6 rad}
  F: {type: revolute, axis: z, parent: {on: arm, at: [0.2 m, 0, 0]}, child: link, reference: 0.5 rad}
  P:
    type: revolute
    axis: z
    parent: {on: link, at: [0.15 m, 0, 0]}
    child: {on: coupler, at: [0.1 m, 0, 0]}
    cut: yes
""",
    1,
)
GEARED = (
    TEXT.replace(
        "joints:\n",
        """  wheel: {mass: 0.5 kg, inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.0004 kg m^2}}
joints:
  G: {type: revolute, axis: z, parent: base, child: wheel, spring: {stiffness: 0.01 N m/rad, rest: 0.2 rad}}
""",
        1,
    )
    + "couplings: {gear: {of: {D: 2.5, G: -1}}}\n"
)


@pytest.mark.parametrize("kind", ["compiled", "interpreted"])
def test_newton_blocks_count_turns_as_closed_forms_do(kind: str) -> None:
    """One machine from two sides: A given, all in closed form; E given, a block of four angles by Newton's method."""
    evaluator = Interpreted() if kind == "interpreted" else EMBEDDED
    closed, newton = (
        Model(loads(SIX_BAR)),
        Model(loads(SIX_BAR.replace("[A]", "[E]")), evaluator=evaluator),
    )
    assert "Newton" in {block.method for block in newton.platform.blocks}
    assert "Newton" not in {block.method for block in closed.platform.blocks}
    order = [
        closed.topology.coordinate_names.index(name) for name in newton.topology.coordinate_names
    ]
    crank, _ = circling()
    q = closed.platform.track(crank[:, None]).q[:, order]
    turned = newton.platform.ports.at(q)
    assert turned[-1] - turned[0] == pytest.approx(FIVE_TURNS)
    assert np.abs(newton.platform.track(turned, q[0]).q - q).max() < 1e-8
    assert np.abs(newton.platform.kinematics(turned, start=q).q - q).max() < 1e-8
    alone = newton.platform.follow(turned, q[0])
    assert np.abs(alone.q - q[0])[:, list(range(1, q.shape[1]))].max() < np.pi + 1e-9


def test_a_gear_behind_a_loop_turns_with_all_turns_of_its_angle() -> None:
    """G = 2.5 D, with a spring on G: two routes agree over five turns, and so does every tracked sample."""
    machine = Model(loads(GEARED))
    crank, rocker = circling()
    names = machine.topology.coordinate_names
    q = machine.platform.track(crank[:, None]).q
    assert np.abs(q[:, names.index("G")] - 2.5 * rocker).max() < 1e-8
    state = machine.platform.kinematics(machine.platform_position(machine.assembly.q), [40.0])
    ends = [
        simulated(machine, 0.8, q=state.q, v=state.v, route=route, integrator=TIGHT)
        for route in (IndependentCoordinates(), Projected())
    ]
    assert ends[0].coordinate("A")[-1] > FIVE_TURNS
    assert np.abs(ends[0].q[-1] - ends[1].q[-1]).max() < 2.5 * AGREED
    assert ends[0].relative_energy_error < AGREED
