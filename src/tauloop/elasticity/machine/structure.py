"""The elastic structure of a machine at N poses, from the elastic data of its file.

A body with beams becomes nodes at the ends of the beams. Joints and rods are attached to the
nearest node by a rigid offset. A rod between ball joints carries tension and bends under its own
inertia; its spin is locked. Bodies, rods and joints without elastic data are rigid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import Structure
from tauloop.elasticity.machine.beams import SectionStrength
from tauloop.elasticity.machine.parts.bodies import add_body, add_reduced
from tauloop.elasticity.machine.parts.collected import StructureParts
from tauloop.elasticity.machine.parts.connections import add_combinations, add_joint
from tauloop.elasticity.machine.parts.drives import motor_coordinates
from tauloop.elasticity.machine.parts.rods import add_rod, insert_rotor
from tauloop.elasticity.machine.structure_options import StructureOptions as StructureOptions
from tauloop.elasticity.machine.telescopic_rods import TelescopicRod
from tauloop.elasticity.static_analysis.gradients import ElasticLaw
from tauloop.elasticity.vibrations.servo_drives import RodLength, ServoDrive, Terms
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.model import BASE
from tauloop.model import Model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineStructure:
    """The structure of a machine at N poses.

    Attributes:
        structure: bodies, joints and elements.
        tool_body: body or node that carries the tool.
        tool_point: (N, 3) tool center point in the base frame, m.
        tool_axes: (N, 3, 3) axes of the tool's frame as columns.
        strengths: section data for stresses in beams, by the names of elements.
        masses: masses of elastic links as specified in the file.
        notes: assumptions about this machine.
        elastic_names: rods, bodies, joints and actuators that have elastic data.
        massless: finite-element models without a mass matrix.
        laws: expressions of the stiffness of elastic items.
        drives: controlled motors; empty if motors are held or free.
        lengths: telescopic rods without elastic parts whose length a drive moves, by name.
        reduced: names of finite-element models, by the body that they describe.
        carried_by: body of the machine to which each body or node of the structure belongs, by name.
        rotors: motion of each added rotor as a linear combination of the coordinates of the
            undeformed machine, by name.
        telescopes: telescopic rods, by the name of the element that has their mass.
    """

    structure: Structure
    tool_body: str
    tool_point: Array
    tool_axes: Array
    strengths: Mapping[str, SectionStrength] = field(repr=False)
    masses: tuple[ElementMass, ...]
    notes: tuple[str, ...]
    elastic_names: tuple[str, ...]
    massless: tuple[str, ...]
    laws: tuple[ElasticLaw, ...] = field(repr=False)
    carried_by: Mapping[str, str] = field(repr=False)
    drives: tuple[ServoDrive, ...] = ()
    lengths: Mapping[str, RodLength] = field(default_factory=dict, repr=False)
    reduced: Mapping[str, str] = field(default_factory=dict, repr=False)
    rotors: Mapping[str, Terms] = field(default_factory=dict, repr=False)
    telescopes: Mapping[str, TelescopicRod] = field(default_factory=dict, repr=False)


def machine_structure(
    model: Model, q: Array, options: StructureOptions | None = None
) -> MachineStructure:
    """Return the structure of a machine at coordinates (N, n_q).

    Raises:
        InputError: parts of the machine are not supported in an elastic analysis; the error lists
            all of them.
    """
    parts = StructureParts(model, np.atleast_2d(q), options or StructureOptions())
    InputError.raise_if_any(_unsupported(parts))
    return _assembled_parts(parts)


def _unsupported(parts: StructureParts) -> Iterator[Problem]:
    """Yield a problem for each part of the machine that an elastic analysis does not support."""
    mechanism = parts.mechanism
    rods = {rod.name for rod in mechanism.rods}
    for rod in mechanism.rods:
        if rod.drum is not None:
            remedy = "describe the line as a straight cable with a stiffness"
            yield Problem(f"rods.{rod.name}", "elastic analysis does not support a drum", remedy)
        elif rod.tension is not None and rod.tension.stiffness is None:
            remedy = "give `tension` a `stiffness`"
            yield Problem(f"rods.{rod.name}", "this cable has no stiffness", remedy)
    combined = [(f"couplings.{item.name}", item.coordinates) for item in mechanism.couplings]
    for actuator in mechanism.actuators:
        names = tuple(name for name, _ in actuator.drives)
        if len(names) > 1:
            combined.append((f"actuators.{actuator.name}", names))
    for where, names in combined:
        for name in rods.intersection(names):
            what = f"combines the length of the telescopic rod {name!r} with other coordinates"
            yield Problem(where, what, "give the rod its own actuator")


def _assembled_parts(parts: StructureParts) -> MachineStructure:
    """Return the structure, after adding bodies, joints, rods and motors in this order."""
    mechanism = parts.mechanism
    reduced = {item.body: item for item in mechanism.structures}
    for item in mechanism.structures:
        add_reduced(parts, item)
    for body in mechanism.bodies:
        if body.name != BASE and body.name not in reduced:
            add_body(parts, body)
    springs, inertias, locked = motor_coordinates(parts)
    for joint in mechanism.joints:
        add_joint(parts, joint, springs, inertias, locked)
    for rod in mechanism.rods:
        add_rod(parts, rod, springs, inertias, locked)
        if rod.name in parts.rotors:
            insert_rotor(parts, rod.name)
    add_combinations(parts, locked)
    parts.bodies += parts.servo.bodies
    parts.joints += parts.servo.joints
    parts.combinations += parts.servo.combinations
    parts.notes += parts.servo.notes
    platform = mechanism.platform
    tool_body, tool_point = parts.attachment(platform.tool, "the tool")
    carried_by = {item.name: item.name for item in parts.bodies}
    for name, nodes in parts.nodes.items():
        carried_by |= {node: name for node, _ in nodes}
    return MachineStructure(
        structure=Structure(
            bodies=tuple(parts.bodies),
            joints=tuple(parts.joints),
            elements=tuple(parts.elements),
            links=tuple(parts.links),
            combinations=tuple(parts.combinations),
            length=parts.length,
        ),
        tool_body=tool_body,
        tool_point=tool_point,
        tool_axes=parts.frame(platform.tool).rotation,
        strengths=parts.strengths,
        masses=tuple(parts.masses),
        notes=tuple(parts.notes),
        elastic_names=tuple(parts.elastic),
        massless=tuple(parts.massless),
        laws=tuple(parts.laws),
        drives=tuple(parts.servo.drives),
        lengths=parts.lengths,
        reduced={body: item.name for body, item in reduced.items()},
        carried_by=carried_by,
        rotors=parts.servo.rotors,
        telescopes=parts.telescopes,
    )
