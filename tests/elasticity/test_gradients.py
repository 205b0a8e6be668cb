"""Derivatives of the compliance by elastic parameters, compared with central differences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elastic_machines import FLAT, FOUR_BAR, gantry, hexapod

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.elasticity.beams import Array
from tauloop.mechanism.model import Mechanism

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Relative steps of central differences, whose errors of second order cancel (Richardson).
STEPS = (1e-3, 5e-4)

GUIDED = """
format: tauloop-machine/1
name: guided
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
parameters:
  k: 4e7 N/m
  k_mixed: 1e6 N/rad
  k_turn: 3e5 N m/rad
  c: 5e-8 m/N
  c_mixed: 2e-9 rad/N
  c_turn: 3e-6 rad/N/m
  drive: 1e7 N/m
  ratio: 0.5
bodies: {cart: {mass: 2 kg}}
joints:
  slide:
    type: prismatic
    axis: x
    parent: {on: base, turn: [{z: 30 deg}]}
    child: cart
    BEARINGS
actuators: {motor: {on: slide, force: 10 N, ratio: ratio, stiffness: drive}}
platform: {body: cart, independent: [slide], tool: {at: [0.02 m, 0.05 m, 0.1 m]}}
"""
#: Bearings that yield in all five directions; those along y and about x act together.
MATRIX = """KIND:
      - [FREE, 0, 0, 0, 0, 0]
      - [0, L, 0, L_mixed, 0, 0]
      - [0, 0, L, 0, 0, 0]
      - [0, L_mixed, 0, 2*L_turn, 0, 0]
      - [0, 0, 0, 0, L_turn, 0]
      - [0, 0, 0, 0, 0, L_turn]"""
STIFF = MATRIX.replace("KIND", "stiffness").replace("FREE", "0").replace("L", "k")
YIELDING = MATRIX.replace("KIND", "compliance").replace("FREE", "0").replace("L", "c")


def guided(bearings: str) -> Mechanism:
    """Return a driven cart on a rail with bearings."""
    return tl.loads(GUIDED.replace("BEARINGS", bearings))


def tapered() -> Mechanism:
    """Return the four-bar with a crank whose diameter changes along it."""
    ends = ("start: {round: {diameter: 40 mm, material: steel}}",)
    ends += ("end: {round: {diameter: 20 mm, material: steel}}",)
    crank = f"to: [0.3 m, 0, 0], taper: {{{', '.join(ends)}}}"
    return tl.loads(FOUR_BAR.replace(f"to: [0.3 m, 0, 0], {FLAT}", crank))


def with_contacts() -> Mechanism:
    """Return the Gantry-Tau of tubes whose ball joints yield."""
    text = (EXAMPLES / "elastic/gantry_tau.yaml").read_text(encoding="utf-8")
    contact = "contact: {start: drive_stiffness, end: 150 N/um}"
    return tl.loads(text.replace("        tube: {", f"        {contact}\n        tube: {{"))


def differences(machine: Mechanism, name: str) -> Array:
    """Return the derivative (N, 6, 6) of the compliance by differences of fourth order."""
    value = machine.parameters[name].value

    def compliance(changed: float) -> Array:
        model = tl.Model(machine.with_values({name: changed}))
        return tl.stiffness(model, weightless=True).compliance

    coarse, fine = (
        (compliance(value * (1.0 + step)) - compliance(value * (1.0 - step))) / (2.0 * step * value)
        for step in STEPS
    )
    return (4.0 * fine - coarse) / 3.0


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (gantry, ("alloy.young_modulus", "pair1.link.tube.wall", "track2.motor.stiffness")),
        (
            lambda: hexapod(drives="30 N/um", sections=True),
            ("alloy.young_modulus", "leg2.strut.upper.tube.outer", "leg3.motor.stiffness"),
        ),
        (lambda: hexapod(drives="30 N/um"), ("leg2.motor.stiffness",)),
        (
            lambda: tl.loads(FOUR_BAR),
            ("steel.poisson_ratio", "crank.beams.bar.rectangle.width", "steel.young_modulus"),
        ),
        (tapered, ("crank.beams.bar.taper.start.round.diameter", "steel.young_modulus")),
        (with_contacts, ("drive_stiffness", "single1.link.contact.end", "tube_wall")),
        (lambda: guided("stiffness: {y: k, rz: k_turn}"), ("k", "k_turn", "drive", "ratio")),
        (lambda: guided("compliance: {y: c, rz: c_turn}"), ("c", "c_turn", "drive")),
        (lambda: guided(STIFF), ("k", "k_mixed", "k_turn")),
        (lambda: guided(YIELDING), ("c", "c_mixed", "c_turn")),
    ],
    ids=[
        "tubes",
        "telescopic rods",
        "springs along struts",
        "bent bars",
        "tapered bar",
        "ball joints",
        "stiff bearings",
        "yielding bearings",
        "stiffness matrix",
        "compliance matrix",
    ],
)
def test_gradients_are_those_of_differences(
    machine: Callable[[], Mechanism], names: tuple[str, ...]
) -> None:
    mechanism = machine()
    result = tl.stiffness(tl.Model(mechanism))
    gradient = result.elastic_gradient(names)
    assert gradient.parameters == names
    assert set(names) <= set(result.elastic_gradient().parameters)
    size = np.sqrt(np.diagonal(result.compliance[0]))
    size[size == 0.0] = 1.0
    for column, name in enumerate(names):
        unit = mechanism.parameters[name].value / np.outer(size, size)
        computed = gradient.compliance[0, ..., column] * unit
        expected = differences(mechanism, name)[0] * unit
        largest = np.abs(expected).max()
        assert largest > 1e-3
        assert np.abs(computed - expected).max() < 1e-7 * largest


def test_gradients_at_many_poses_are_those_of_each() -> None:
    model = tl.Model(gantry())
    poses = np.random.default_rng(1).uniform(-0.1, 0.1, (3, 3))
    together = tl.stiffness(model, poses).elastic_gradient().compliance
    for pose, expected in zip(poses, together, strict=True):
        alone = tl.stiffness(model, pose[None]).elastic_gradient()
        assert alone.compliance[0] == pytest.approx(expected, rel=1e-9, abs=1e-30)


def test_a_gradient_by_geometry_is_refused_by_name() -> None:
    result = tl.stiffness(tl.Model(gantry()))
    assert "triple1.length" not in result.elastic_gradient().parameters
    names = ("alloy.young_modulus", "triple1.length", "track1.track_y", "tube")
    with pytest.raises(InputError) as refused:
        result.elastic_gradient(names)
    assert [problem.where for problem in refused.value.problems] == list(names[1:])
    assert "changes positions or lengths" in str(refused.value)
    # Masses do not change the stiffness.
    assert not result.elastic_gradient(["m_p"]).compliance.any()


def test_a_gradient_with_loads_or_shear_is_refused() -> None:
    model = tl.Model(gantry())
    with pytest.raises(InputError, match="loaded: the gradient is that of"):
        tl.stiffness(model, loaded=True).elastic_gradient()
    with pytest.raises(InputError, match="shear: the gradient is that of"):
        tl.stiffness(model, shear=True).elastic_gradient()


def test_bearings_whose_rigid_direction_may_turn_are_refused() -> None:
    """Along y and about x they yield together in one direction only."""
    rows = ["[0, c, 0, c_mixed, 0, 0]", "[0, c_mixed, 0, c_mixed^2/c, 0, 0]"]
    zero = "[0, 0, 0, 0, 0, 0]"
    matrix = [zero, rows[0], zero, rows[1], zero, zero]
    lines = "".join(f"\n      - {row}" for row in matrix)
    result = tl.stiffness(tl.Model(guided(f"compliance:{lines}")))
    with pytest.raises(InputError, match="rigid in some directions"):
        result.elastic_gradient(["c"])
    assert result.elastic_gradient(["drive"]).compliance.any()
