"""Two loop equations that place a pin: closed form, Newton's method and plane geometry agree, in every plane."""

from __future__ import annotations

import re

import casadi as ca
import numpy as np
import pytest

from tauloop import Model, PoseError, load, loads
from tauloop.compiler.c.calling.evaluator import Interpreted
from tauloop.compiler.solving import position
from tauloop.compiler.solving.closed_forms import circle_form
from tauloop.formats import machine_path
from tauloop.kinematics import random_states

#: Two ways to the same pose, both at rounding, through the conditioning of regular states (some
#: hundreds).
SAME = 1e-11
#: How far starts of Newton's method lie from the solution, m and rad.
ASTRAY = 1e-3

CIRCLES = {
    "five_bar": ["two circles"] * 2,
    "four_bar": ["two circles"],
    "spidermill": ["two circles"] * 4,
}

#: A crank of 0.1 m, a connecting rod of 0.3 m, a slide along a line; the crank's axis is normal to
#: its plane.
SLIDER_CRANK = """
format: tauloop-machine/1
name: slider_crank
provenance: {status: chosen, source: a test}
gravity: [0, -9.81 m/s^2, 0]
frames:
  frame: {on: base, turn: TURN}
bodies:
  crank: {mass: 1 kg, inertia: {xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}
  rod: {mass: 1 kg, inertia: {xx: 0.1 kg m^2, yy: 0.1 kg m^2, zz: 0.1 kg m^2}}
  slider: {mass: 1 kg}
joints:
  shaft: {type: revolute, axis: z, parent: frame, child: crank, reference: 1 rad}
  slide: {type: prismatic, axis: x, parent: {on: frame, at: [0, 0.02 m, 0]}, child: slider, reference: 0.34 m}
  small_end: {type: revolute, axis: z, parent: slider, child: rod, reference: 2.9 rad}
  big_end:
    {type: revolute, axis: z, parent: {on: crank, at: [0.1 m, 0, 0]}, child: {on: rod, at: [0.3 m, 0, 0]}, cut: yes}
actuators:
  motor: {on: shaft}
platform:
  body: slider
  independent: [shaft]
"""
#: Planes that both kept rows of the pin's three see obliquely, and the base frame's own.
TURNS = (
    "[{z: 0 deg}]",
    "[{x: 90 deg}]",
    "[{z: 40 deg}, {x: 90 deg}]",
    "[{z: 25 deg}]",
    "[{y: 35 deg}, {x: 50 deg}]",
)


def interpreted(name: str) -> Model:
    return Model(load(name), evaluator=Interpreted())


def turned(text: str, turn: str) -> Model:
    return Model(loads(text.replace("TURN", turn)), evaluator=Interpreted())


@pytest.mark.parametrize("name", CIRCLES)
def test_pins_are_placed_in_closed_form_as_newton_places_them(name, monkeypatch):
    """Every loop equation at rounding, redundant ones too, and the same pose by iteration from a start near to it."""
    closed = interpreted(name)
    assert [
        block.method for block in closed.platform.blocks if len(block.unknowns) == 2
    ] == CIRCLES[name]
    states = random_states(closed, 100, np.random.default_rng(1))
    phi, _ = closed.assembly.loops.residuals(states.q)
    assert np.abs(phi).max() < SAME
    monkeypatch.setattr(position._Solver, "_solve_pin", lambda *_: "")
    iterated = interpreted(name)
    assert [block.method for block in iterated.platform.blocks if len(block.unknowns) == 2] == [
        "Newton"
    ] * len(CIRCLES[name])
    start = states.q + ASTRAY * np.random.default_rng(2).normal(size=states.q.shape)
    motion = (states.position, states.velocity, states.acceleration)
    state = iterated.platform.kinematics(*motion, start=start)
    difference = states.q - state.q
    is_angle = np.array(closed.topology.is_angle)
    difference[:, is_angle] = (difference[:, is_angle] + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(difference).max() < SAME
    expected = iterated.platform.inverse_dynamics(*motion, start=start).force
    assert (
        np.abs(closed.platform.inverse_dynamics(*motion).force - expected).max()
        < SAME * np.abs(expected).max()
    )


def test_the_five_bars_cranks_by_plane_geometry():
    """The law of cosines: link 0.35 m, crank 0.25 m, shoulders 0.1 m left and right of the origin."""
    model = interpreted("five_bar")
    tips = np.array([[0.0, 0.42], [0.08, 0.40], [-0.1, 0.45]])
    q = model.platform.kinematics(tips).q
    names = list(model.topology.coordinate_names)
    for name, shoulder, side in (("shoulder_1", -0.1, 1), ("shoulder_2", 0.1, -1)):
        reach = np.hypot(tips[:, 0] - shoulder, tips[:, 1])
        inner = np.arccos((0.25**2 + reach**2 - 0.35**2) / (2 * 0.25 * reach))
        expected = np.arctan2(tips[:, 1], tips[:, 0] - shoulder) + side * inner
        assert np.abs(q[:, names.index(name)] - expected).max() < SAME


def test_angles_run_on_beyond_half_a_turn():
    """The left crank lies at 131 deg at the reference pose, and may go to 190 deg: no jump to -170 deg on the way."""
    model = interpreted("five_bar")
    crank = np.deg2rad(np.linspace(150, 188, 60))
    link = crank - np.deg2rad(90)
    tip = np.stack(
        [
            -0.1 + 0.25 * np.cos(crank) + 0.35 * np.cos(link),
            0.25 * np.sin(crank) + 0.35 * np.sin(link),
        ],
        axis=1,
    )
    q = model.platform.kinematics(tip).q
    assert np.abs(q[:, model.topology.coordinate_names.index("shoulder_1")] - crank).max() < SAME


def test_a_tip_out_of_reach_is_told_by_how_much():
    model = interpreted("five_bar")
    with pytest.raises(PoseError) as far:
        model.platform.kinematics([-0.1, 0.65])  # 0.65 m from the left shoulder, links reach 0.60 m
    text = str(far.value)
    assert re.search(r"elbow_1: out of reach by 50 mm \(too far away\)", text), text
    with pytest.raises(PoseError) as near:
        # links are 0.10 m apart in length, and 0.04 m are asked for
        model.platform.kinematics([-0.1, 0.04])
    assert re.search(r"elbow_1: out of reach by 60 mm \(too near\)", str(near.value)), str(
        near.value
    )


@pytest.mark.parametrize("turn", TURNS)
def test_a_slider_crank_in_any_plane(turn):
    """x = r cos a + sqrt(l^2 - (r sin a - e)^2) with crank r, rod l and offset e."""
    model = turned(SLIDER_CRANK, turn)
    methods = {block.method for block in model.platform.blocks}
    # one by one where an axis runs along x
    assert methods in ({"circle and line"}, {"cosine and sine", "quadratic"})
    assert methods == {"circle and line"} or turn in TURNS[:3]
    angle = np.linspace(-3, 3, 40)[:, None]
    state = model.platform.kinematics(angle, np.ones_like(angle), np.zeros_like(angle))
    x = 0.1 * np.cos(angle) + np.sqrt(0.3**2 - (0.1 * np.sin(angle) - 0.02) ** 2)
    assert np.abs(state.q[:, [model.topology.coordinate_names.index("slide")]] - x).max() < SAME
    phi, _ = model.assembly.loops.residuals(state.q)
    assert np.abs(phi).max() < SAME


@pytest.mark.parametrize("turn", TURNS[2:])
def test_a_four_bar_stands_in_any_plane(turn):
    """The shipped machine in a frame that is turned: the same joint angles from the angle of its motor."""
    text = machine_path("four_bar").read_text(encoding="utf-8")
    plain = Model(loads(text), evaluator=Interpreted())
    text = text.replace("parent: base", "parent: foot").replace("on: base", "on: foot")
    text = text.replace("\nbodies:", f"\nframes:\n  foot: {{on: base, turn: {turn}}}\nbodies:")
    model = Model(loads(text), evaluator=Interpreted())
    inputs = np.linspace(-2, 2, 20)[:, None] + plain.assembly.q[list(plain.platform.ports.q)]
    assert {block.method for block in model.platform.blocks} == {"two circles"}
    same = model.platform.kinematics(inputs).q - plain.platform.kinematics(inputs).q
    assert np.abs(same).max() < SAME


# The form itself


def symbols(n: int) -> tuple[ca.SX, ca.SX, ca.SX]:
    return ca.SX.sym("q", n), ca.SX.sym("c", n), ca.SX.sym("s", n)


NO_THETA = (ca.SX.sym("theta", 0), np.zeros(0))


def test_a_circle_is_recognised_with_its_radius():
    q, c, s = symbols(2)
    psi = ca.vertcat(2 * c[0] + 3 * c[1] - 4, 2 * s[0] + 3 * s[1] - 1)
    form = circle_form(psi, (q, c, s), 1, NO_THETA)
    assert form is not None
    assert form.is_constant
    assert float(form.square) == pytest.approx(9)


def test_an_arm_with_a_slide_on_it_has_a_radius_that_changes():
    """The pin at (q, 1) in the turning arm's axes: its circle has the radius sqrt(q^2 + 1)."""
    q, c, s = symbols(2)
    psi = ca.vertcat(q[0] * c[1] - s[1] - 4, q[0] * s[1] + c[1] - 1)
    form = circle_form(psi, (q, c, s), 1, NO_THETA)
    assert form is not None
    assert not form.is_constant
    assert float(ca.Function("square", [q], [form.square])([3, 0])) == pytest.approx(10)


@pytest.mark.parametrize(
    "what", ["an ellipse that changes", "the angle itself", "products of one angle", "one row only"]
)
def test_other_forms_are_left_to_newton(what):
    q, c, s = symbols(2)
    psi = {
        "an ellipse that changes": ca.vertcat(c[1] - 4 + c[0], q[0] * s[1]),
        "the angle itself": ca.vertcat(c[1] + q[1], s[1] + c[0]),
        "products of one angle": ca.vertcat(c[1] * s[1] + c[0], s[1] * s[1] + s[0]),
        "one row only": ca.vertcat(c[1] + c[0], 2 * c[1] + s[0]),
    }[what]
    assert circle_form(psi, (q, c, s), 1, NO_THETA) is None
