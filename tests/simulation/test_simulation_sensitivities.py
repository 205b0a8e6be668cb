"""Derivatives of simulations by parameters and starts.

Oracles: a slide in oil on paper; a double pendulum by Lagrange's equations in NumPy, whose
variational equations SciPy integrates; differences of runs, and other routes.
"""

from __future__ import annotations

import numpy as np
import pytest
from hanging_ball import ball
from printed import printed
from scipy.integrate import solve_ivp

import tauloop as tl
from tauloop import Model, load
from tauloop.common.errors import InputError
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.display.tables.motion.simulation_tables import simulation_tables
from tauloop.integrate import Radau
from tauloop.simulation import (
    ConstantForce,
    DormandPrince,
    ExtendedSpace,
    Feedback,
    IndependentCoordinates,
    Multipliers,
    Projected,
    Simulator,
    ToolForce,
    simulate_many,
    start_state,
)

FINE = DormandPrince(rtol=1e-11, atol=1e-13)
#: Errors of derivatives beside exact ones, and beside differences over a share of a value.
CLOSE, DIFFERENCES, SHARE = 1e-8, 1e-6, 1e-4

SLIDE = """
format: tauloop-machine/1
name: slide
provenance: {status: chosen, source: test}
gravity: [0, 0, 0]
parameters: {m: 2 kg, d: 3 N s/m}
bodies: {cart: {mass: m}}
joints: {rail: {type: prismatic, axis: x, parent: base, child: cart, friction: {viscous: d}}}
actuators: {motor: {on: rail}}
platform: {body: cart, independent: [rail]}
"""
PENDULUM = """
format: tauloop-machine/1
name: double_pendulum
provenance: {status: chosen, source: test}
parameters: {m1: 0.7 kg, m2: 0.4 kg, l1: 0.5 m, l2: 0.3 m, g: 9.81 m/s^2}
gravity: [0, 0, -g]
bodies:
  upper: {mass: m1, center: [l1, 0, 0]}
  lower: {mass: m2, center: [l2, 0, 0]}
joints:
  shoulder: {type: revolute, axis: y, parent: base, child: upper, reference: 20 deg}
  elbow: {type: revolute, axis: y, parent: {on: upper, at: [l1, 0, 0]}, child: lower, reference: 30 deg}
platform: {body: lower, independent: [shoulder, elbow]}
"""


def ends(sensitivities) -> np.ndarray:
    """Derivatives of positions and velocities at the end (n, d)."""
    return np.concatenate([sensitivities[name].values[-1] for name in ("position", "velocity")])


@pytest.mark.parametrize(
    "route", [IndependentCoordinates(), Multipliers()], ids=["independent", "multipliers"]
)
def test_a_slide_in_oil(route):
    """X = F t / d + (v - F / d) (m / d) (1 - exp(-d t / m))."""
    model, m, d, force, speed, t = Model(tl.loads(SLIDE)), 2.0, 3.0, 5.0, 0.4, 0.8
    simulator = Simulator(
        model,
        route=route,
        integrator=FINE,
        sensitivities=("m", "d", "velocity.rail", "position.rail"),
    )
    run = simulator.run(t, v=np.array([speed]), force=ConstantForce((force,)))

    def known(m, d, v, x):
        rest = np.exp(-d * t / m)
        end = x + force * t / d + (v - force / d) * m / d * (1 - rest)
        return np.array([end, force / d + (v - force / d) * rest])

    steps = 1e-30j * np.eye(4)
    expected = np.array(
        [known(*(np.array([m, d, speed, 0.0]) + step)).imag / 1e-30 for step in steps]
    ).T
    np.testing.assert_allclose(ends(run.sensitivities), expected, rtol=CLOSE, atol=CLOSE)
    assert list(run.sensitivities["by_unit"].values) == ["kg", "N s/m", "m/s", "m"]


@pytest.mark.parametrize(
    "integrator", [FINE, Radau(rtol=1e-11, atol=1e-13)], ids=["explicit", "implicit"]
)
def test_a_double_pendulum_beside_variational_equations_by_scipy(integrator):
    """S' = f_y S + f_p, where f is NumPy's alone and differentiated by complex steps."""
    model, duration = Model(tl.loads(PENDULUM)), 1.0
    names = ("m1", "m2", "l1", "l2", "g", "position.shoulder", "velocity.elbow")
    run = Simulator(model, integrator=integrator, sensitivities=names).run(
        duration, v=np.array([0.5, -1.0])
    )

    def rate(y, p):
        (a, b, da, db), (m1, m2, l1, l2, g) = y, p  # angles of both links against the x axis
        M = np.array(
            [
                [(m1 + m2) * l1**2, m2 * l1 * l2 * np.cos(a - b)],
                [m2 * l1 * l2 * np.cos(a - b), m2 * l2**2],
            ]
        )
        h = m2 * l1 * l2 * np.sin(a - b) * np.array([db**2, -(da**2)])
        return np.array(
            [
                da,
                db,
                *np.linalg.solve(
                    M, g * np.array([(m1 + m2) * l1 * np.cos(a), m2 * l2 * np.cos(b)]) - h
                ),
            ]
        )

    p = np.array([0.7, 0.4, 0.5, 0.3, 9.81])
    to = np.array([[1.0, 0.0], [1.0, 1.0]])  # from angles of joints
    whole = np.kron(np.eye(2), to)

    def both(time, state):
        y, S = state[:4], state[4:].reshape(4, -1)
        J = np.array([rate(y + 1e-30j * row, p).imag / 1e-30 for row in np.eye(4)]).T
        P = np.array([rate(y, p + 1e-30j * row).imag / 1e-30 for row in np.eye(5)]).T
        return np.concatenate([rate(y, p), (J @ S + np.hstack([P, np.zeros((4, 2))])).ravel()])

    start = np.zeros((4, 7))
    start[:, 5:] = whole[:, [0, 3]]
    y0 = whole @ np.array([*np.deg2rad([20.0, 30.0]), 0.5, -1.0])
    wanted = solve_ivp(
        both,
        (0, duration),
        np.concatenate([y0, start.ravel()]),
        method="DOP853",
        rtol=1e-12,
        atol=1e-13,
    )
    expected = np.linalg.solve(whole, wanted.y[4:, -1].reshape(4, 7))
    assert np.abs(ends(run.sensitivities) - expected).max() <= CLOSE * np.abs(expected).max()
    np.testing.assert_allclose(
        [*run.q[-1], *run.v[-1]], np.linalg.solve(whole, wanted.y[:4, -1]), atol=CLOSE
    )


def smooth(name: str):
    """A shipped machine without Coulomb friction."""
    mechanism = load(name)
    return mechanism.with_values(
        {leaf: 0.0 for leaf in mechanism.parameters.names if "coulomb" in leaf}
    )


def require_differences(
    name: str, parameter: str, route, *, duration: float, evaluator=None
) -> None:
    """Derivatives by a parameter and by the platform's start are those of differences in independent coordinates."""
    mechanism = smooth(name)
    model = Model(mechanism, evaluator=evaluator)
    ports, position = model.platform.ports, model.platform_position(model.assembly.q)
    column, rates = ports.position.columns[0], np.full(ports.velocity.size, 0.1)
    names, value = (parameter, f"position.{column}"), mechanism.parameters[parameter].value
    q, v = start_state(model, position, rates)
    made = Simulator(model, route=route, integrator=FINE, sensitivities=names)
    by = ends(made.run(duration, q=q, v=v).sensitivities)
    for j, h in enumerate((SHARE * value, 1e-5)):
        both = []
        for sign in (1, -1):
            moved, at = model, position.copy()
            if j:
                at[0] += sign * h
            else:
                moved = Model(mechanism.with_values({parameter: value + sign * h}))
            start = start_state(moved, at, rates)
            end = Simulator(moved, integrator=FINE).run(duration, q=start[0], v=start[1])
            both.append(
                np.concatenate(
                    [
                        end.q[-1, list(ports.q)],
                        np.linalg.solve(ports.to_v, end.v[-1, list(ports.v)]),
                    ]
                )
            )
        expected = (both[0] - both[1]) / (2 * h)
        assert np.abs(by[:, j] - expected).max() <= DIFFERENCES * np.abs(expected).max(), names[j]


@pytest.mark.parametrize("evaluator", [None, Interpreted()], ids=["C", "Python"])
def test_loops_that_are_closed_after_every_step_change_as_differences_say(evaluator):
    require_differences("five_bar", "crank_length", Projected(), duration=0.02, evaluator=evaluator)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "route", [IndependentCoordinates(), Projected(), ExtendedSpace(), Multipliers()]
)
@pytest.mark.parametrize(
    ("name", "parameter"), [("five_bar", "crank_length"), ("delta", "forearm_length")]
)
def test_every_route_changes_as_differences_say(name, parameter, route):
    require_differences(name, parameter, route, duration=0.1)


@pytest.mark.nightly
@pytest.mark.parametrize("route", [IndependentCoordinates(), Projected()])
def test_quaternions_and_newtons_loops_change_as_differences_say(route):
    require_differences("rcid", "link_length", route, duration=0.03)


def test_what_has_no_derivatives_is_refused():
    model, law = Model(smooth("pendulum_arm")), Feedback(lambda t, q, v: np.zeros(3))
    simulator = Simulator(model, with_wrench=True, sensitivities=("upper_length",))
    with pytest.raises(InputError) as refused:
        simulator.run(0.1, force=law, wrench=ToolForce(lambda time, tool: np.zeros(6)))
    assert len(refused.value.problems) == 2
    with pytest.raises(InputError, match="friction of waist"):
        Simulator(Model(load("pendulum_arm")), sensitivities=("upper_length",)).run(0.1)
    with pytest.raises(InputError, match="'lenght' is neither a parameter"):
        Simulator(model, sensitivities=("lenght",)).run(0.1)
    with pytest.raises(InputError, match="has sensitivities"):
        simulate_many(
            Simulator(model, sensitivities=("upper_length",)), 0.1, model.assembly.q[None]
        )
    with pytest.raises(InputError, match="cables"):
        tl.simulate(ball(""), tl.SimulationOptions(duration=0.01, sensitivities=("position.x",)))


def test_the_result_says_derivatives_with_their_units():
    options = tl.SimulationOptions(duration=0.5, velocity={"rail": 1.0}, sensitivities=("m", "d"))
    result = tl.simulate(tl.loads(SLIDE), options)
    by_mass = next(
        row
        for row in result.as_dict()["sensitivities"]
        if row["by"] == "m" and row["of"].startswith("position")
    )
    # x = v m / d (1 - exp(-d t / m))
    rest = np.exp(-3.0 * 0.5 / 2.0)
    assert by_mass["end"] == pytest.approx((1 - rest) / 3 - 0.5 / 2 * rest, rel=CLOSE)
    assert by_mass["unit"] == "m/kg"
    text = printed(simulation_tables(result))
    assert "m/kg" in text
    assert "(m/s)/(N s/m)" in text
