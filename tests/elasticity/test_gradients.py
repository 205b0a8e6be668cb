"""Derivatives of the compliance by elastic parameters, compared with central differences."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elastic_machines import DELTA, FLAT, FOUR_BAR, PRPAR, gantry, hexapod

import tauloop as tl
from tauloop.common.errors import InputError
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.static_analysis.gradients import (
    elastic_parameters,
    item_motions,
    stiffness_gradient,
)
from tauloop.mechanism.model import Mechanism

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Relative steps of central differences, whose errors of second order cancel (Richardson).
STEPS = (1e-3, 5e-4)
#: Largest difference by geometry, relative: errors of fourth order of these steps.
GEOMETRY_TOLERANCE = 1e-6

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


def differences(
    machine: Mechanism, name: str, scale: float | None = None, **settings: object
) -> Array:
    """Return the derivative (N, 6, 6) of the compliance by differences of fourth order.

    Args:
        machine: the machine.
        name: the parameter.
        scale: value that steps are relative to; default: that of the parameter.
        settings: options of the stiffness.
    """
    value = machine.parameters[name].value
    scale = value if scale is None else scale
    model = tl.Model(machine)
    pose = model.platform_position(model.assembly.q[None])
    settings = settings or {"weightless": True}

    def compliance(changed: float) -> Array:
        model = tl.Model(machine.with_values({name: changed}))
        return tl.stiffness(model, pose, **settings).compliance

    coarse, fine = (
        (compliance(value + step * scale) - compliance(value - step * scale)) / (2.0 * step * scale)
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


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (gantry, ("triple1.length", "track1.yaw", "pair2.B_y")),
        (lambda: tl.loads(DELTA), ("leg1.arm.beams.bar.to[0]", "leg2.phi", "leg3.left.to.at[1]")),
        (
            lambda: hexapod(drives="30 N/um", sections=True),
            ("leg2.strut.lower.length", "plate_radius"),
        ),
        (lambda: tl.loads(PRPAR), ("rod", "width")),
        (lambda: tl.loads(FOUR_BAR), ("closing_pin.parent.at[0]", "rocker_pin.parent.at[0]")),
    ],
    ids=["gantry", "delta", "hexapod", "overconstrained", "four-bar"],
)
def test_gradients_by_geometry_are_those_of_differences(
    machine: Callable[[], Mechanism], names: tuple[str, ...]
) -> None:
    """Positions, lengths and directions move other parts by the closure of loops."""
    mechanism = machine()
    result = tl.stiffness(tl.Model(mechanism), weightless=True)
    gradient = result.elastic_gradient(names)
    assert gradient.error < 1e-9
    size = np.sqrt(np.diagonal(result.compliance[0]))
    for column, name in enumerate(names):
        unit = 0.1 / np.outer(size, size)
        computed = gradient.compliance[0, ..., column] * unit
        expected = differences(mechanism, name, 0.1)[0] * unit
        largest = np.abs(expected).max()
        assert largest > 1e-3
        assert np.abs(computed - expected).max() < GEOMETRY_TOLERANCE * largest, name


def test_elastic_parameters_have_the_derivatives_of_a_second_route() -> None:
    """dC = -Xᵀ dK X, by the stiffness of elements instead of their flexibility."""
    result = tl.stiffness(tl.Model(tl.loads(FOUR_BAR)))
    mechanism = result.model.mechanism
    names = elastic_parameters(mechanism, result.laws)
    moved = {
        name: rows @ result.unit_displacement
        for name, rows in item_motions(result.structure).items()
    }
    other = -stiffness_gradient(mechanism, result.structure, result.laws, names, moved, moved)
    gradient = result.elastic_gradient(names)
    size = np.sqrt(np.diagonal(result.compliance[0]))
    size[size == 0.0] = 1.0
    unit = mechanism.parameters.vector(names) / np.outer(size, size)[..., None]
    assert gradient.compliance * unit == pytest.approx(other * unit, abs=1e-9)


def test_shear_and_loads_have_gradients() -> None:
    machine = tl.loads(DELTA)
    names = ("leg1.arm.beams.bar.box.height", "leg2.right.length")
    sheared = tl.stiffness(tl.Model(machine), shear=True)
    loads = {"wrench": {"fx": 200.0, "fz": 100.0}, "loaded": True}
    loaded = tl.stiffness(tl.Model(machine), **loads)
    assert np.abs(loaded.compliance / sheared.compliance - 1.0).max() > 1e-3
    # Of the loaded machine, both kinds of parameters have derivatives by the same differences.
    cases = ((sheared, {"shear": True}, names), (loaded, loads, names[1:]))
    for result, settings, chosen in cases:
        gradient = result.elastic_gradient(chosen)
        assert gradient.error < 1e-3
        for column, name in enumerate(chosen):
            expected = differences(machine, name, **settings)[0]
            computed = gradient.compliance[0, ..., column]
            assert np.abs(computed - expected).max() < 1e-6 * np.abs(expected).max()


def test_masses_and_unknown_names() -> None:
    result = tl.stiffness(tl.Model(gantry()))
    assert "triple1.length" in result.elastic_gradient().parameters
    assert "m_p" not in result.elastic_gradient().parameters
    # Masses do not change the stiffness.
    assert not result.elastic_gradient(["m_p"]).compliance.any()
    with pytest.raises(InputError, match="tube: is not an independent parameter"):
        result.elastic_gradient(["alloy.young_modulus", "tube"])


def test_bearings_that_yield_in_one_of_two_directions() -> None:
    """Along y and about x they yield together in one direction only."""
    rows = ["[0, c, 0, c_mixed, 0, 0]", "[0, c_mixed, 0, c_mixed^2/c, 0, 0]"]
    zero = "[0, 0, 0, 0, 0, 0]"
    matrix = [zero, rows[0], zero, rows[1], zero, zero]
    lines = "".join(f"\n      - {row}" for row in matrix)
    machine = guided(f"compliance:{lines}")
    result = tl.stiffness(tl.Model(machine))
    for column, name in enumerate(names := ("c", "c_mixed", "drive")):
        computed = result.elastic_gradient(names).compliance[0, ..., column]
        expected = differences(machine, name)[0]
        assert computed == pytest.approx(expected, abs=1e-7 * np.abs(expected).max())
