"""Cables that are simulated: they pull, become slack and are tautened again; closed forms and SciPy's own runs."""

from __future__ import annotations

import numpy as np
import pytest
from cable_machines import CONSTRAINED, GRAVITY, Plate
from hanging_ball import FINE, LENGTH, MASS, G, ball, moving
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from simulation_machines import simulated
from tabulated import assert_tabulated

import tauloop
from tauloop.common.errors import AssemblyError, InputError
from tauloop.common.result import Status
from tauloop.compiler.c import Interpreted
from tauloop.model import Model
from tauloop.simulation import CableSimulation, ConstantForce, DormandPrince, simulate_cables


def swung(restitution: str, duration: float) -> CableSimulation:
    """The ball thrown sideways from the lowest point, with too little speed for the whole circle."""
    model = ball(restitution)
    return simulate_cables(
        model, duration, v=moving(model, x=np.sqrt(3.5 * G * LENGTH)), integrator=FINE
    )


def test_an_elastic_cable_swings_its_load_as_a_spring_does() -> None:
    """Along the line: x = m g/k (1 - cos w t), by hand; the tension is k x."""
    motion = simulate_cables(ball(", stiffness: 2000 N/m"), 0.5, integrator=FINE)
    sag = MASS * G / 2000 * (1 - np.cos(np.sqrt(2000 / MASS) * motion.time))
    np.testing.assert_allclose(motion.coordinate("z"), -LENGTH - sag, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.tension[:, 0], 2000 * sag, rtol=0, atol=1e-6)
    assert motion.status is Status.OK
    assert motion.events == ()
    assert_tabulated(motion)
    assert [name.partition(".")[0] for name in motion.log().data_vars][-1] == "tension"


def test_an_elastic_cable_is_slack_while_its_load_flies() -> None:
    """Thrown up: free fall for 2 v/g, then half a swing below; both by hand, over and over."""
    model, speed = ball(", stiffness: 2000 N/m"), 3.0
    motion = simulate_cables(model, 2.0, v=moving(model, z=speed), integrator=FINE)
    rate = np.sqrt(2000 / MASS)
    flying = 2 * speed / G
    # of x = g/w^2 (1 - cos) + v/w sin, back at zero
    hanging = (2 * np.pi - 2 * np.arctan(speed * rate / G)) / rate
    wanted = np.cumsum([flying, hanging, flying, hanging])
    assert [event.is_slack for event in motion.events] == [False, True, False, True]
    np.testing.assert_allclose([event.time for event in motion.events], wanted, rtol=0, atol=1e-7)
    assert (motion.tension[(motion.time > 0.01) & (motion.time < 0.6)] == 0).all()


def test_a_pendulum_on_a_line_becomes_slack_where_its_tension_ends_and_flies_on() -> None:
    """By hand: cos(angle) = (2 - v^2/(g L))/3 there, then a parabola."""
    motion = swung(", restitution: 0", 1.5)
    slack = motion.events[0]
    assert slack.is_slack
    part = motion.parts[0].simulation
    at = dict(zip(part.coordinate_names, part.q[-1], strict=True))
    assert -at["z"] / LENGTH == pytest.approx((2 - 3.5) / 3, abs=1e-8)
    speed = dict(zip(part.velocity_names, part.v[-1], strict=True))
    later = motion.time > slack.time
    since = motion.time[later] - slack.time
    np.testing.assert_allclose(
        motion.coordinate("x")[later], at["x"] + speed["x"] * since, rtol=0, atol=1e-8
    )
    height = at["z"] + speed["z"] * since - G * since**2 / 2
    np.testing.assert_allclose(motion.coordinate("z")[later], height, rtol=0, atol=1e-8)


def test_a_line_that_does_not_stretch_refuses_to_be_tautened_again() -> None:
    motion = swung("", 2.2)
    assert motion.status is Status.DOUBTFUL
    assert motion.problem is not None
    assert (
        "the rebound of an inelastic cable without restitution is undefined" in motion.problem.what
    )
    assert "restitution" in motion.problem.remedy
    assert motion.time[-1] < 1.6


@pytest.mark.parametrize("restitution", [0.0, 0.5])
def test_a_tautened_line_rebounds_with_its_restitution(restitution: float) -> None:
    """The jerk by Newton: along the line v' = -e v, across it nothing changes, and the impulse is m (1 + e) v."""
    motion = swung(f", restitution: {restitution}", 1.7)
    taut = next(event for event in motion.events if not event.is_slack)
    before, after = (part.simulation for part in motion.parts[1:3])
    at = dict(zip(before.coordinate_names, before.q[-1], strict=True))
    line = np.array([at["x"], at["z"]]) / LENGTH
    across = np.array([-line[1], line[0]])
    old, new = (
        np.array([dict(zip(case.velocity_names, v, strict=True))[name] for name in ("x", "z")])
        for case, v in ((before, before.v[-1]), (after, after.v[0]))
    )
    assert np.hypot(at["x"], at["z"]) == pytest.approx(LENGTH, abs=1e-9)
    assert old @ line == pytest.approx(taut.speed, rel=1e-9)
    assert new @ line == pytest.approx(-restitution * taut.speed, abs=1e-9)
    assert new @ across == pytest.approx(old @ across, rel=1e-9)
    assert taut.impulse == pytest.approx(MASS * (1 + restitution) * taut.speed, rel=1e-9)


def test_held_winches_swing_a_plate_as_scipy_does() -> None:
    """Newton's and Euler's laws with max(0, k x + c x') for seven cables, by lines of their own and DOP853."""
    plate, k, c = CONSTRAINED, 2e4, 40.0
    model = Model(
        tauloop.loads(plate.text(tension=f", stiffness: {k} N/m, damping: {c} N s/m")),
        evaluator=Interpreted(),
    )
    start, motion = model.platform_position(model.assembly.q), np.array([0, 0, 0.8, 0.0, 0, 0])
    state = model.platform.kinematics(start, motion)
    names = [f"cable{i}" for i in range(1, 8)]
    spans, _ = cable_lengths(plate, start, motion)
    lengths = spans - np.array([60.0, 80.0, 55.0, 70.0, 65.0, 75.0, 50.0]) / k
    record = simulate_cables(
        model,
        0.04,
        q=state.q,
        v=np.asarray(state.v),
        lengths=dict(zip(names, map(float, lengths), strict=True)),
        integrator=DormandPrince(rtol=1e-9, atol=1e-11),
    )

    def tensions(y: np.ndarray) -> np.ndarray:
        span, rate = cable_lengths(plate, y[:7], y[7:])
        return np.maximum(k * (span - lengths) + c * rate, 0.0)

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        R = Rotation.from_quat(y[3:7], scalar_first=True).as_matrix()
        inertia, w = R @ np.diag(plate.moments) @ R.T, y[10:]
        wrench = plate.structure(y[:7]) @ tensions(y)
        turning = 0.5 * np.r_[-y[4:7] @ w, y[3] * w + np.cross(w, y[4:7])]
        alpha = np.linalg.solve(inertia, wrench[3:] - np.cross(w, inertia @ w))
        return np.r_[y[7:10], turning, wrench[:3] / plate.mass + GRAVITY, alpha]

    wanted = solve_ivp(
        rates,
        (0.0, record.time[-1]),
        np.r_[start, motion],
        method="DOP853",
        rtol=1e-11,
        atol=1e-12,
        max_step=1e-3,
    )
    for i, axis in enumerate("xyz"):
        assert record.coordinate(f"platform.{axis}")[-1] == pytest.approx(wanted.y[i, -1], abs=1e-8)
    np.testing.assert_allclose(record.tension[-1], tensions(wanted.y[:, -1]), rtol=0, atol=1e-3)
    assert record.tension.min() == 0.0  # some are slack on the way
    assert any(event.is_slack for event in record.events)
    assert record.status is Status.OK


def cable_lengths(
    plate: Plate, position: np.ndarray, velocity: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of a plate's cables and their rates, which are those of tensions by virtual work."""
    R = Rotation.from_quat(position[3:], scalar_first=True).as_matrix()
    spans = np.linalg.norm(plate.anchors - position[:3] - plate.points @ R.T, axis=1)
    return spans, -plate.structure(position).T @ velocity


def test_a_winch_with_inertia_turns_alone_while_its_line_is_slack() -> None:
    """Pushed by its motor the winch lets out line at u/J while the ball falls freely: by hand until it is taut."""
    model = ball(", restitution: 0", winch=", inertia: 4 kg")
    motion = simulate_cables(model, 0.3, force=ConstantForce((60.0,)), integrator=FINE)
    assert motion.events[0].is_slack
    assert motion.events[0].time == 0.0
    np.testing.assert_allclose(
        motion.coordinate("z"), -1.5 - G * motion.time**2 / 2, rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(
        motion.coordinate("line"), 1.5 + 60 / 4 * motion.time**2 / 2, rtol=0, atol=1e-9
    )


def test_a_bare_winch_only_pulls() -> None:
    """A force that would push leaves the ball to fall; one that pulls is its tension."""
    model = ball("", winch="bare")
    pushed = simulate_cables(model, 0.2, force=ConstantForce((30.0,)), integrator=FINE)
    np.testing.assert_allclose(
        pushed.coordinate("z"), -1.5 - G * pushed.time**2 / 2, rtol=0, atol=1e-9
    )
    assert (pushed.tension == 0).all()
    pulled = simulate_cables(model, 0.2, force=ConstantForce((-30.0,)), integrator=FINE)
    np.testing.assert_allclose(
        pulled.coordinate("z"), -1.5 + (15 - G) * pulled.time**2 / 2, rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(pulled.tension, 30.0, rtol=0, atol=1e-12)


def test_an_elastic_line_on_a_driven_winch_keeps_its_energy_and_its_balance() -> None:
    """At rest under the winch's force m g the ball hangs still: k x = m g, by hand."""
    model = ball(", stiffness: 5000 N/m, damping: 20 N s/m", winch=", inertia: 4 kg")
    motion = simulate_cables(
        model,
        0.2,
        force=ConstantForce((-MASS * G,)),
        lengths={"line": LENGTH - MASS * G / 5000},
        integrator=FINE,
    )
    np.testing.assert_allclose(motion.coordinate("z"), -LENGTH, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.tension, MASS * G, rtol=0, atol=1e-5)
    assert motion.status is Status.OK


def test_cables_are_never_simulated_as_struts() -> None:
    model = ball("")
    with pytest.raises(InputError, match="would let it push"):
        simulated(model, 0.1)


def test_held_lines_that_do_not_stretch_and_hold_the_same_are_refused() -> None:
    with pytest.raises(AssemblyError, match="its tension is not determined"):
        simulate_cables(Model(tauloop.loads(CONSTRAINED.text())), 0.1)


def test_what_cannot_be_simulated_is_refused_with_the_reason() -> None:
    with pytest.raises(InputError, match="a force acts on a winch without inertia"):
        simulate_cables(
            ball(", stiffness: 1000 N/m", winch="bare"), 0.1, force=ConstantForce((-1.0,))
        )
    with pytest.raises(InputError, match="no telescopic cable with stiffness"):
        simulate_cables(ball(", stiffness: 1000 N/m"), 0.1, lengths={"line": 1.0})
    with pytest.raises(InputError, match="the machine has no cables"):
        simulate_cables(Model(tauloop.load("delta"), evaluator=Interpreted()), 0.1)


#: A load in a plane under two cables from points 1 m left and right of the origin.
TWO_CABLES = """
format: tauloop-machine/1
name: two_cables
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies:
  slide: massless
  load: {mass: 2 kg, center: [0, 0, 0], inertia: {xx: 0.01 kg m^2, yy: 0.01 kg m^2, zz: 0.01 kg m^2}}
joints:
  x: {type: prismatic, axis: x, parent: base, child: slide, reference: 0.1 m}
  z: {type: prismatic, axis: z, parent: slide, child: load, reference: -1 m}
rods:
  left: {from: {on: base, at: [-1 m, 0, 0]}, to: load, model: massless, LEFT}
  right: {from: {on: base, at: [1 m, 0, 0]}, to: load, model: massless, RIGHT}
actuators: {ACTUATORS}
platform: {body: load, independent: [INDEPENDENT]}
"""
WINCH = "telescopic: {reference: 1.4 m}, tension: {least: 1 N, greatest: 100 N}"


def test_locked_cables_that_hold_their_load_completely_have_its_weight() -> None:
    """As many cables as degrees of freedom: nothing moves, and the balance of forces has one solution."""
    text = TWO_CABLES.replace("LEFT", WINCH).replace("RIGHT", WINCH)
    text = text.replace("ACTUATORS", "m1: {on: left}, m2: {on: right}").replace(
        "INDEPENDENT", "x, z"
    )
    motion = tauloop.simulate(tauloop.loads(text), duration=0.1)
    directions = np.array([[-1.1, 1.0], [0.9, 1.0]])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    expected = np.linalg.solve(directions.T, [0.0, 2.0 * 9.81])
    assert motion.status is Status.OK
    np.testing.assert_allclose(motion.tension[[0, -1]], [expected, expected], rtol=1e-9)


def test_a_cable_that_stops_its_load_completely_takes_its_share() -> None:
    """A pendulum of 1.2 m swings until the other cable is taut as well: it rests below the middle."""
    fixed = "length: 1.2 m, tension: {least: 0 N, restitution: 0}"
    text = TWO_CABLES.replace("LEFT", WINCH).replace("RIGHT", fixed)
    text = text.replace("ACTUATORS", "m1: {on: left}").replace("INDEPENDENT", "x")
    model = Model(tauloop.loads(text))
    start = {"x": 0.1, "z": -np.sqrt(1.2**2 - 1.1**2), "left": 1.2}
    q = np.array([start[name] for name in model.topology.coordinate_names])
    motion = simulate_cables(model, 0.6, q=q)
    assert motion.status is Status.OK
    assert [(event.cable, event.is_slack) for event in motion.events] == [
        ("right", True),
        ("right", False),
    ]
    assert motion.coordinate("x")[-1] == pytest.approx(0.0, abs=1e-6)
    share = 0.5 * 2.0 * 9.81 * 1.2 / np.sqrt(1.2**2 - 1.0)
    np.testing.assert_allclose(motion.tension[-1], [share, share], rtol=1e-5)
