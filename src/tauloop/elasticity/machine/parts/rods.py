"""Conversion of rods and cables to elements, springs, masses and rigid links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tauloop.common.errors import InputError
from tauloop.elasticity.frame.beams import Array, Matrices
from tauloop.elasticity.frame.reduction import BALL
from tauloop.elasticity.frame.structure import Attachment, RigidLink, beam_axes, beam_element
from tauloop.elasticity.machine.beams import NumericBeam
from tauloop.elasticity.machine.parts.axial_springs import (
    in_series,
    rigid_fractions,
    softened_rod,
    spring_compliances,
)
from tauloop.elasticity.machine.parts.collected import (
    StructureParts,
    transverse_direction,
    with_fittings,
)
from tauloop.elasticity.machine.parts.rigid_rods import (
    add_axial_spring,
    add_rigid_mass,
    add_rotor_mass,
)
from tauloop.elasticity.machine.parts.telescoped import part_mass, telescopic_beam
from tauloop.elasticity.machine.telescopic_rods import PartMass, TelescopicRod
from tauloop.elasticity.static_analysis.gradients import ElasticLaw
from tauloop.elasticity.vibrations.servo_drives import RodLength
from tauloop.mechanism.elastic.beams import Beam
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.expression import Expression
from tauloop.mechanism.model import Inertia, Rod, SlenderPart


def insert_rotor(parts: StructureParts, name: str) -> None:
    """Insert a rotor between the two parts of a telescopic rod, in series with its spring.

    Args:
        parts: the structure under construction, which already contains the rod and its rotor.
        name: name of the rod.
    """
    index = [element.name for element in parts.elements].index(name)
    element = parts.elements[index]
    rotor = Attachment(body=parts.rotors[name], point=np.zeros(3), axes=np.eye(3), freedoms=(0,))
    size = element.matrices.stiffness.shape[-1]
    # Matrices from the coordinates with the rotor to those without it: `without_rotor` drops the
    # rotor's coordinate, `relative` subtracts it from the displacement of end B.
    without_rotor = np.delete(np.eye(size + 1), element.external, axis=0)
    relative = without_rotor.copy()
    relative[len(element.attachments[0].freedoms), element.external] = -1.0
    matrices = Matrices(
        stiffness=relative.T @ element.matrices.stiffness @ relative,
        mass=without_rotor.T @ element.matrices.mass @ without_rotor,
        geometric=without_rotor.T @ element.matrices.geometric @ without_rotor,
    )
    attachments = (*element.attachments, rotor)
    parts.elements[index] = replace(element, attachments=attachments, matrices=matrices)
    if name in parts.telescopes:
        parts.telescopes[name] = replace(parts.telescopes[name], has_rotor=True)


def add_rod(
    parts: StructureParts,
    rod: Rod,
    springs: Mapping[str, float],
    inertias: Mapping[str, float],
    locked: set[str],
) -> None:
    """Add a rod or cable to the structure.

    Args:
        parts: the structure under construction.
        rod: the rod of the machine.
        springs: stiffness of single coordinates, by name.
        inertias: inertia of single coordinates, by name.
        locked: names of the coordinates that rigid motors hold.
    """
    start, end = parts.attachment(rod.start, rod.name), parts.attachment(rod.end, rod.name)
    is_driven = rod.telescope is not None and rod.name not in locked
    spring = springs.get(rod.name) if is_driven else None
    if is_driven and spring is None:
        # The length is free, so the rod has mass but no stiffness.
        add_rigid_mass(parts, rod, start, end, (0.0, 1.0))
        parts.lengths[rod.name] = RodLength(bodies=(start[0], end[0]), points=(start[1], end[1]))
        add_rotor_mass(parts, rod.name, start, end, inertias.get(rod.name, 0.0))
        return
    if rod.tension is not None and rod.tension.stiffness is not None:
        parts.elastic.append(rod.name)
        stiffness = in_series([parts.mechanism.value(rod.tension.stiffness), spring])
        add_axial_spring(parts, rod, start, end, stiffness)
        springs_in_line = _non_rigid(rod.tension.stiffness, parts.spring_laws.get(rod.name))
        parts.laws.append(ElasticLaw(item=rod.name, springs=springs_in_line))
        return
    contacts = [None if item is None else parts.mechanism.value(item) for item in rod.contact]
    drive = parts.spring_laws.get(rod.name) if is_driven else None
    beams = tuple(beam for beam in (rod.lower_beam, rod.upper_beam) if beam is not None)
    law = ElasticLaw(item=rod.name, beams=beams, springs=_non_rigid(drive, *rod.contact))
    if rod.lower_beam is None:
        stiffness = in_series([spring, *contacts])
        add_rigid_mass(parts, rod, start, end, rigid_fractions(contacts, spring))
        if stiffness is None:
            points = (start[1], end[1])
            bodies = (start[0], end[0])
            parts.links.append(RigidLink(name=f"{rod.name}.length", bodies=bodies, points=points))
        else:
            add_axial_spring(parts, rod, start, end, stiffness)
            parts.laws.append(law)
        return
    _add_elastic_rod(parts, rod, start, end, contacts, spring)
    parts.laws.append(law)


def _require_outer_fittings(name: str, lower: NumericBeam, upper: NumericBeam) -> None:
    """Reject fittings at the inner ends of a telescopic rod's parts.

    Raises:
        InputError: a part has such a fitting, which the elastic model does not support.
    """
    for part, numbers in (("lower", lower), ("upper", upper)):
        if numbers.fittings[1] > 0.0:
            mass = numbers.fittings[1]
            raise InputError.of(
                f"rods.{name}.{part}.fittings",
                f"a mass ({mass:.4g} kg) at the inner end of a telescopic part is not supported",
                "add this mass to the fitting at `start`, or spread it with `distributed: yes`",
            )


def _add_elastic_rod(
    parts: StructureParts,
    rod: Rod,
    start: tuple[str, Array],
    end: tuple[str, Array],
    contacts: list[float | None],
    drive: float | None,
) -> None:
    """Add a rod with beam sections and springs in series along its axis.

    Args:
        parts: the structure under construction.
        rod: the rod of the machine.
        start, end: bodies or nodes that carry the ends, and positions (N, 3) of the ends.
        contacts: stiffness of the contacts at both ends; None for a rigid contact.
        drive: stiffness of the drive between the parts; None if it is rigid.
    """
    parts.elastic.append(rod.name)
    lower = rod.lower_beam
    assert lower is not None
    spread = lower.is_distributed
    numbers = parts.numeric_beam(
        rod.name, lower, _rod_mass(parts, rod.name, rod.lower, lower, spread)
    )
    lengths = numbers.lengths
    fittings = numbers.fittings
    upper_pieces = None
    part_masses: tuple[PartMass, ...] = ()
    if rod.upper_beam is not None:
        upper_beam = rod.upper_beam
        name = f"{rod.name}.upper"
        stated = _rod_mass(parts, name, rod.upper, upper_beam, upper_beam.is_distributed)
        upper = parts.numeric_beam(name, upper_beam, stated)
        _require_outer_fittings(rod.name, numbers, upper)
        part_masses = tuple(part_mass(part) for part in (numbers, upper))
        distance = np.linalg.norm(end[1] - start[1], axis=-1)
        masses = np.array([float(np.ravel(part.properties.mass)[0]) for part in (numbers, upper)])
        numbers, lengths = telescopic_beam(rod.name, numbers, upper, distance)
        upper_pieces = lengths, np.array([0.0, masses[1] / masses.sum(), 1.0])
        fittings = (fittings[0], upper.fittings[0])
    elif rod.telescope is not None:
        what = "the part at end B has no section"
        raise InputError.of(f"rods.{rod.name}", what, "give `upper` a section, as for `lower`")
    beam_without_springs = parts.reduced_beam(numbers, lengths, (BALL, BALL))
    compliances = spring_compliances(contacts, drive)
    reduced_rod = softened_rod(beam_without_springs, compliances, upper_pieces)
    z_direction = _section_z_direction(parts, rod, start[1], end[1])
    axes = beam_axes(start[1], end[1], z_direction)
    element = beam_element(rod.name, reduced_rod, start, end, axes)
    if not parts.options.has_rod_modes:
        end_matrices = reduced_rod.matrices.part(tuple(range(element.external)))
        element = replace(element, matrices=end_matrices)
    parts.add_element(with_fittings(element, fittings), numbers)
    if part_masses:
        parts.telescopes[rod.name] = TelescopicRod(
            bodies=(start[0], end[0]),
            ends=(start[1], end[1]),
            axes=axes,
            lower=part_masses[0],
            upper=part_masses[1],
            beam=reduced_rod,
            compliances=compliances,
        )


def _rod_mass(
    parts: StructureParts, name: str, part: SlenderPart | Inertia | None, beam: Beam, spread: bool
) -> ElementMass:
    """Add and return the specified mass of a rod, or of a part of a telescopic rod."""
    mass: Expression | None = None if part is None else part.mass
    stated = parts.stated_mass(name, mass, [beam], spread)
    parts.masses.append(stated)
    return stated


def _section_z_direction(parts: StructureParts, rod: Rod, start: Array, end: Array) -> Array:
    """Return the direction (N, 3) of the z axis of a rod's section.

    It follows from the hinge axis at the start. Without a hinge axis, the direction is arbitrary.
    """
    direction = end - start
    if rod.first_axis is not None:
        local = np.array([parts.mechanism.value(x) for x in rod.first_axis])
        hinge = parts.body_pose(rod.start.body).rotation @ local
        return np.cross(hinge, direction)
    return transverse_direction(direction)


def _non_rigid(*springs: Expression | None) -> tuple[Expression, ...]:
    """Return the springs without the rigid ones (None)."""
    return tuple(spring for spring in springs if spring is not None)
