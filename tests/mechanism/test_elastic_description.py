"""Elastic data of machine files: sections, materials, masses, compliances; their refusals and round trips."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable

import numpy as np
import pytest

import tauloop as tl
from tauloop.common.errors import DescriptionError
from tauloop.mechanism.description.reader import read_machine
from tauloop.mechanism.description.sections.elastic import material_table
from tauloop.mechanism.expression import evaluate
from tauloop.mechanism.model import Inertia, Mechanism, SlenderPart

#: Two routes to one number by sums of a few products differ by rounding only.
ROUNDING = 1e-12

SLIDER = """
format: tauloop-machine/1
name: bench
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
materials:
  alloy: {{young_modulus: 70 GPa, poisson_ratio: 0.3, density: 2700 kg/m^3, expansion: 23e-6 1/K, strength: 250 MPa}}
bodies:
  cart: {{mass: 2 kg}}
  plate: {{mass: 1 kg}}
joints:
  slide: {{type: prismatic, axis: x, parent: base, child: cart}}
  lift: {{type: prismatic, axis: z, parent: base, child: plate, reference: 0.8 m}}
rods:
  rod:
    from: cart
    to: plate
{rod}
platform: {{body: plate, independent: [lift]}}
"""


def bench(rod: str) -> Mechanism:
    """Machine with one rod of these keys."""
    return read_machine(SLIDER.format(rod=textwrap.indent(textwrap.dedent(rod), "    ")), "b.yaml")


def section(keys: str) -> dict[str, float | np.ndarray]:
    """Properties of a section as numbers."""
    machine = bench(f"length: 1 m\nmodel: full\nfirst_axis: [1, 0, 0]\nspin: none\n{keys}")
    beam = machine.rod("rod").lower_beam
    assert beam is not None
    properties = beam.segments[0].start.properties

    def values(item):
        if isinstance(item, tuple):
            return np.array([machine.value(x) for x in item])
        return machine.value(item)

    names = ("axial_stiffness", "bending_stiffness", "torsional_stiffness", "shear_stiffness")
    names += ("mass_per_length", "rotary_inertia", "expansion", "strength", "extent")
    given = {name: getattr(properties, name) for name in names}
    return {name: values(item) for name, item in given.items() if item is not None}


E, NU, RHO = 70e9, 0.3, 2700.0
G = E / 2.6


@pytest.mark.parametrize(
    ("keys", "area", "moments", "torsion", "shear", "extent"),
    [
        pytest.param(
            "tube: {outer: 50 mm, wall: 3 mm, material: alloy}",
            math.pi * (0.025**2 - 0.022**2),
            2 * [math.pi / 4 * (0.025**4 - 0.022**4)],
            math.pi / 2 * (0.025**4 - 0.022**4),
            2 * [6 * 1.3 * 1.7744**2 / (8.8 * 1.7744**2 + 23.6 * 0.7744)],
            [0.025, 0.025],
            id="tube",
        ),
        pytest.param(
            "round: {diameter: 20 mm, material: alloy}",
            math.pi * 0.01**2,
            2 * [math.pi / 4 * 0.01**4],
            math.pi / 2 * 0.01**4,
            2 * [6 * 1.3 / 8.8],
            [0.01, 0.01],
            id="round",
        ),
        pytest.param(  # torsion: k = 0.2287 b h^3 of tables for a ratio of 2, here with more digits
            "rectangle: {width: 20 mm, height: 40 mm, material: alloy}",
            0.02 * 0.04,
            [0.02 * 0.04**3 / 12, 0.04 * 0.02**3 / 12],
            0.22868166 * 0.04 * 0.02**3,
            2 * [13 / 15.3],
            [0.01, 0.02],
            id="rectangle",
        ),
        pytest.param(
            "box: {width: 40 mm, height: 60 mm, wall: 2 mm, material: alloy}",
            0.04 * 0.06 - 0.036 * 0.056,
            [(0.04 * 0.06**3 - 0.036 * 0.056**3) / 12, (0.06 * 0.04**3 - 0.056 * 0.036**3) / 12],
            4 * (0.038 * 0.058) ** 2 * 0.002 / (2 * (0.038 + 0.058)),
            None,
            [0.02, 0.03],
            id="box",
        ),
    ],
)
def test_section_agrees_with_closed_forms(keys, area, moments, torsion, shear, extent) -> None:
    found = section(keys)
    digits = 1e-7 if keys.startswith("rectangle") else ROUNDING  # the table's number has 8 digits
    np.testing.assert_allclose(found["axial_stiffness"], E * area, rtol=ROUNDING)
    np.testing.assert_allclose(found["bending_stiffness"], E * np.array(moments), rtol=1e-11)
    np.testing.assert_allclose(found["torsional_stiffness"], G * torsion, rtol=digits)
    np.testing.assert_allclose(found["mass_per_length"], RHO * area, rtol=ROUNDING)
    np.testing.assert_allclose(found["rotary_inertia"], RHO * np.array(moments), rtol=1e-11)
    np.testing.assert_allclose(found["extent"], extent, rtol=ROUNDING)
    assert (found["expansion"], found["strength"]) == (23e-6, 250e6)
    if shear is not None:
        np.testing.assert_allclose(found["shear_stiffness"], G * area * np.array(shear), rtol=1e-11)
