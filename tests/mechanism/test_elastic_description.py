"""Elastic data of machine files: sections, materials, masses, compliances; their refusals and round trips."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import jsonschema
import numpy as np
import pytest
from plain_yaml import plain

import tauloop as tl
from tauloop.common.errors import DescriptionError, InputError
from tauloop.equations.values import Values
from tauloop.formats.mjcf.writer import to_mjcf
from tauloop.formats.sdf.writer import to_sdf
from tauloop.formats.urdf.writer import to_urdf
from tauloop.formats.writing.yaml_writer import write_yaml
from tauloop.mechanism.description.reader import read_machine
from tauloop.mechanism.description.schema import json_schema
from tauloop.mechanism.description.sections.elastic import material_table
from tauloop.mechanism.description.units import PRESSURE, parse_unit
from tauloop.mechanism.description.yaml_nodes import parse_nodes
from tauloop.mechanism.elastic.drives import drive_stiffness
from tauloop.mechanism.elastic.inertia import element_masses, unplaced_masses
from tauloop.mechanism.expression import Constant, Leaf, evaluate
from tauloop.mechanism.model import Inertia, Mechanism, SlenderPart

ROOT = Path(__file__).resolve().parents[2]
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
actuators: {{motor: {{on: slide}}}}
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
    stated = {name: getattr(properties, name) for name in names}
    return {name: values(item) for name, item in stated.items() if item is not None}


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
    properties = section(keys)
    digits = 1e-7 if keys.startswith("rectangle") else ROUNDING  # the table's number has 8 digits
    np.testing.assert_allclose(properties["axial_stiffness"], E * area, rtol=ROUNDING)
    np.testing.assert_allclose(properties["bending_stiffness"], E * np.array(moments), rtol=1e-11)
    np.testing.assert_allclose(properties["torsional_stiffness"], G * torsion, rtol=digits)
    np.testing.assert_allclose(properties["mass_per_length"], RHO * area, rtol=ROUNDING)
    np.testing.assert_allclose(properties["rotary_inertia"], RHO * np.array(moments), rtol=1e-11)
    np.testing.assert_allclose(properties["extent"], extent, rtol=ROUNDING)
    assert (properties["expansion"], properties["strength"]) == (23e-6, 250e6)
    if shear is not None:
        np.testing.assert_allclose(
            properties["shear_stiffness"], G * area * np.array(shear), rtol=1e-11
        )


def test_rectangle_torsion_agrees_with_the_whole_series() -> None:
    for width, height in ((20, 20), (20, 33), (47, 20), (5, 90)):
        properties = section(
            f"rectangle: {{width: {width} mm, height: {height} mm, material: alloy}}"
        )
        a, b = max(width, height) * 1e-3, min(width, height) * 1e-3
        terms = [math.tanh(n * math.pi * a / (2 * b)) / n**5 for n in range(1, 4001, 2)]
        J = a * b**3 / 3 * (1 - 192 * b / (math.pi**5 * a) * sum(terms))
        np.testing.assert_allclose(properties["torsional_stiffness"], G * J, rtol=1e-9)


def test_composite_section_is_taken_as_stated() -> None:
    properties = section(
        "section: {EA: 30 MN, EIy: 9 kN m^2, EIz: 4 kN m^2, GJ: 2 kN m^2, "
        "mass_per_length: 1.2 kg/m, expansion: -1e-6 1/K}"
    )
    assert properties["axial_stiffness"] == 30e6
    np.testing.assert_array_equal(properties["bending_stiffness"], [9e3, 4e3])
    assert (properties["torsional_stiffness"], properties["mass_per_length"]) == (2e3, 1.2)
    assert properties["expansion"] == -1e-6
    assert "strength" not in properties


TUBE = "tube: {outer: 50 mm, wall: 3 mm, material: alloy}"
BAR = "round: {diameter: 9 mm, material: alloy}"


def slender(machine: Mechanism) -> np.ndarray:
    part = machine.rod("rod").lower
    assert isinstance(part, SlenderPart)
    return np.array([machine.value(x) for x in part.parameters])


def test_inertia_of_a_rod_follows_from_its_tube() -> None:
    machine = bench(f"length: 1.25 m\nmodel: slender\n{TUBE}")
    mass = RHO * math.pi * (0.025**2 - 0.022**2) * 1.25
    about_center = mass * (3 * (0.025**2 + 0.022**2) + 1.25**2) / 12
    expected = [mass, mass * 0.625, about_center + mass * 0.625**2]
    np.testing.assert_allclose(slender(machine), expected, rtol=ROUNDING)


def test_fittings_are_point_masses_at_the_ends() -> None:
    plain = slender(bench(f"length: 1.25 m\nmodel: slender\n{TUBE}"))
    fitted = slender(
        bench(f"length: 1.25 m\nmodel: slender\n{TUBE}\nfittings: {{start: 0.4 kg, end: 0.3 kg}}")
    )
    np.testing.assert_allclose(fitted - plain, [0.7, 0.3 * 1.25, 0.3 * 1.25**2], rtol=1e-11)


def line_integral(density: Callable[[np.ndarray], np.ndarray], a: float, b: float) -> np.ndarray:
    """Mass and its two moments about zero of a line from a to b, by Gauss's rule with 40 points."""
    x, w = np.polynomial.legendre.leggauss(40)
    s = (a + b) / 2 + (b - a) / 2 * x
    w = w * (b - a) / 2
    return np.array([np.sum(w * density(s) * s**k) for k in range(3)])


def test_tapered_and_stepped_rods_agree_with_quadrature() -> None:
    machine = bench(
        """
        length: 1 m
        model: slender
        segments:
          - {length: 0.3 m, round: {diameter: 30 mm, material: alloy}}
          - taper:
              start: {tube: {outer: 50 mm, wall: 5 mm, material: alloy}}
              end: {tube: {outer: 30 mm, wall: 2 mm, material: alloy}}
        """
    )

    def tube(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        f = (s - 0.3) / 0.7
        outer, wall = 0.05 - 0.02 * f, 0.005 - 0.003 * f
        return outer / 2, outer / 2 - wall

    def mass(s: np.ndarray) -> np.ndarray:
        R, r = tube(s)
        return RHO * math.pi * (R**2 - r**2)

    def rotary(s: np.ndarray) -> np.ndarray:
        R, r = tube(s)
        return RHO * math.pi / 4 * (R**4 - r**4)

    bar = RHO * math.pi * 0.015**2
    expected = line_integral(lambda s: np.full_like(s, bar), 0.0, 0.3)
    expected += line_integral(mass, 0.3, 1.0)
    expected[2] += RHO * math.pi / 4 * 0.015**4 * 0.3 + line_integral(rotary, 0.3, 1.0)[0]
    np.testing.assert_allclose(slender(machine), expected, rtol=1e-11)


def test_full_rod_has_the_section_in_its_own_axes() -> None:
    """A flat bar, wide along the rod's x: the moment about y is the larger one across."""
    flat = "rectangle: {width: 40 mm, height: 10 mm, material: alloy}"
    machine = bench(f"length: 1 m\nmodel: full\nfirst_axis: [1, 0, 0]\nspin: none\n{flat}")
    part = machine.rod("rod").lower
    assert isinstance(part, Inertia)
    values = [machine.value(x) for x in part.parameters]
    m = RHO * 0.04 * 0.01
    xx, yy = m * (0.01**2 / 12 + 1 / 3), m * (0.04**2 / 12 + 1 / 3)
    zz = m * (0.04**2 + 0.01**2) / 12
    np.testing.assert_allclose(
        values, [m, 0, 0, m / 2, xx, 0, yy, 0, 0, zz], rtol=1e-11, atol=1e-18
    )


def test_parts_of_a_telescopic_rod_are_measured_from_their_own_ends() -> None:
    machine = bench(
        """
        telescopic: {reference: 0.8 m}
        model: full
        first_axis: [1, 0, 0]
        spin: none
        lower: {length: 0.5 m, tube: {outer: 50 mm, wall: 3 mm, material: alloy}}
        upper: {length: 0.6 m, round: {diameter: 40 mm, material: alloy}, fittings: {start: 0.2 kg}}
        """
    )
    rod = machine.rod("rod")
    assert isinstance(rod.lower, Inertia)
    assert isinstance(rod.upper, Inertia)
    lower = RHO * math.pi * (0.025**2 - 0.022**2) * 0.5
    upper = RHO * math.pi * 0.02**2 * 0.6
    moments = [machine.value(part.first_moment[2]) for part in (rod.lower, rod.upper)]
    np.testing.assert_allclose(moments, [lower * 0.25, -upper * 0.3], rtol=ROUNDING)
    assert machine.value(rod.upper.mass) == pytest.approx(upper + 0.2, rel=ROUNDING)


BODY = """
format: tauloop-machine/1
name: bench
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
parameters: {{reach: 0.5 m}}
bodies:
  arm: {{{body}}}
joints:
  pin: {{type: revolute, axis: z, parent: base, child: {{on: arm, at: [0.1 m, -0.2 m, 0.05 m]}}}}
platform: {{body: arm, tool: {{at: [reach, 0, 0]}}, independent: [pin]}}
"""


def body_machine(body: str) -> Mechanism:
    return read_machine(BODY.format(body=body), "body.yaml")


def test_inertia_of_a_body_is_that_of_its_beams() -> None:
    """Two bars in space against the sum over a grid of points of each bar."""
    machine = body_machine(
        "beams: {first: {from: pin, to: [reach, 0.1 m, 0.3 m], z_axis: [0, 0, 1], "
        "rectangle: {width: 60 mm, height: 20 mm, material: steel}, fittings: {end: 0.5 kg}}, "
        "second: {from: [0, 0, 0], to: [0, 0, 0.4 m], tube: {outer: 30 mm, wall: 2 mm, material: steel}}}"
    )
    inertia = machine.body("arm").inertia
    assert inertia is not None
    values = [machine.value(x) for x in inertia.parameters]
    x, w = np.polynomial.legendre.leggauss(6)

    a, b = np.array([0.1, -0.2, 0.05]), np.array([0.5, 0.1, 0.3])
    length = np.linalg.norm(b - a)
    u = (b - a) / length
    z = np.array([0.0, 0.0, 1.0]) - u[2] * u
    z /= np.linalg.norm(z)
    y = np.cross(z, u)
    grid = np.meshgrid(x, x, x, indexing="ij")
    weights = np.einsum("i,j,k->ijk", w, w, w).ravel() / 8
    s, t, r = (g.ravel() / 2 for g in grid)
    points = (a + b) / 2 + np.outer(s * length, u) + np.outer(t * 0.06, y) + np.outer(r * 0.02, z)
    masses = weights * 7850 * 0.06 * 0.02 * length
    # a tube is a solid bar less a smaller one
    for radius, sign in ((0.015, 1.0), (0.013, -1.0)):
        angles = np.arange(8) * math.pi / 4
        # radius squared is uniform over a disk
        rho = radius * np.sqrt((x + 1) / 2)
        R, A, H = (g.ravel() for g in np.meshgrid(rho, angles, 0.2 * (x + 1), indexing="ij"))
        points = np.vstack([points, np.column_stack([R * np.cos(A), R * np.sin(A), H])])
        ring = np.einsum("i,j,k->ijk", w, np.full(8, 1 / 8), w).ravel() / 4
        masses = np.append(masses, sign * ring * 7850 * math.pi * radius**2 * 0.4)
    points, masses = np.vstack([points, b]), np.append(masses, 0.5)

    second = np.einsum("i,ij,ik->jk", masses, points, points)
    tensor = np.trace(second) * np.eye(3) - second
    expected = [masses.sum(), *(masses @ points)]
    expected += [tensor[i, j] for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))]
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-12)


def test_units_of_elastic_values() -> None:
    expected = {"GPa": 1e9, "MPa": 1e6, "N/um": 1e6, "N m/rad": 1.0, "1/K": 1.0, "N/mm^2": 1e6}
    assert {text: parse_unit(text).scale for text in expected} == pytest.approx(expected, rel=1e-15)
    assert parse_unit("N/mm^2").dimension == PRESSURE
    assert str(parse_unit("1/K").dimension) == "1/K"
    with pytest.raises(
        DescriptionError, match=r"is a temperature difference \(K\) where a coefficient"
    ):
        bench(f"length: 1 m\nmodel: slender\n{COMPOSITE.format('expansion: 1 K')}")


COMPOSITE = "section: {{EA: 1 MN, EI: 1 kN m^2, GJ: 1 kN m^2, mass_per_length: 1 kg/m, {}}}"


def test_table_of_materials_is_plausible_and_has_sources() -> None:
    table = material_table()
    assert {"aluminium", "steel", "stainless_steel", "titanium"} <= set(table)
    for name, (material, parameters) in table.items():
        values = {p.name: p.value for p in parameters}
        E, G, density = (
            evaluate(x, values)
            for x in (material.young_modulus, material.shear_modulus, material.density)
        )
        # speed of sound along a bar of any of these materials
        assert 4000 < math.sqrt(E / density) < 10000, name
        assert 0.0 < G <= E / 2, name
        assert {p.group for p in parameters} == {"elasticity"}
        assert all(len(p.source) > 10 and p.status == "given" for p in parameters), name


def test_values_of_a_material_of_the_table_are_parameters() -> None:
    machine = bench(
        "length: 1 m\nmodel: slender\ntube: {outer: 50 mm, wall: 3 mm, material: aluminium}"
    )
    lighter = machine.with_values({"aluminium.density": "1350 kg/m^3", "rod.tube.outer": "50 mm"})
    np.testing.assert_allclose(slender(lighter), slender(machine) / 2, rtol=ROUNDING)


def test_dynamics_work_from_the_section_alone() -> None:
    """The file with the numbers of the section in place of it gives the same forces, by any value."""
    elastic = bench(f"length: 1.25 m\nmodel: slender\n{TUBE}")
    for outer in (0.05, 0.0612):
        machine = elastic.with_values({"rod.tube.outer": outer})
        mass, h, J = slender(machine).tolist()
        s = h / mass
        link = f"link: {{mass: {mass!r} kg, center: {s!r} m, inertia: {J - mass * s**2!r} kg m^2}}"
        rigid = bench(f"length: 1.25 m\nmodel: slender\n{link}")
        forces = [
            tl.Model(m).platform.inverse_dynamics([[0.8]], [[0.3]], [[2.0]]).force
            for m in (machine, rigid)
        ]
        np.testing.assert_allclose(forces[0], forces[1], rtol=1e-10)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            "tube: {outer: 50 mm, wall: 30 mm, material: alloy}",
            "thicker than the radius: 0.03 m > 0.025 m",
        ),
        (
            "box: {width: 50 mm, height: 20 mm, wall: 11 mm, material: alloy}",
            "half of the smaller side",
        ),
        ("tube: {outer: 50 mm, wall: 3 mm, material: aluminum}", "did you mean aluminium"),
        ("tube: {outer: 50 mm, wall: 3 mm, material: aloy}", "did you mean alloy"),
        ("tube: {outer: 0 mm, wall: 3 mm, material: alloy}", "must be positive, got 0 m"),
        ("tube: {outer: 50 mm, wall: 3 mm}", "this key of a tube is missing"),
        (COMPOSITE.format("EIy: 1 N m^2"), "EI is the stiffness about both axes"),
        (
            "section: {EA: 1 N, GJ: 1 N m^2, mass_per_length: 1 kg/m}",
            "the bending stiffness EI is missing",
        ),
        (
            "section: {EA: 0 N, EI: 1 N m^2, GJ: 1 N m^2, mass_per_length: 1 kg/m}",
            "must be positive",
        ),
        (
            "section: {EA: -1 N, EI: 1 N m^2, GJ: 1 N m^2, mass_per_length: 1 kg/m}",
            "must be positive",
        ),
        (
            TUBE + "\nround: {diameter: 20 mm, material: alloy}",
            "two sections are given: tube, round",
        ),
        (
            "rectangle: {width: 20 mm, height: 30 mm, material: alloy}",
            "does not define directions across",
        ),
        (
            "segments: [{tube: {outer: 50 mm, wall: 3 mm, material: alloy}, length: 1 m}]",
            "0 segments have no length",
        ),
        (
            f"segments: [{{{BAR}, length: 2 m}}, {{{BAR}}}]",
            "leave nothing of the beam's length",
        ),
        (
            f"taper: {{start: {{{BAR}}}, end: {{{TUBE}}}}}",
            "got round of alloy and tube of alloy",
        ),
        (TUBE + "\ndistributed: yes", "spreads a stated mass, but no mass is stated"),
        (
            "link: {mass: 1 kg, center: 0.5 m}\nfittings: {start: 1 kg}",
            "requires a section, but there is none",
        ),
        (f"link: {{mass: 1 kg, center: 0.5 m}}\n{TUBE}", "1 kg, is below the section's 1.196 kg"),
        (
            f"link: {{mass: 4.22 kg, center: 0.5 m}}\n{TUBE}\nfittings: {{start: 1.4 kg, end: 1.3 kg}}",
            "must sum to 3.024 kg",
        ),
        (
            f"link: {{mass: 3.9 kg, center: 0.5 m}}\n{TUBE}\nfittings: {{end: 2.7 kg}}\ndistributed: yes",
            "both state where the rest of the mass is",
        ),
        (
            f"link: {{mass: 4 kg, center: 0.5 m, {TUBE}}}",
            "a fixed rod has its section on the rod itself",
        ),
        (f"{TUBE}\ncontact: {{start: 0 N/m}}", "must be positive, got 0 N/m"),
    ],
)
def test_wrong_sections_are_refused(keys: str, message: str) -> None:
    with pytest.raises(DescriptionError) as error:
        bench(f"length: 1 m\nmodel: slender\n{keys}")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("rod", "message"),
    [
        (f"length: 1 m\nmodel: massless\n{TUBE}", "a massless rod has no section"),
        (
            f"telescopic: {{reference: 0.8 m}}\nmodel: slender\n{TUBE}",
            "move tube to lower or upper",
        ),
        (
            f"telescopic: {{reference: 0.8 m}}\nmodel: slender\nlower: {{{TUBE}}}",
            "a section but no length",
        ),
        (
            "telescopic: {reference: 0.8 m, limits: [0.7 m, 1.1 m]}\nmodel: slender\n"
            f"lower: {{length: 0.5 m, {TUBE}}}\nupper: {{length: 0.6 m, {BAR}}}",
            "do not overlap at the length 1.1 m",
        ),
    ],
)
def test_sections_at_wrong_places_are_refused(rod: str, message: str) -> None:
    with pytest.raises(DescriptionError) as error:
        bench(rod)
    assert message in str(error.value)


STEEL_TUBE = "tube: {outer: 9 mm, wall: 1 mm, material: steel}"
FLAT = "rectangle: {width: 9 mm, height: 8 mm, material: steel}"


@pytest.mark.parametrize(
    ("beam", "message"),
    [
        (f"from: pin, to: pin, {STEEL_TUBE}", "the length of the beam is zero"),
        (f"from: pin, to: [0, 0, 1 m], {FLAT}", "its orientation is missing"),
        (f"from: [0, 0, 0], to: [0, 0, 1 m], z_axis: [0, 0, 1], {FLAT}", "parallel to the beam"),
        (f"from: pim, to: [0, 0, 1 m], {STEEL_TUBE}", "did you mean pin"),
        ("from: pin, to: [0, 0, 1 m]", "the beam has no section"),
    ],
)
def test_wrong_beams_are_refused(beam: str, message: str) -> None:
    with pytest.raises(DescriptionError) as error:
        body_machine(f"beams: {{b: {{{beam}}}}}")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("mass: 1 kg, distributed: yes", "the body has none"),
        (
            f"mass: 1 g, beams: {{b: {{from: pin, to: [0, 0, 1 m], {STEEL_TUBE}}}}}",
            "is below the section's",
        ),
        ("center: [0, 0, 0]", "this key of a body is missing"),
        ("beams: {}", "the mapping is empty"),
    ],
)
def test_wrong_beams_of_bodies_are_refused(body: str, message: str) -> None:
    with pytest.raises(DescriptionError) as error:
        body_machine(body)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("material", "message"),
    [
        ("young_modulus: 70 GPa, density: 1 kg/m^3", "neither `shear_modulus` nor `poisson_ratio`"),
        (
            "young_modulus: 70 GPa, density: 1 kg/m^3, poisson_ratio: 0.6",
            "between 0 and 0.5, got 0.6",
        ),
        (
            "young_modulus: 135 GPa, density: 1 kg/m^3, shear_modulus: 5 GPa",
            "give Poisson's ratio 12.5",
        ),
        (
            "young_modulus: 70 kN, density: 1 kg/m^3, poisson_ratio: 0.3",
            "is a force (N) where a stress (Pa)",
        ),
        ("young_modulus: 0 GPa, density: 1 kg/m^3, poisson_ratio: 0.3", "must be positive"),
    ],
)
def test_wrong_materials_are_refused(material: str, message: str) -> None:
    text = SLIDER.format(rod="    length: 1 m\n    model: massless")
    text = text.replace("materials:\n", f"materials:\n  other: {{{material}}}\n")
    with pytest.raises(DescriptionError) as error:
        read_machine(text, "m.yaml")
    assert message in str(error.value)


def test_shear_modulus_and_poisson_ratio_follow_from_each_other() -> None:
    text = SLIDER.format(rod="    length: 1 m\n    model: massless")
    other = "  other: {young_modulus: 70 GPa, shear_modulus: 26 GPa, density: 1 kg/m^3}\n"
    machine = read_machine(text.replace("materials:\n", f"materials:\n{other}"), "m.yaml")
    named = {material.name: material for material in machine.materials}
    assert machine.value(named["alloy"].shear_modulus) == pytest.approx(70e9 / 2.6, rel=ROUNDING)
    assert machine.value(named["other"].poisson_ratio) == pytest.approx(70 / 52 - 1, rel=ROUNDING)


LINK = "link: {mass: 4.22 kg, center: 0.5 m, inertia: 0.4 kg m^2}"


@pytest.mark.parametrize(
    ("statement", "fittings", "unplaced"),
    [
        ("", 0.0, 3.024),
        ("distributed: yes", 0.0, 0.0),
        ("fittings: {start: 1.5 kg, end: 1.5 kg}", 3.0, 0.0),
    ],
)
def test_mass_beyond_the_section_is_placed_or_reported(
    statement: str, fittings: float, unplaced: float
) -> None:
    machine = bench(f"length: 1 m\nmodel: slender\n{LINK}\n{TUBE}\n{statement}")
    (mass,) = element_masses(machine)
    assert mass.element == "rod"
    assert mass.mass == 4.22
    assert mass.section == pytest.approx(1.196004, rel=1e-6)
    assert mass.fittings == fittings
    assert mass.unplaced == pytest.approx(unplaced, rel=1e-5)
    problems = unplaced_masses(machine)
    assert len(problems) == (unplaced > 0.0)
    if problems:
        assert "4.22 kg" in problems[0].what
        assert "1.196 kg" in problems[0].what
        assert "distributed: yes" in problems[0].remedy


def joint_machine(keys: str, kind: str = "prismatic", axis: str = "axis: z") -> Mechanism:
    return read_machine(
        f"""
format: tauloop-machine/1
name: bench
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{arm: {{mass: 1 kg}}}}
joints:
  pin: {{type: {kind}, {axis}, parent: base, child: arm, {keys}}}
platform: {{body: arm, independent: [pin]}}
""",
        "joint.yaml",
    )


def test_five_directions_of_a_carriage_give_its_compliance() -> None:
    machine = joint_machine(
        "stiffness: {x: 200 N/um, y: 100 N/um, rx: 50 kN m/rad, ry: 40 kN m/rad, rz: 20 kN m/rad}"
    )
    compliance = machine.joint("pin").compliance
    assert compliance is not None
    values = [[machine.value(x) for x in row] for row in compliance.matrix]
    expected = np.diag([5e-9, 1e-8, 0, 2e-5, 2.5e-5, 5e-5])
    np.testing.assert_allclose(values, expected, rtol=1e-15)
    softer = joint_machine("compliance: {x: 0.005 um/N, y: 0.01 um/N, rx: 2e-5 rad/N/m}")
    other = softer.joint("pin").compliance
    assert other is not None
    diagonal = [softer.value(other.matrix[i][i]) for i in range(6)]
    np.testing.assert_allclose(diagonal, [5e-9, 1e-8, 0, 2e-5, 0, 0], rtol=1e-15)


def matrix_text(rows: list[list[str]]) -> str:
    return "[" + ", ".join(f"[{', '.join(row)}]" for row in rows) + "]"


def carriage_matrix() -> list[list[str]]:
    """Stiffness of a carriage that slides along z, in which x is coupled with the turn about y."""
    rows = [["0"] * 6 for _ in range(6)]
    for i, value in enumerate(
        ["2e8 N/m", "1e8 N/m", "0", "5e4 N m/rad", "4e4 N m/rad", "2e4 N m/rad"]
    ):
        rows[i][i] = value
    rows[0][4] = rows[4][0] = "1e6 N/rad"
    return rows


def test_stiffness_as_a_matrix_is_kept() -> None:
    machine = joint_machine(f"stiffness: {matrix_text(carriage_matrix())}")
    compliance = machine.joint("pin").compliance
    assert compliance is not None
    assert compliance.is_stiffness
    assert machine.value(compliance.matrix[0][4]) == 1e6
    assert not compliance.is_diagonal


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (0, 4, "2e6 N/rad", "entry (x, ry) is 2e+06 and entry (ry, x) is 1e+06"),
        (0, 0, "1e3 N/m", "negative eigenvalue"),
        (2, 2, "1 N/m", "moves freely in z"),
        (1, 1, "0", "the stiffness in y is zero"),
        (0, 0, "2e8 N m", "is a torque (N m) where a stiffness"),
    ],
)
def test_wrong_matrices_are_refused(row: int, column: int, value: str, message: str) -> None:
    rows = carriage_matrix()
    rows[row][column] = value
    with pytest.raises(DescriptionError) as error:
        joint_machine(f"stiffness: {matrix_text(rows)}")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("keys", "kind", "axis", "message"),
    [
        ("stiffness: {z: 1 N/um}", "prismatic", "axis: z", "the joint moves freely in z"),
        ("stiffness: {}", "prismatic", "axis: z", "no direction is given"),
        ("stiffness: {rz: 1 N m/rad}", "revolute", "axis: z", "the joint moves freely in rz"),
        ("stiffness: {x: 0 N/m}", "prismatic", "axis: z", "must be positive, got 0 N/m"),
        ("stiffness: {x: -3 N/m}", "prismatic", "axis: z", "must be positive, got -3 N/m"),
        ("stiffness: {x: 3 N/m}", "prismatic", "axis: [0, 1, 1]", "a joint whose axis is a letter"),
        ("stiffness: {x: 3 N/m}, compliance: {y: 0 m/N}", "prismatic", "axis: z", "both given"),
    ],
)
def test_wrong_stiffnesses_of_joints_are_refused(
    keys: str, kind: str, axis: str, message: str
) -> None:
    with pytest.raises(DescriptionError) as error:
        joint_machine(keys, kind, axis)
    assert message in str(error.value)


DRIVE = """
format: tauloop-machine/1
name: bench
provenance: {status: chosen, source: test}
gravity: [0, 0, -9.81 m/s^2]
bodies: {cart: {mass: 10 kg}}
joints: {slide: {type: prismatic, axis: x, parent: base, child: cart}}
actuators:
  axis:
    on: slide
    drive:
      load: cart
      inertias: {rotor: {inertia: 1e-3 kg m^2}, pulley: {inertia: 1e-3 kg m^2}}
      connections:
        shaft: {first: rotor, second: pulley, gear: 4, shaft: {stiffness: 800 N m/rad, damping: 1 N m s/rad}}
        belt: {first: pulley, second: cart, rack_and_pinion: 20 mm, shaft: {stiffness: 5 N/um, damping: 10 N s/m}}
      motors: {motor: {on: rotor}}
      encoders: {encoder: {on: rotor}}
      control: {position: {encoder: encoder, gain: 10}, motor: motor}
platform: {body: cart, independent: [slide]}
"""


def test_stiffness_of_a_drive_line_is_that_of_its_parts_in_series() -> None:
    machine = read_machine(DRIVE, "drive.yaml")
    stiffness = drive_stiffness(machine.actuators[0])
    assert stiffness is not None
    at_load = 1 / (1 / 5e6 + 0.02**2 / 800)  # N/m
    assert machine.value(stiffness) == pytest.approx(at_load, rel=ROUNDING)
    both = DRIVE.replace("    on: slide\n", "    on: slide\n    stiffness: 5 N/um\n")
    with pytest.raises(DescriptionError, match="follows from the drive line"):
        read_machine(both, "drive.yaml")


def test_two_motors_on_one_load_are_parallel() -> None:
    text = DRIVE.replace(
        "pulley: {inertia: 1e-3 kg m^2}}",
        "pulley: {inertia: 1e-3 kg m^2}, second: {inertia: 1e-3 kg m^2}, idler: {inertia: 1e-4 kg m^2}}",
    )
    text = text.replace(
        "      motors: {motor: {on: rotor}}",
        "        rack: {first: second, second: cart, rack_and_pinion: 10 mm, "
        "shaft: {stiffness: 2 N/um, damping: 1 N s/m}}\n"
        "        loose: {first: pulley, second: idler, shaft: {stiffness: 1 N m/rad, damping: 1 N m s/rad}}\n"
        "      motors: {motor: {on: rotor}, other: {on: second}}",
    )
    machine = read_machine(text, "drive.yaml")
    stiffness = drive_stiffness(machine.actuators[0])
    assert stiffness is not None
    first = 1 / (1 / 5e6 + 0.02**2 / 800)
    assert machine.value(stiffness) == pytest.approx(first + 2e6, rel=ROUNDING)


FRAME = """
format: tauloop-machine/1
name: bench
provenance: {{status: chosen, source: test}}
gravity: [0, 0, -9.81 m/s^2]
bodies: {{cart: {{mass: 10 kg}}}}
joints: {{slide: {{type: prismatic, axis: x, parent: {{on: base, at: [0, 0, 1 m]}}, child: cart}}}}
structures:
  frame: {{on: base, nodes: [slide, [0.2 m, 0, 1 m]], {files}}}
damping: {{ratios: [0.01, 0.02]}}
platform: {{body: cart, independent: [slide]}}
"""


def frame_matrices() -> tuple[np.ndarray, np.ndarray]:
    """K and M of two nodes and one internal mode."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 13, 13))
    return a @ a.T * 1e6, b @ b.T


def frame(folder: Path, files: str) -> Mechanism:
    path = folder / "frame.yaml"
    path.write_text(FRAME.format(files=files), encoding="utf-8")
    return tl.load(str(path))


def test_frame_of_another_program_is_read_from_both_kinds_of_files(tmp_path: Path) -> None:
    K, M = frame_matrices()
    np.savez(tmp_path / "frame.npz", K=K, M=M)
    np.savetxt(tmp_path / "K.csv", K, delimiter=",", fmt="%.17g")
    np.savetxt(tmp_path / "M.csv", M, delimiter=",", fmt="%.17g")
    first = frame(tmp_path, "file: frame.npz")
    second = frame(tmp_path, "stiffness: K.csv, mass: M.csv")
    for machine in (first, second):
        (structure,) = machine.structures
        assert structure.body == "base"
        assert structure.interfaces == ("slide", "")
        assert [[machine.value(x) for x in node] for node in structure.nodes] == [
            [0, 0, 1],
            [0.2, 0, 1],
        ]
        np.testing.assert_allclose(structure.stiffness.array, K, rtol=1e-12)
        assert structure.mass is not None
        np.testing.assert_allclose(structure.mass.array, M, rtol=1e-12, atol=1e-14)
        assert machine.damping is not None
        assert [machine.value(x) for x in machine.damping.ratios] == [0.01, 0.02]
    stiffness_only = frame(tmp_path, "stiffness: K.csv")
    assert stiffness_only.structures[0].mass is None


class Harmful:
    """An object whose unpickling would run code."""

    def __reduce__(self):
        raise AssertionError("this file must not be unpickled")


def test_harmful_and_damaged_matrices_are_refused(tmp_path: Path) -> None:
    K, M = frame_matrices()
    turned = K.copy()
    turned[0, 1] *= 1.5
    with_nan = K.copy()
    with_nan[3, 3] = np.nan
    wrong = {
        "not symmetric": {"K": turned},
        "negative eigenvalue": {"K": -K},
        "11 rows; 2 nodes need at least 12": {"K": K[:11, :11]},
        "not a square matrix": {"K": K[:, :12]},
        "not finite": {"K": with_nan},
        "has no array K": {"stiffness": K},
        "M has 12 rows, but K has 13": {"K": K, "M": M[:12, :12]},
    }
    for message, arrays in wrong.items():
        np.savez(tmp_path / "frame.npz", **arrays)
        with pytest.raises(DescriptionError, match=message):
            frame(tmp_path, "file: frame.npz")
    np.savez(tmp_path / "frame.npz", K=np.array([[None]], dtype=object))
    with pytest.raises(DescriptionError, match="cannot be read as a NumPy file"):
        frame(tmp_path, "file: frame.npz")
    (tmp_path / "frame.npz").write_bytes(b"PK no archive")
    with pytest.raises(DescriptionError, match="is not a NumPy file"):
        frame(tmp_path, "file: frame.npz")
    (tmp_path / "K.csv").write_text("1, 2\nthree, 4\n", encoding="utf-8")
    with pytest.raises(DescriptionError, match="cannot be read as a CSV matrix"):
        frame(tmp_path, "stiffness: K.csv")
    with pytest.raises(DescriptionError, match="there is no such file"):
        frame(tmp_path, "file: other.npz")
    with pytest.raises(DescriptionError, match=r"in one \.npz file or in CSV files"):
        frame(tmp_path, "mass: M.csv")


@pytest.mark.parametrize(
    "machine",
    [
        pytest.param(
            lambda: bench(
                f"""
                length: 1 m
                model: slender
                {LINK}
                segments: [{{length: 0.2 m, {BAR}}}, {{{TUBE}}}, {{length: 0.1 m, {BAR}}}]
                fittings: {{end: 2.11 kg}}
                contact: {{start: 200 N/um}}
                """.replace("4.22", "3.0")
            ),
            id="stepped",
        ),
        pytest.param(
            lambda: bench(
                f"length: 1 m\nmodel: slender\ntaper: {{start: {{{TUBE}}}, end: {{{TUBE}}}}}"
            ),
            id="taper of equal ends",
        ),
        pytest.param(
            lambda: bench(
                "telescopic: {reference: 0.8 m}\nmodel: slender\n"
                f"lower: {{length: 0.5 m, {TUBE}, mass: 3 kg, center: 0.2 m, distributed: yes}}\n"
                f"upper: {{length: 0.6 m, {BAR}}}"
            ),
            id="telescopic",
        ),
        pytest.param(
            lambda: bench(
                "length: 1 m\nmodel: full\nfirst_axis: [1, 0, 0]\nspin: none\n"
                "section: {EA: 30 MN, EI: 9 kN m^2, GJ: 2 kN m^2, mass_per_length: 1.2 kg/m, expansion: -1e-6 1/K}"
            ),
            id="composite",
        ),
        pytest.param(
            lambda: body_machine(
                "beams: {b: {from: pin, to: [reach, 0, 1 m], z_axis: [1, 2, 0], "
                f"{FLAT}, fittings: {{start: 1 kg}}}}}}"
            ),
            id="beam",
        ),
        pytest.param(
            lambda: body_machine(
                f"mass: 5 kg, distributed: yes, beams: {{b: {{from: pin, to: [0, 0, 1 m], {STEEL_TUBE}}}}}"
            ),
            id="beam with a stated mass",
        ),
        pytest.param(
            lambda: joint_machine("stiffness: {x: 200 N/um, rx: 50 kN m/rad}"), id="carriage"
        ),
        pytest.param(lambda: joint_machine("compliance: {x: 0.01 um/N}"), id="compliance"),
        pytest.param(
            lambda: joint_machine(f"stiffness: {matrix_text(carriage_matrix())}"), id="matrix"
        ),
    ],
)
def test_written_files_keep_elastic_data(machine: Callable[[], Mechanism]) -> None:
    original = machine()
    again = tl.loads(tl.dumps(original))
    assert set(again.parameters) == set(original.parameters)
    for part in ("bodies", "joints", "rods", "materials", "damping", "structures", "actuators"):
        assert getattr(again, part) == getattr(original, part), part


def test_written_files_keep_structures_and_drives(tmp_path: Path) -> None:
    K, M = frame_matrices()
    np.savez(tmp_path / "frame.npz", K=K, M=M)
    original = frame(tmp_path, "file: frame.npz")
    again = tl.loads(tl.dumps(original))
    assert again.structures == original.structures
    assert again.damping == original.damping
    text = (
        DRIVE[: DRIVE.index("    drive:")]
        + "    stiffness: 20 N/um\nplatform: {body: cart, independent: [slide]}"
    )
    driven = read_machine(text, "drive.yaml")
    stiffness = drive_stiffness(tl.loads(tl.dumps(driven)).actuators[0])
    assert stiffness is not None
    assert driven.value(stiffness) == pytest.approx(20e6, rel=ROUNDING)


def test_changed_value_of_a_named_material_is_written(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    rod = (
        "    length: 1 m\n    model: slender\n    tube: {outer: 50 mm, wall: 3 mm, material: steel}"
    )
    path.write_text(SLIDER.format(rod=rod), encoding="utf-8")
    machine = tl.load(str(path)).with_values({"steel.density": "8000 kg/m^3"})
    copy = tmp_path / "copy.yaml"
    write_yaml(machine, copy)
    assert slender(tl.load(str(copy)))[0] == pytest.approx(slender(machine)[0], rel=ROUNDING)


def test_page_has_the_values_of_the_table_of_materials() -> None:
    page = (ROOT / "docs" / "machine-file.md").read_text(encoding="utf-8")
    for name, (material, parameters) in material_table().items():
        values = {p.name: p.value for p in parameters}
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        shown = [float(cell) for cell in row.split("|")[2:-1]]
        assert material.expansion is not None
        assert material.strength is not None
        expected = [
            evaluate(material.young_modulus, values) / 1e9,
            evaluate(material.shear_modulus, values) / 1e9,
            evaluate(material.density, values),
            evaluate(material.expansion, values) * 1e6,
            evaluate(material.strength, values) / 1e6,
        ]
        np.testing.assert_allclose(shown, expected, rtol=5e-3)


def test_example_with_tubes_has_the_geometry_of_the_shipped_machine() -> None:
    example = tl.load(str(ROOT / "examples" / "elastic" / "gantry_tau.yaml"))
    shipped = tl.load("gantry_tau_6link")
    geometry = {p.name: p.value for p in shipped.parameters if p.group == "geometry"}
    assert len(geometry) > 40
    assert {name: example.parameters[name].value for name in geometry} == geometry
    # prototypes' references: 1.50 kg a rod, 20 N/um of drives
    masses = [mass.mass for mass in element_masses(example)]
    assert masses[:5] == pytest.approx([1.4950054] * 5, rel=1e-7)
    stiffness = [drive_stiffness(actuator) for actuator in example.actuators]
    assert [example.value(k) for k in stiffness if k is not None] == [20e6] * 3
    beam = example.rod("pair1.link").lower_beam
    assert beam is not None
    properties = beam.segments[0].start.properties
    # Euler's load of the pinned tube, 54 302.31 N
    load = math.pi**2 * example.value(properties.bending_stiffness[0]) / 1.25**2
    assert load == pytest.approx(54302.31, abs=0.005)


def test_example_of_a_four_bar_is_at_its_reference_pose() -> None:
    example = tl.load(str(ROOT / "examples" / "elastic" / "four_bar.yaml"))
    inspection = tl.check(example)
    assert inspection.is_usable
    crank = example.body("crank").beams[0].beam.segments[0].start.properties
    # in the plane the bar bends over its thickness of 8 mm, about the section's z axis
    assert example.value(crank.bending_stiffness[1]) == pytest.approx(210e9 * 0.03 * 0.008**3 / 12)
    assert [row["element"] for row in inspection.mass_rows or ()] == ["crank", "coupler", "rocker"]


@pytest.mark.parametrize("write", [to_urdf, to_sdf, to_mjcf])
def test_rigid_formats_note_what_they_lack(write: Callable[[Mechanism], Any]) -> None:
    """One note for all elastic data; the side file does not carry the stiffness of a drive either."""
    elastic = bench(f"length: 0.8 m\nmodel: slender\n{TUBE}")
    elastic = replace(elastic, actuators=(replace(elastic.actuators[0], stiffness=Constant(1e6)),))
    written = write(elastic)
    notes = [note for note in written.notes if note.startswith("elastic data")]
    assert len(notes) == 1
    assert "are not written" in notes[0]
    assert "stiffness" not in getattr(written, "side", "")
    rigid = write(tl.load("five_bar"))
    assert not any(note.startswith("elastic data") for note in rigid.notes)


def test_an_open_mass_is_a_note_of_check_and_not_a_problem() -> None:
    machine = bench(f"length: 1 m\nmodel: slender\n{LINK}\n{TUBE}")
    inspection = tl.check(machine)
    assert inspection.is_usable
    assert any("where the remaining 3.024 kg are located" in note.what for note in inspection.notes)
    (row,) = inspection.mass_rows or ()
    assert (row["mass"], row["unplaced"]) == (4.22, pytest.approx(3.023996, rel=1e-6))


@pytest.mark.parametrize("mass", [0.5, 1.1, 4.0])
def test_identified_mass_that_contradicts_the_section_can_be_written(mass: float) -> None:
    """An identified mass may be below that of the section; the written file marks it unchecked."""
    machine = bench(f"length: 1 m\nmodel: slender\n{LINK}\n{TUBE}\nfittings: {{end: 3.024 kg}}")
    identified = machine.with_values({"rod.link.mass": mass})
    again = tl.loads(tl.dumps(identified))
    assert again.rods == identified.rods
    assert "unchecked: yes" in tl.dumps(identified)
    assert "unchecked" not in tl.dumps(machine)


SECTIONS = (
    TUBE,
    BAR,
    "rectangle: {width: 21 mm, height: 33 mm, material: alloy}",
    "box: {width: 40 mm, height: 60 mm, wall: 2 mm, material: alloy}",
    f"taper: {{start: {{{TUBE}}}, end: {{tube: {{outer: 30 mm, wall: 2 mm, material: alloy}}}}}}",
)


@pytest.mark.parametrize("keys", SECTIONS, ids=lambda keys: keys.partition(":")[0])
def test_symbols_and_numbers_agree_with_derivatives_at_random_parameters(keys: str) -> None:
    """Stiffness and mass by CasADi's symbols; their derivatives against central differences."""
    machine = bench(f"length: 1 m\nmodel: full\nfirst_axis: [1, 0, 0]\nspin: none\n{keys}")
    rod = machine.rod("rod")
    assert rod.lower_beam is not None
    assert rod.lower is not None
    p = rod.lower_beam.segments[0].section(0.3).properties
    assert p.shear_stiffness is not None
    quantities = [
        p.axial_stiffness,
        *p.bending_stiffness,
        p.torsional_stiffness,
        *p.shear_stiffness,
    ]
    quantities += [p.mass_per_length, *rod.lower.parameters]
    names = [q.name for q in machine.parameters if q.name.startswith(("rod.", "alloy."))]
    symbols = {name: ca.SX.sym(name) for name in names}
    values = Values(machine.parameters.values | symbols)
    f = ca.vertcat(*(values.scalar(quantity) for quantity in quantities))
    theta = ca.vertcat(*symbols.values())
    function = ca.Function("f", [theta], [f, ca.jacobian(f, theta)])
    rng = np.random.default_rng(5)
    nominal = np.array([machine.value(name) for name in names])
    point = nominal * rng.uniform(0.9, 1.1, len(nominal))

    def numbers(vector: np.ndarray) -> np.ndarray:
        other = machine.at_values(dict(zip(names, vector.tolist(), strict=True)))
        return np.array([other.value(quantity) for quantity in quantities])

    value, jacobian = (np.array(item) for item in function(point))
    np.testing.assert_allclose(value.ravel(), numbers(point), rtol=1e-13)
    step = 1e-5 * point
    for k, name in enumerate(names):
        shift = np.eye(len(names))[k] * step
        difference = numbers(point + shift) - numbers(point - shift)
        scale = np.abs(value.ravel()) / point[k] + 1e-300
        error = np.abs(difference / (2 * step[k]) - jacobian[:, k]) / scale
        # central differences of a relative step of 1e-5: their error is about 1e-9
        assert error.max() < 1e-7, name


def test_solid_taper_has_the_mass_of_a_frustum() -> None:
    thick, thin = 0.03, 0.011
    machine = bench(
        "length: 1 m\nmodel: slender\n"
        f"taper: {{start: {{round: {{diameter: {thick} m, material: alloy}}}}, "
        f"end: {{round: {{diameter: {thin} m, material: alloy}}}}}}"
    )
    mass = RHO * math.pi / 12 * (thick**2 + thick * thin + thin**2)
    assert slender(machine)[0] == pytest.approx(mass, rel=ROUNDING)


@pytest.mark.parametrize("name", ["gantry_tau", "four_bar"])
def test_examples_and_their_written_files_fit_the_schema(name: str) -> None:
    validator = jsonschema.Draft202012Validator(json_schema())
    path = ROOT / "examples" / "elastic" / f"{name}.yaml"
    for text in (path.read_text(encoding="utf-8"), tl.dumps(tl.load(str(path)))):
        validator.validate(plain(parse_nodes(text, path.name)))
    assert not validator.is_valid({"materials": {"alloy": {"young_modulus": "1 GPa"}}})


def test_new_values_keep_the_wall_within_its_section() -> None:
    text = Path(__file__).parents[2] / "examples/elastic/gantry_tau.yaml"
    free = text.read_text(encoding="utf-8")
    for bounds in re.findall(r", bounds: \[[^]]*\]", free):
        free = free.replace(bounds, "")
    machine = tl.loads(free)
    assert machine.with_values(tube_wall="25 mm").value(Leaf("tube_wall")) == 0.025
    with pytest.raises(InputError, match=r"triple1\.link: the wall of its section is too thick"):
        machine.with_values(tube_wall="26 mm")
    with pytest.raises(InputError, match="30 mm > 25 mm"):
        machine.with_values({"tube_wall": 0.03})
