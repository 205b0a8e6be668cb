"""Elastic data of a machine as plain data of a machine file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tauloop.formats.writing.expression_writer import keys_of, number
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import Shape, Value
from tauloop.mechanism.description.elastic_grammar import CONTACT, DAMPING, MATERIAL, SECTION
from tauloop.mechanism.description.units import Dimension
from tauloop.mechanism.elastic.beams import DIRECTIONS, Beam, BeamSegment, BodyBeam, Compliance
from tauloop.mechanism.elastic.inertia import beams_inertia, link_inertia, mass_gap
from tauloop.mechanism.elastic.sections import SECTION_DIMENSIONS, Material, Section
from tauloop.mechanism.elastic.structures import ReducedStructure
from tauloop.mechanism.expression import Expression
from tauloop.mechanism.model import Body, Inertia, Mechanism, Rod, Vector

Text = Callable[[Expression, Dimension], str]


def machine_sections(mechanism: Mechanism, text: Text) -> dict[str, Any]:
    """Return the sections `materials`, `structures` and `damping` of a machine file."""
    sections: dict[str, Any] = {
        "materials": {item.name: _material(item, text) for item in mechanism.materials},
        "structures": {item.name: _structure(item, text) for item in mechanism.structures},
    }
    damping = mechanism.damping
    if damping is not None and damping.ratios:
        sections["damping"] = {"ratios": [text(ratio, units.ONE) for ratio in damping.ratios]}
    elif damping is not None:
        sections["damping"] = keys_of(DAMPING, damping, False, text)
    return sections


def follows_from_section(rod: Rod, *, is_upper: bool) -> bool:
    """Return whether the inertia of a rod or of one of its parts follows from its section."""
    part, beam = (rod.upper, rod.upper_beam) if is_upper else (rod.lower, rod.lower_beam)
    if part is None or beam is None:
        return False
    is_full = isinstance(part, Inertia)
    return part == link_inertia(beam, is_full=is_full, is_upper=is_upper)


def contradicts_beams(mechanism: Mechanism, mass: Expression, beams: Sequence[Beam]) -> bool:
    """Return whether a mass (for example identified) contradicts those of beams and fittings."""
    stated_mass = mechanism.value(mass)
    section_mass = sum(mechanism.value(beam.section_mass().mass) for beam in beams)
    beam_mass = sum(mechanism.value(beam.line_mass().mass) for beam in beams)
    has_fittings = any(beam.fittings is not None for beam in beams)
    return mass_gap(stated_mass, section_mass) < 0.0 or (
        has_fittings and mass_gap(stated_mass, beam_mass) != 0.0
    )


def body_follows_from_beams(body: Body) -> bool:
    """Return whether the inertia of a body follows from its beams."""
    return bool(body.beams) and body.inertia == beams_inertia(body.beams)


def beam_keys(beam: Beam, text: Text) -> dict[str, Any]:
    """Return the keys of a beam: section, fittings, and the location of the rest of its mass."""
    if len(beam.segments) == 1:
        keys = _section_keys(beam.segments[0], text)
    else:
        keys = {"segments": _segments(beam, text)}
    if beam.fittings is not None:
        start, end = beam.fittings
        fittings = {"start": text(start, units.MASS), "end": text(end, units.MASS)}
        keys["fittings"] = fittings
    if beam.is_distributed:
        keys["distributed"] = "yes"
    return keys


def part_keys(beam: Beam, text: Text) -> dict[str, Any]:
    """Return the keys of the beam of one part of a telescopic rod, with its length."""
    return {"length": text(beam.length, units.LENGTH)} | beam_keys(beam, text)


def body_beams(body: Body, text: Text) -> dict[str, Any]:
    """Return the beams of a body by name."""
    return {beam.name: _body_beam(beam, text) for beam in body.beams}


def contact_keys(rod: Rod, text: Text) -> dict[str, Any]:
    """Return the stiffnesses of the ball joints of a rod; empty if both are rigid."""
    start, end = rod.contact
    dimension = _dimension(CONTACT, "start")
    pairs = (("start", start), ("end", end))
    return {key: text(value, dimension) for key, value in pairs if value is not None}


def compliance_keys(compliance: Compliance, text: Text) -> dict[str, Any]:
    """Return the stiffness or compliance of a joint."""
    key = "stiffness" if compliance.is_stiffness else "compliance"
    rows = []
    for i, row in enumerate(compliance.matrix):
        dimensions = [compliance.dimension(i, j) for j in range(len(DIRECTIONS))]
        rows.append([text(value, d) for value, d in zip(row, dimensions, strict=True)])
    if compliance.is_stiffness or not compliance.is_diagonal:
        return {key: rows}
    return {key: {name: rows[i][i] for i, name in enumerate(DIRECTIONS) if rows[i][i] != "0"}}


def _dimension(shape: Shape, key: str) -> Dimension:
    """Return the dimension of a value of a shape."""
    field = shape.field(key)
    kind = field.kind if field is not None else None
    if not isinstance(kind, Value) or kind.linear is None:
        raise AssertionError(f"{key} of {shape.name} is not a value with one dimension")
    return kind.linear


def _material(material: Material, text: Text) -> dict[str, Any]:
    """Return the keys of a material."""
    return keys_of(MATERIAL, material, False, text)


def _section(section: Section, text: Text) -> dict[str, Any]:
    """Return the keys of a cross section, under the name of its kind."""
    field = SECTION.field(section.kind)
    if field is None or not isinstance(field.kind, Shape):
        raise AssertionError(f"{section.kind} is not a kind of section")
    keys = {
        key: text(value, _dimension(field.kind, key))
        for key, value in zip(SECTION_DIMENSIONS[section.kind], section.dimensions, strict=True)
    }
    if section.material is not None:
        keys["material"] = section.material.name
    if section.expansion is not None:
        keys["expansion"] = text(section.expansion, units.EXPANSION)
    return {section.kind: keys}


def _section_keys(segment: BeamSegment, text: Text) -> dict[str, Any]:
    """Return the section of a segment, or its sections at both ends if it is tapered."""
    if not segment.is_tapered:
        return _section(segment.start, text)
    return {"taper": {"start": _section(segment.start, text), "end": _section(segment.end, text)}}


def _segments(beam: Beam, text: Text) -> list[dict[str, Any]]:
    """Return the segments; the one that fills the rest of the beam has no length."""
    rows = []
    for i, segment in enumerate(beam.segments):
        length = {} if i == beam.rest else {"length": text(segment.length, units.LENGTH)}
        rows.append(length | _section_keys(segment, text))
    return rows


def _body_beam(beam: BodyBeam, text: Text) -> dict[str, Any]:
    """Return the keys of a beam of a body."""
    first, last = beam.interfaces
    keys: dict[str, Any] = {
        "from": _point(beam.start, first, text),
        "to": _point(beam.end, last, text),
    }
    if beam.z_axis is not None:
        keys["z_axis"] = [number(component) for component in beam.z_axis]
    return keys | beam_keys(beam.beam, text)


def _point(position: Vector, interface: str, text: Text) -> str | list[str]:
    """Return the name of an interface, or the coordinates of a point without a name."""
    if interface:
        return interface
    return [text(component, units.LENGTH) for component in position]


def _structure(structure: ReducedStructure, text: Text) -> dict[str, Any]:
    """Return the keys of a reduced finite-element model."""
    nodes = zip(structure.nodes, structure.interfaces, strict=True)
    keys: dict[str, Any] = {
        "on": structure.body,
        "nodes": [_point(position, interface, text) for position, interface in nodes],
    }
    files = [str(path) for path in structure.files]
    if files[0].endswith(".npz"):
        return keys | {"file": files[0]}
    return keys | dict(zip(("stiffness", "mass"), files, strict=False))
