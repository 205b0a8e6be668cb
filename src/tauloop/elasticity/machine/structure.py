"""The elastic structure of a machine at N poses, from the elastic data of its file.

A body with beams becomes nodes at their ends; joints and rods are attached to the nearest node by a
rigid offset. A rod between ball ends carries tension and its own bending; its spin is locked. Bodies,
rods and joints without elastic data are rigid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

import numpy as np

from tauloop.common.errors import InputError, Problem
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import (
    NODE_FREEDOMS,
    Array,
    BeamMotion,
    BeamProperties,
    Matrices,
)
from tauloop.elasticity.frame.reduction import BALL, ReducedBeam
from tauloop.elasticity.frame.structure import (
    Attachment,
    ElasticJoint,
    Element,
    MotionCombination,
    RigidBody,
    RigidLink,
    Structure,
    beam_axes,
    beam_element,
    in_local_axes,
    spatial_inertia,
    transport,
)
from tauloop.elasticity.machine.beams import (
    NumericBeam,
    SectionStrength,
    numeric_beam,
    stated_mass,
)
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.joints import elastic_directions, elastic_joint, free_twists
from tauloop.elasticity.machine.telescopic_rods import (
    PartMass,
    RodRotor,
    TelescopicRod,
    equivalent_mass,
    spread_mass,
    stretch_field,
)
from tauloop.elasticity.static_analysis.gradients import ElasticLaw, is_diagonal
from tauloop.elasticity.vibrations.servo_control import ServoLaw
from tauloop.elasticity.vibrations.servo_drives import (
    RodLength,
    ServoDrive,
    ServoParts,
    Terms,
    load_inertia,
)
from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.mechanism.elastic.beams import Beam, BodyBeam
from tauloop.mechanism.elastic.drives import drive_stiffness
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.elastic.structures import ReducedStructure
from tauloop.mechanism.expression import ZERO, Expression, add, multiply
from tauloop.mechanism.model import (
    BASE,
    MOMENT_ENTRIES,
    PLATFORM_JOINT,
    Actuator,
    Body,
    Inertia,
    Joint,
    Mechanism,
    Placement,
    Rod,
    SlenderPart,
)
from tauloop.mechanism.poses import FramePose
from tauloop.model import Model

#: Points of a body closer than this, in characteristic lengths, are one node.
SAME_NODE = 1e-6
#: Largest cosine of the angle between a rod and the direction that defines its section's axes.
MAX_COSINE = 0.9
#: Freedoms of the end of a rigid rod: translations.
_TRANSLATIONS = (0, 1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureOptions:
    """How a machine becomes a structure.

    Attributes:
        are_motors_held: whether motors are held, by the stiffness of their drives or rigidly; else
            they are free.
        modes: modes of each link and bending plane; None for all below `below`, at least one.
        below: frequency, Hz.
        has_shear: whether beams have shear and rotary inertia (Timoshenko).
        has_rod_modes: whether modes of rods with ball ends are coordinates. Such a rod bends by
            itself: neither stiffness nor axial force couples its modes with its ends.
        laws: laws of controlled motors by actuator; None for motors that are held or free.
    """

    are_motors_held: bool = True
    modes: int | None = 0
    below: float = 0.0
    has_shear: bool = False
    has_rod_modes: bool = True
    laws: Mapping[str, ServoLaw] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MachineStructure:
    """The structure of a machine at N poses.

    Attributes:
        structure: bodies, joints and elements.
        tool_body: body or node that carries the tool.
        tool_point: (N, 3) tool center point in the base frame, m.
        tool_axes: (N, 3, 3) axes of the tool's frame as columns.
        strengths: section data for stresses in beams, by the names of elements.
        masses: stated masses of elastic links.
        notes: assumptions about this machine.
        elastic_names: rods, bodies, joints and actuators that have elastic data.
        massless: finite-element models without a mass matrix.
        laws: expressions of the stiffness of elastic items.
        drives: controlled motors; none where they are held or free.
        lengths: telescopic rods without elastic parts, whose length a drive moves.
        reduced: names of finite-element models by the bodies that they describe.
        carried_by: body of the machine to which each body or node of the structure belongs.
        rotors: how rotors that drives add move with the coordinates of the undeformed machine.
        telescopes: telescopic rods by the names of the elements that have their masses.
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
        InputError: a part of the machine has no elastic counterpart; all of them.
    """
    builder = _StructureBuilder(model, np.atleast_2d(q), options or StructureOptions())
    InputError.raise_if_any(builder.unsupported())
    return builder.build()


class _StructureBuilder:
    """Collects the parts of a structure."""

    def __init__(self, model: Model, q: Array, options: StructureOptions) -> None:
        """Place all bodies."""
        self.model, self.options = model, options
        self.mechanism: Mechanism = model.mechanism
        self.constants = machine_constants(model)
        self.geometry: MachineGeometry = self.constants.shape.at(q)
        self.length = float(self.geometry.shape.length)
        self.samples = len(q)
        self.bodies: list[RigidBody] = []
        self.joints: list[ElasticJoint] = []
        self.elements: list[Element] = []
        self.links: list[RigidLink] = []
        self.combinations: list[MotionCombination] = []
        self.strengths: dict[str, SectionStrength] = {}
        self.masses: list[ElementMass] = []
        self.notes: list[str] = []
        self.elastic: list[str] = []
        #: Actuators that alone hold a coordinate by the stiffness of their drive, by its name.
        self.drives: dict[str, str] = {}
        self.massless: list[str] = []
        self.laws: list[ElasticLaw] = []
        #: Stiffness of motors and springs by the names of coordinates.
        self.spring_laws: dict[str, Expression] = {}
        #: Nodes of bodies with beams: body, name of the node, point in body coordinates.
        self.nodes: dict[str, list[tuple[str, Array]]] = {}
        #: Controlled motors, the bodies that they move inside of rods, and lengths of rigid rods.
        self.servo = ServoParts(self.mechanism, self.options.laws or {})
        self.rotors: dict[str, str] = {}
        self.lengths: dict[str, RodLength] = {}
        self.telescopes: dict[str, TelescopicRod] = {}

    # Frames

    def body_pose(self, name: str) -> FramePose:
        """Return the pose of a body at N poses."""
        index = self.geometry.shape.index[name]
        return FramePose(self.geometry.rotations[:, index], self.geometry.origins[:, index])

    def frame(self, placement: Placement) -> FramePose:
        """Return the pose of a placed frame at N poses."""
        return self.body_pose(placement.body) @ self.constants.frame(placement)

    def carrier(self, name: str, point: Array, item: str) -> str:
        """Return the body or node to which a point (3,) of a body is attached.

        Args:
            name: the body.
            point: (3,) in body coordinates.
            item: name of what is attached, for notes.
        """
        nodes = self.nodes.get(name)
        if nodes is None:
            return name
        distances = [float(np.linalg.norm(point - place)) for _, place in nodes]
        nearest = int(np.argmin(distances))
        if distances[nearest] > SAME_NODE * self.length:
            offset = 1000.0 * distances[nearest]
            self.notes.append(
                f"{item} is attached to {nodes[nearest][0]} by a rigid offset of {offset:.4g} mm"
            )
        return nodes[nearest][0]

    def placed(self, placement: Placement, item: str) -> tuple[str, Array]:
        """Return the body or node that carries a placed frame, and the frame's origin (N, 3)."""
        local = self.constants.frame(placement).position
        body = self.carrier(placement.body, np.asarray(local), item)
        return body, self.frame(placement).position

    # Refusals

    def unsupported(self) -> Iterator[Problem]:
        """Yield the parts of the machine that have no elastic counterpart."""
        mechanism = self.mechanism
        rods = {rod.name for rod in mechanism.rods}
        for rod in mechanism.rods:
            if rod.drum is not None:
                remedy = "describe the line as a straight cable with a stiffness"
                yield Problem(f"rods.{rod.name}", "the elasticity of a drum is not known", remedy)
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
                what = f"combines the length of the telescopic rod {name!r} with others"
                yield Problem(where, what, "drive the rod by an actuator of its own")

    # Parts

    def build(self) -> MachineStructure:
        """Return the structure."""
        mechanism = self.mechanism
        reduced = {item.body: item for item in mechanism.structures}
        for item in mechanism.structures:
            self._add_reduced(item)
        for body in mechanism.bodies:
            if body.name != BASE and body.name not in reduced:
                self._add_body(body)
        springs, inertias, locked = self._coordinates()
        for joint in mechanism.joints:
            self._add_joint(joint, springs, inertias, locked)
        for rod in mechanism.rods:
            self._add_rod(rod, springs, inertias, locked)
            if rod.name in self.rotors:
                self._drive_rod(rod.name)
        self._add_combinations(locked)
        self.bodies += self.servo.bodies
        self.joints += self.servo.joints
        self.combinations += self.servo.combinations
        self.notes += self.servo.notes
        platform = mechanism.platform
        tool_body, tool_point = self.placed(platform.tool, "the tool")
        carried_by = {item.name: item.name for item in self.bodies}
        for name, nodes in self.nodes.items():
            carried_by |= {node: name for node, _ in nodes}
        return MachineStructure(
            structure=Structure(
                bodies=tuple(self.bodies),
                joints=tuple(self.joints),
                elements=tuple(self.elements),
                links=tuple(self.links),
                combinations=tuple(self.combinations),
                length=self.length,
            ),
            tool_body=tool_body,
            tool_point=tool_point,
            tool_axes=self.frame(platform.tool).rotation,
            strengths=self.strengths,
            masses=tuple(self.masses),
            notes=tuple(self.notes),
            elastic_names=tuple(self.elastic),
            massless=tuple(self.massless),
            laws=tuple(self.laws),
            drives=tuple(self.servo.drives),
            lengths=self.lengths,
            reduced={body: item.name for body, item in reduced.items()},
            carried_by=carried_by,
            rotors=self.servo.rotors,
            telescopes=self.telescopes,
        )

    def _add_body(self, body: Body) -> None:
        """Add a rigid body, or the nodes and beams of an elastic one."""
        pose = self.body_pose(body.name)
        if not body.beams:
            inertia = None if body.inertia is None else self._inertia(body.inertia, pose)
            self.bodies.append(RigidBody(name=body.name, origin=pose.position, inertia=inertia))
            return
        mass = None if body.inertia is None else body.inertia.mass
        beams = [item.beam for item in body.beams]
        stated = self._stated_mass(body.name, mass, beams, body.is_distributed)
        self.masses.append(stated)
        self.elastic.append(body.name)
        nodes: list[tuple[str, Array]] = []
        self.nodes[body.name] = nodes
        for beam in body.beams:
            for end, place in (("start", beam.start), ("end", beam.end)):
                point = np.array([self.mechanism.value(x) for x in place])
                if self._node_at(body.name, point) is None:
                    nodes.append((f"{body.name}.{beam.name}.{end}", point))
        for name, point in nodes:
            origin = pose.position + pose.rotation @ point
            self.bodies.append(RigidBody(name=name, origin=origin))
        for beam in body.beams:
            self._add_body_beam(body, beam, pose, stated)

    def _add_reduced(self, item: ReducedStructure) -> None:
        """Add the nodes and matrices of a reduced finite-element model."""
        pose = FramePose() if item.body == BASE else self.body_pose(item.body)
        pose = FramePose(
            np.broadcast_to(pose.rotation, (self.samples, 3, 3)),
            np.broadcast_to(pose.position, (self.samples, 3)),
        )
        self.elastic.append(item.name)
        nodes: list[tuple[str, Array]] = []
        attachments = []
        for number, place in enumerate(item.nodes):
            point = np.array([self.mechanism.value(x) for x in place])
            name = f"{item.name}.node{number + 1}"
            origin = pose.position + pose.rotation @ point
            nodes.append((name, point))
            inertia = None
            if number == 0 and item.mass is None:
                inertia = self._inertia_at(item, pose, origin)
            self.bodies.append(RigidBody(name=name, origin=origin, inertia=inertia))
            attachments.append(Attachment(body=name, point=origin, axes=pose.rotation))
        self.nodes[item.body] = nodes
        K = item.stiffness.array
        M = np.zeros_like(K) if item.mass is None else item.mass.array
        matrices = Matrices(stiffness=K, mass=M, geometric=np.zeros_like(K))
        self.elements.append(
            Element(name=item.name, attachments=tuple(attachments), matrices=matrices)
        )

    def _inertia_at(self, item: ReducedStructure, pose: FramePose, node: Array) -> Array | None:
        """Return the inertia (N, 6, 6) of a body about a node that carries it; None without one.

        Matrices without mass leave open where the mass is.
        """
        self.massless.append(item.name)
        body = next((body for body in self.mechanism.bodies if body.name == item.body), None)
        if body is None or body.inertia is None:
            return None
        about_origin = self._inertia(body.inertia, pose)
        carry = transport(pose.position - node)
        return np.asarray(np.swapaxes(carry, -1, -2) @ about_origin @ carry)

    def _node_at(self, body: str, point: Array) -> str | None:
        """Return the node of a body at a point (3,) in its coordinates; None without one."""
        tolerance = SAME_NODE * self.length
        near = (
            name for name, place in self.nodes[body] if np.linalg.norm(place - point) <= tolerance
        )
        return next(near, None)

    def _add_body_beam(
        self, body: Body, beam: BodyBeam, pose: FramePose, stated: ElementMass
    ) -> None:
        """Add one beam of a body between its nodes."""
        value = self.mechanism.value
        places = [np.array([value(x) for x in place]) for place in (beam.start, beam.end)]
        names = [self._node_at(body.name, place) for place in places]
        points = [pose.position + pose.rotation @ place for place in places]
        across = _across(places[1] - places[0]) if beam.z_axis is None else np.array(beam.z_axis)
        axes = pose.rotation @ beam_axes(places[0], places[1], across)
        numbers = self._numbers(f"{body.name}.{beam.name}", beam.beam, stated)
        reduced = self._reduced(numbers, numbers.lengths, ((), ()))
        name = f"{body.name}.{beam.name}"
        start, end = ((str(node), point) for node, point in zip(names, points, strict=True))
        element = beam_element(name, reduced, start, end, axes)
        self._add_element(_with_fittings(element, numbers.fittings), numbers)
        self.laws.append(ElasticLaw(item=name, beams=(beam.beam,)))

    def _inertia(self, inertia: Inertia, pose: FramePose) -> Array:
        """Return the inertia (N, 6, 6) of a body about its origin in the axes of the base."""
        m, *rest = (self.mechanism.value(x) for x in inertia.parameters)
        J = np.zeros((3, 3))
        for (i, j), moment in zip(MOMENT_ENTRIES, rest[3:], strict=True):
            J[i, j] = J[j, i] = moment
        R = pose.rotation
        return spatial_inertia(m, R @ np.array(rest[:3]), R @ J @ np.swapaxes(R, -1, -2))

    # Coordinates: motors, springs, rotors

    def _coordinates(self) -> tuple[dict[str, float], dict[str, float], set[str]]:
        """Return springs and inertias by the names of coordinates, and the locked coordinates.

        Held motors lock their coordinate, or hold it by the stiffness of their drive. Inertia on the
        motor's side does not move then.
        """
        value = self.mechanism.value
        inertias: dict[str, float] = {}
        locked: set[str] = set()
        for name, freedom in self.mechanism.freedoms.items():
            if freedom.spring is not None:
                self._add_spring(name, freedom.spring.stiffness)
            if freedom.inertia is not None:
                inertias[name] = value(freedom.inertia)
        for actuator in self.mechanism.actuators:
            if self.options.laws is not None:
                self._add_servo(actuator, inertias, locked)
                continue
            if len(actuator.drives) > 1:
                continue
            (name, ratio_expression) = actuator.drives[0]
            ratio = value(ratio_expression)
            if not self.options.are_motors_held:
                if actuator.inertia is not None:
                    rotor = ratio**2 * value(actuator.inertia)
                    inertias[name] = inertias.get(name, 0.0) + rotor
                continue
            stiffness = self._drive_stiffness(actuator)
            if stiffness is None:
                locked.add(name)
            else:
                if name in self.spring_laws:
                    self.drives.pop(name, None)
                else:
                    self.drives[name] = actuator.name
                at_joint = multiply(ratio_expression, ratio_expression, stiffness)
                self._add_spring(name, at_joint)
        springs = {name: value(spring) for name, spring in self.spring_laws.items()}
        return springs, inertias, locked

    def _add_servo(self, actuator: Actuator, inertias: dict[str, float], locked: set[str]) -> None:
        """Add a controlled motor with its drive.

        Raises:
            InputError: an elastic drive has no inertia at its motor; or a drive line moves a rod
                without elastic parts.
        """
        value = self.mechanism.value
        line = actuator.drive
        inertia = 0.0 if actuator.inertia is None else value(actuator.inertia)
        if line is not None:
            inertia += load_inertia(line, self.mechanism)
        stiffness = None if line is not None else self._drive_stiffness(actuator)
        drives = tuple((name, value(ratio)) for name, ratio in actuator.drives)
        name, ratio = drives[0]
        rod = next((rod for rod in self.mechanism.rods if rod.name == name), None)
        where = f"actuators.{actuator.name}"
        shaft: Terms
        if stiffness is not None and not inertia:
            what = "the drive is elastic, and the inertia of its motor is missing"
            raise InputError.of(where, what, "give `inertia`, on the motor's side")
        if rod is not None:
            has_spring = stiffness is not None or _has_elastic_part(rod)
            if line is not None and not has_spring:
                what = f"its drive line moves the rod {name}, which has no elastic part"
                raise InputError.of(where, what, "give the rod a section, or a `contact` stiffness")
            if not has_spring:
                shaft = ((name, ratio),)
                inertias[name] = inertias.get(name, 0.0) + ratio**2 * inertia
            else:
                rotor = f"{actuator.name}.rotor"
                moved = self.servo.add_rotor(rotor, ratio**2 * inertia, ((name, 1.0),))
                shaft = ((moved[0][0], ratio),)
                self.rotors[name] = rotor
                self.notes.append(
                    f"{name}: masses of its parts follow its ends, not the motor between them"
                )
                if stiffness is None:
                    locked.add(name)
                else:
                    ratio_expression = actuator.drives[0][1]
                    self._add_spring(name, multiply(ratio_expression, ratio_expression, stiffness))
        elif stiffness is not None or len(drives) > 1:
            shaft = self.servo.add_rotor(f"{actuator.name}.rotor", inertia, drives)
            terms = (*drives, (shaft[0][0], -1.0))
            moving = tuple((other, np.asarray(factor)) for other, factor in terms)
            number = None if stiffness is None else value(stiffness)
            self.combinations.append(
                MotionCombination(name=actuator.name, terms=moving, stiffness=number)
            )
        else:
            shaft = drives
            inertias[name] = inertias.get(name, 0.0) + ratio**2 * inertia
        if line is None:
            self.servo.add_motor(actuator, shaft)
        else:
            self.elastic.append(actuator.name)
            self.servo.add_line(actuator, line, shaft)

    def _add_spring(self, name: str, stiffness: Expression) -> None:
        """Add a spring against a coordinate."""
        self.spring_laws[name] = add(self.spring_laws.get(name, ZERO), stiffness)

    def _drive_stiffness(self, actuator: Actuator) -> Expression | None:
        """Return the stiffness of an actuator with its motor held; None for a rigid one."""
        stiffness = drive_stiffness(actuator)
        if stiffness is not None:
            self.elastic.append(actuator.name)
        return stiffness

    def _add_joint(
        self,
        joint: Joint,
        springs: Mapping[str, float],
        inertias: Mapping[str, float],
        locked: set[str],
    ) -> None:
        """Add a joint; the free platform has none."""
        if joint.name == PLATFORM_JOINT:
            if joint.kind == "free":
                return
            self.notes.append(
                f"the platform is held by its stated motion ({joint.kind}): it is rigid against others"
            )
        parent, child = self.frame(joint.parent), self.frame(joint.child)
        twists = free_twists(joint, parent, child)
        names = joint.velocity_names
        bearings = None
        if joint.compliance is not None:
            self.elastic.append(joint.name)
            bearings = elastic_directions(
                self.mechanism, joint.compliance, parent.rotation, twists, self.length
            )
        remaining = [i for i, name in enumerate(names) if name not in locked]
        free = twists[..., remaining], tuple(names[i] for i in remaining)
        near, _ = self.placed(joint.parent, joint.name)
        far, point = self.placed(joint.child, joint.name)
        self.joints.append(
            elastic_joint(joint, (near, far), point, free, bearings, springs, inertias, self.drives)
        )
        motions = tuple(
            (index, self.spring_laws[name])
            for index, name in enumerate(free[1])
            if name in self.spring_laws
        )
        if bearings is None or joint.compliance is None:
            if motions:
                self.laws.append(ElasticLaw(item=joint.name, motions=motions))
            return
        yielding = in_local_axes(parent.rotation, bearings[0])
        is_complete = yielding.shape[-1] + twists.shape[-1] == NODE_FREEDOMS
        is_along_axes = is_diagonal(joint.compliance) and joint.kind != "universal"
        self.laws.append(
            ElasticLaw(
                item=joint.name,
                motions=motions,
                bearings=joint.compliance,
                bearing_twists=yielding,
                are_directions_fixed=is_complete or is_along_axes,
            )
        )

    def _add_combinations(self, locked: set[str]) -> None:
        """Add gears, and motors that drive several coordinates."""
        value = self.mechanism.value
        motions = {name for joint in self.joints for name in joint.names}
        items: list[tuple[str, list[tuple[str, float]], Expression | None]] = []
        for coupling in self.mechanism.couplings:
            if coupling.curves:
                remedy = "leave the cam out, or replace it by its ratio at the pose"
                where = f"couplings.{coupling.name}"
                raise InputError.of(
                    where, "elastic analysis of machines with cams is not supported", remedy
                )
            terms = [(name, value(ratio)) for name, ratio in coupling.terms]
            items.append((coupling.name, terms, None))
        for actuator in self.mechanism.actuators:
            if (
                self.options.laws is None
                and len(actuator.drives) > 1
                and self.options.are_motors_held
            ):
                terms = [(name, value(ratio)) for name, ratio in actuator.drives]
                items.append((actuator.name, terms, self._drive_stiffness(actuator)))
        for name, terms, stiffness in items:
            moving = tuple((other, np.asarray(ratio)) for other, ratio in terms if other in motions)
            if moving:
                number = None if stiffness is None else value(stiffness)
                self.combinations.append(
                    MotionCombination(name=name, terms=moving, stiffness=number)
                )
                if stiffness is not None:
                    self.laws.append(ElasticLaw(item=name, springs=(stiffness,)))

    # Rods

    def _drive_rod(self, name: str) -> None:
        """Let a rotor move between the two parts of a telescopic rod, which its spring holds."""
        index, element = next(
            (index, element) for index, element in enumerate(self.elements) if element.name == name
        )
        rotor = Attachment(body=self.rotors[name], point=np.zeros(3), axes=np.eye(3), freedoms=(0,))
        size = element.matrices.stiffness.shape[-1]
        # The coordinates without the rotor, by those with it.
        carried = np.delete(np.eye(size + 1), element.external, axis=0)
        pushed = carried.copy()
        pushed[len(element.attachments[0].freedoms), element.external] = -1.0
        matrices = Matrices(
            stiffness=pushed.T @ element.matrices.stiffness @ pushed,
            mass=carried.T @ element.matrices.mass @ carried,
            geometric=carried.T @ element.matrices.geometric @ carried,
        )
        attachments = (*element.attachments, rotor)
        self.elements[index] = replace(element, attachments=attachments, matrices=matrices)
        if name in self.telescopes:
            self.telescopes[name] = replace(self.telescopes[name], has_rotor=True)

    def _add_rotor_mass(
        self, name: str, start: tuple[str, Array], end: tuple[str, Array], inertia: float
    ) -> None:
        """Add the inertia of a motor that the length of a rod moves."""
        if not inertia:
            return
        difference = np.array([[1.0, -1.0], [-1.0, 1.0]])
        M = inertia * np.kron(difference, np.diag([1.0, 0.0, 0.0]))
        zero = np.zeros((6, 6))
        matrices = Matrices(stiffness=zero, mass=M, geometric=zero)
        self._add_two_point(f"{name}.rotor", start, end, matrices)
        self.telescopes[f"{name}.rotor"] = RodRotor(
            bodies=(start[0], end[0]),
            points=(start[1], end[1]),
            axes=beam_axes(start[1], end[1], _across(end[1] - start[1])),
            lower=PartMass(masses=np.zeros(0), distances=np.zeros(0)),
            upper=PartMass(masses=np.array([inertia]), distances=np.zeros(1)),
        )

    def _add_rod(
        self,
        rod: Rod,
        springs: Mapping[str, float],
        inertias: Mapping[str, float],
        locked: set[str],
    ) -> None:
        """Add a rod: elastic, rigid, or a cable."""
        start, end = self.placed(rod.start, rod.name), self.placed(rod.end, rod.name)
        is_driven = rod.telescope is not None and rod.name not in locked
        spring = springs.get(rod.name) if is_driven else None
        if is_driven and spring is None:
            # Nothing holds its length: it only has mass.
            self._add_rigid_mass(rod, start, end, (0.0, 1.0))
            self.lengths[rod.name] = RodLength(bodies=(start[0], end[0]), points=(start[1], end[1]))
            self._add_rotor_mass(rod.name, start, end, inertias.get(rod.name, 0.0))
            return
        if rod.tension is not None and rod.tension.stiffness is not None:
            self.elastic.append(rod.name)
            stiffness = _series([self.mechanism.value(rod.tension.stiffness), spring])
            self._add_axial_spring(rod, start, end, stiffness)
            line = _stated(rod.tension.stiffness, self.spring_laws.get(rod.name))
            self.laws.append(ElasticLaw(item=rod.name, springs=line))
            return
        contacts = [None if item is None else self.mechanism.value(item) for item in rod.contact]
        held = self.spring_laws.get(rod.name) if is_driven else None
        beams = tuple(beam for beam in (rod.lower_beam, rod.upper_beam) if beam is not None)
        law = ElasticLaw(item=rod.name, beams=beams, springs=_stated(held, *rod.contact))
        if rod.lower_beam is None:
            stiffness = _series([spring, *contacts])
            self._add_rigid_mass(rod, start, end, _rigid_shares(contacts, spring))
            if stiffness is None:
                points, bodies = (start[1], end[1]), (start[0], end[0])
                self.links.append(
                    RigidLink(name=f"{rod.name}.length", bodies=bodies, points=points)
                )
            else:
                self._add_axial_spring(rod, start, end, stiffness)
                self.laws.append(law)
            return
        self._add_elastic_rod(rod, start, end, contacts, spring)
        self.laws.append(law)

    def _add_elastic_rod(
        self,
        rod: Rod,
        start: tuple[str, Array],
        end: tuple[str, Array],
        contacts: list[float | None],
        drive: float | None,
    ) -> None:
        """Add a rod with beam sections, with springs in series along it."""
        self.elastic.append(rod.name)
        lower = rod.lower_beam
        assert lower is not None
        spread = lower.is_distributed
        numbers = self._numbers(rod.name, lower, self._rod_mass(rod.name, rod.lower, lower, spread))
        lengths, fittings = numbers.lengths, numbers.fittings
        beyond = None
        parts: tuple[PartMass, ...] = ()
        if rod.upper_beam is not None:
            upper_beam = rod.upper_beam
            name = f"{rod.name}.upper"
            stated = self._rod_mass(name, rod.upper, upper_beam, upper_beam.is_distributed)
            upper = self._numbers(name, upper_beam, stated)
            parts = tuple(_part_mass(part) for part in (numbers, upper))
            distance = np.linalg.norm(end[1] - start[1], axis=-1)
            masses = np.array(
                [float(np.ravel(part.properties.mass)[0]) for part in (numbers, upper)]
            )
            numbers, lengths = _telescoped(rod.name, numbers, upper, distance)
            beyond = lengths, np.array([0.0, masses[1] / masses.sum(), 1.0])
            fittings = (fittings[0], upper.fittings[0])
        elif rod.telescope is not None:
            what = "the part at B has no section"
            raise InputError.of(f"rods.{rod.name}", what, "give `upper` a section, as `lower` has")
        reduced = self._reduced(numbers, lengths, (BALL, BALL))
        flexibility = _flexibility(contacts, drive)
        softened = _softened(reduced, flexibility, beyond)
        across = self._rod_across(rod, start[1], end[1])
        axes = beam_axes(start[1], end[1], across)
        element = beam_element(rod.name, softened, start, end, axes)
        if not self.options.has_rod_modes:
            ends = softened.matrices.part(tuple(range(element.external)))
            element = replace(element, matrices=ends)
        self._add_element(_with_fittings(element, fittings), numbers)
        if parts:
            self.telescopes[rod.name] = TelescopicRod(
                bodies=(start[0], end[0]),
                points=(start[1], end[1]),
                axes=axes,
                lower=parts[0],
                upper=parts[1],
                beam=softened,
                flexibility=flexibility,
            )

    def _rod_mass(
        self, name: str, part: SlenderPart | Inertia | None, beam: Beam, spread: bool
    ) -> ElementMass:
        """Return the stated mass of a rod or of one part of it."""
        mass: Expression | None = None if part is None else part.mass
        stated = self._stated_mass(name, mass, [beam], spread)
        self.masses.append(stated)
        return stated

    def _rod_across(self, rod: Rod, start: Array, end: Array) -> Array:
        """Return the direction (N, 3) of a rod's section axis z; any for a round section."""
        direction = end - start
        if rod.first_axis is not None:
            local = np.array([self.mechanism.value(x) for x in rod.first_axis])
            hinge = self.body_pose(rod.start.body).rotation @ local
            return np.cross(hinge, direction)
        return _across(direction)

    def _add_axial_spring(
        self, rod: Rod, start: tuple[str, Array], end: tuple[str, Array], stiffness: float | None
    ) -> None:
        """Add a spring along a rod."""
        difference = np.array([[1.0, -1.0], [-1.0, 1.0]])
        K = np.kron(difference, np.diag([float(stiffness or 0.0), 0.0, 0.0]))
        length = np.linalg.norm(end[1] - start[1], axis=-1)
        geometric = np.kron(difference, np.diag([0.0, 1.0, 1.0])) / length[:, None, None]
        matrices = Matrices(stiffness=K, mass=np.zeros((6, 6)), geometric=geometric)
        self._add_two_point(rod.name, start, end, matrices)

    def _add_rigid_mass(
        self,
        rod: Rod,
        start: tuple[str, Array],
        end: tuple[str, Array],
        along: tuple[float, float] | None = None,
    ) -> None:
        """Add the mass of a rigid rod, which its ends carry.

        A point at the distance s from A moves by (1 - s/L) u_A + (s/L) u_B across the rod. Along it,
        each part moves as a whole by (1 - φ) u_A + φ u_B.

        Args:
            rod: the rod.
            start, end: what carries its ends, and where.
            along: φ of the lower and of the upper part; by default the rod has a fixed length.
        """
        length = np.linalg.norm(end[1] - start[1], axis=-1)
        M = np.zeros((self.samples, 2, 2))
        axial = np.zeros((2, 2))
        for part, is_upper in ((rod.lower, False), (rod.upper, True)):
            if part is None:
                continue
            mass, first, second = self._line_moments(part)
            near, far = (1, 0) if is_upper else (0, 1)
            M[:, near, near] += mass - 2.0 * first / length + second / length**2
            M[:, far, far] += second / length**2
            M[:, 0, 1] += first / length - second / length**2
            M[:, 1, 0] += first / length - second / length**2
            if along is not None:
                shape = np.array([1.0 - along[is_upper], along[is_upper]])
                axial += mass * np.outer(shape, shape)
        if not M.any():
            return
        directions = np.repeat(M[:, None], 3, axis=1)
        if along is not None:
            directions[:, 0] = axial
        mass_matrix = np.einsum("nkij,kl->nikjl", directions, np.eye(3)).reshape(-1, 6, 6)
        zero = np.zeros((6, 6))
        matrices = Matrices(stiffness=zero, mass=mass_matrix, geometric=zero)
        self._add_two_point(f"{rod.name}.mass", start, end, matrices)
        if rod.telescope is None:
            return
        lower, upper = (
            equivalent_mass(*((0.0,) * 3 if part is None else self._line_moments(part)))
            for part in (rod.lower, rod.upper)
        )
        self.telescopes[f"{rod.name}.mass"] = TelescopicRod(
            bodies=(start[0], end[0]),
            points=(start[1], end[1]),
            axes=beam_axes(start[1], end[1], _across(end[1] - start[1])),
            lower=lower,
            upper=upper,
            shares=along,
        )

    def _line_moments(self, part: SlenderPart | Inertia) -> tuple[float, float, float]:
        """Return mass, first and second moment of a rod's part along it, from its own end."""
        value = self.mechanism.value
        if isinstance(part, SlenderPart):
            return value(part.mass), value(part.first_moment), value(part.second_moment)
        across = 0.5 * (value(part.second_moment[0]) + value(part.second_moment[2]))
        return value(part.mass), abs(value(part.first_moment[2])), across

    def _add_two_point(
        self, name: str, start: tuple[str, Array], end: tuple[str, Array], matrices: Matrices
    ) -> None:
        """Add an element that holds the translations of two points."""
        axes = beam_axes(start[1], end[1], _across(end[1] - start[1]))
        attachments = tuple(
            Attachment(body=body, point=point, axes=axes, freedoms=_TRANSLATIONS)
            for body, point in (start, end)
        )
        self.elements.append(Element(name=name, attachments=attachments, matrices=matrices))

    # Beams

    def _stated_mass(
        self, name: str, mass: Expression | None, beams: list[Beam], spread: bool
    ) -> ElementMass:
        """Return the stated mass of a link, and those of its parts."""
        return self.constants.stored(
            ("mass", name), lambda: stated_mass(self.mechanism, name, mass, beams, spread)
        )

    def _numbers(self, name: str, beam: Beam, stated: ElementMass) -> NumericBeam:
        """Return a beam in numbers; mass that the file does not place is spread along it."""
        factor = 1.0
        if stated.mass > 0.0 and stated.section > 0.0:
            factor = (stated.mass - stated.fittings) / stated.section
        shear = self.options.has_shear
        return self.constants.stored(
            ("beam", name, shear),
            lambda: numeric_beam(self.mechanism, beam, mass_factor=factor, shear=shear),
        )

    def _reduced(
        self,
        numbers: NumericBeam,
        lengths: Array,
        released: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> ReducedBeam:
        """Return a beam reduced to its ends and modes."""
        return self.constants.reduced(
            lengths, numbers.properties, released, self.options.modes, self.options.below
        )

    def _add_element(self, element: Element, numbers: NumericBeam) -> None:
        """Add a beam, and what its stress follows from."""
        self.elements.append(element)
        if numbers.strength is not None:
            self.strengths[element.name] = numbers.strength


def _has_elastic_part(rod: Rod) -> bool:
    """Return whether a telescopic rod yields along its axis with its drive held rigidly."""
    return (
        rod.lower_beam is not None
        or any(item is not None for item in rod.contact)
        or (rod.tension is not None and rod.tension.stiffness is not None)
    )


def _across(direction: Array) -> Array:
    """Return a direction (..., 3) that is not parallel to another one.

    It is the same for all samples where possible, so that axes are continuous along a motion.
    """
    cosines = np.abs(direction) / np.linalg.norm(direction, axis=-1, keepdims=True)
    largest = cosines.reshape(-1, 3).max(axis=0)
    smallest = np.argmin(cosines, axis=-1)
    if largest.min() <= MAX_COSINE:
        smallest = np.full_like(smallest, np.argmin(largest))
    return np.asarray(np.eye(3)[smallest])


def _stated(*springs: Expression | None) -> tuple[Expression, ...]:
    """Return the springs that are not rigid."""
    return tuple(spring for spring in springs if spring is not None)


def _series(stiffnesses: list[float | None]) -> float | None:
    """Return the stiffness of springs in series; None for rigid ones."""
    compliant = [stiffness for stiffness in stiffnesses if stiffness is not None]
    return 1.0 / sum(1.0 / stiffness for stiffness in compliant) if compliant else None


def _rigid_shares(contacts: list[float | None], drive: float | None) -> tuple[float, float] | None:
    """Return by how much the rigid parts of a rod follow its end B; None for a fixed length."""
    total = _series([drive, *contacts])
    if total is None:
        return None
    before, after = (0.0 if k is None else total / k for k in contacts)
    return before, 1.0 - after


def _flexibility(contacts: list[float | None], drive: float | None) -> tuple[float, float, float]:
    """Return the flexibility of springs at A, between the parts of a rod, and at B, m/N."""
    start, middle, end = (0.0 if k is None else 1.0 / k for k in (contacts[0], drive, contacts[1]))
    return start, middle, end


def _softened(
    beam: ReducedBeam,
    flexibility: tuple[float, float, float],
    beyond: tuple[Array, Array] | None,
) -> ReducedBeam:
    """Return a rod with springs in series along its axis, at both ends and between its parts.

    The springs change the static shape of its stretch, and so its mass along the axis: a soft drive
    leaves the lower part at rest with the end A, and the upper part with the end B.

    Args:
        beam: the rod.
        flexibility: of the springs at A, between the parts, and at B, m/N.
        beyond: lengths (N, s) of pieces of constant section, and the fraction (s,) of their mass that
            moves with the upper part; None for a rod of one part.
    """
    if not any(flexibility):
        return beam
    places, signs = beam.places[BeamMotion.STRETCH]
    mass = np.broadcast_to(beam.properties.mass, beam.lengths.shape)
    near, far, stretched = stretch_field(beam, flexibility)
    jump = stretched[..., None]
    upper = np.zeros_like(far)
    if beyond is not None:
        upper = upper + _fraction_of_elements(beam.lengths, *beyond)
    basis = beam.motions[BeamMotion.STRETCH].basis
    M = np.array(beam.matrices.mass)
    size = len(places)
    stretch = np.zeros((*M.shape[:-2], size, size))
    for fraction, shift in ((1.0 - upper, 0.0), (upper, jump)):
        shapes = []
        for at, rows in ((near, basis[..., :-1, 2:]), (far, basis[..., 1:, 2:])):
            moved = (at + shift)[..., None]
            modes = np.broadcast_to(rows, (*moved.shape[:-1], rows.shape[-1]))
            shapes.append(np.concatenate([1.0 - moved, moved, modes], axis=-1))
        weight = (fraction * mass * beam.lengths / 6.0)[..., None]
        for i, j, factor in ((0, 0, 2.0), (1, 1, 2.0), (0, 1, 1.0), (1, 0, 1.0)):
            stretch += factor * np.swapaxes(weight * shapes[i], -1, -2) @ shapes[j]
    M[..., places[:, None], places] = stretch * np.outer(signs, signs)
    own = (beam.lengths / np.broadcast_to(beam.properties.axial, beam.lengths.shape)).sum(axis=-1)
    K = np.array(beam.matrices.stiffness)
    K[..., places[:2, None], places[:2]] *= (own / (own + sum(flexibility)))[..., None, None]
    matrices = Matrices(stiffness=K, mass=M, geometric=beam.matrices.geometric)
    return replace(beam, matrices=matrices)


def _part_mass(part: NumericBeam) -> PartMass:
    """Return the mass of a part of constant section with the fitting at its own end."""
    density = float(np.ravel(part.properties.mass)[0])
    return spread_mass(density, float(part.lengths[0])).with_point(part.fittings[0])


def _fraction_of_elements(lengths: Array, pieces: Array, fractions: Array) -> Array:
    """Return the values (..., e) of pieces (N, s) of a chain for its elements of lengths (..., e)."""
    middles = np.cumsum(lengths, axis=-1) - 0.5 * lengths
    starts = np.cumsum(pieces, axis=-1) - pieces
    index = np.sum(middles[..., None] > starts[..., None, :], axis=-1) - 1
    return np.asarray(fractions[index])


def _with_fittings(element: Element, fittings: tuple[float, float]) -> Element:
    """Return an element with point masses at its two ends."""
    if not any(fittings):
        return element
    M = np.array(element.matrices.mass)
    offset = 0
    for mass, attachment in zip(fittings, element.attachments, strict=True):
        for index, freedom in enumerate(attachment.freedoms):
            if freedom in _TRANSLATIONS:
                M[..., offset + index, offset + index] += mass
        offset += len(attachment.freedoms)
    matrices = Matrices(
        stiffness=element.matrices.stiffness, mass=M, geometric=element.matrices.geometric
    )
    return Element(
        name=element.name,
        attachments=element.attachments,
        matrices=matrices,
        beam=element.beam,
    )


def _telescoped(
    name: str, lower: NumericBeam, upper: NumericBeam, distance: Array
) -> tuple[NumericBeam, Array]:
    """Return the two parts of a telescopic rod in a row, and the lengths (N, s) of their pieces.

    Where they overlap, both carry bending; the drive connects their axial forces.

    Args:
        name: the rod.
        lower, upper: the parts, each of one piece, from A and from B.
        distance: (N,) distances from A to B, m.

    Raises:
        InputError: the parts do not overlap, are longer than the distance, or have several pieces.
    """
    if len(lower.lengths) != 1 or len(upper.lengths) != 1:
        what = "a part of this telescopic rod has several sections"
        raise InputError.of(f"rods.{name}", what, "give each part one section")
    at_start, at_end = float(lower.lengths[0]), float(upper.lengths[0])
    lengths = np.stack([distance - at_end, at_start + at_end - distance, distance - at_start], -1)
    if lengths.min() <= 0.0:
        pose = int(np.argmin(lengths.min(axis=1)))
        what = (
            f"parts of {at_start:.4g} m and {at_end:.4g} m do not overlap within the length "
            f"{distance[pose]:.4g} m (pose {pose})"
        )
        remedy = "give parts that are shorter than the rod and together longer, at every pose"
        raise InputError.of(f"rods.{name}", what, remedy)
    values = {}
    for key in BeamProperties.__dataclass_fields__:
        first, second = (
            np.ravel(getattr(part.properties, key)).astype(float) for part in (lower, upper)
        )
        values[key] = np.concatenate([first, first + second, second])
    strength = None
    if lower.strength is not None and upper.strength is not None:
        # Where both parts overlap, the lower one alone is checked: the stress is smaller.
        strength = lower.strength.followed_by(lower.strength).followed_by(upper.strength)
    joined = NumericBeam(
        lengths=lengths[0],
        properties=BeamProperties(**values),
        strength=strength,
        fittings=(0.0, 0.0),
    )
    return joined, lengths
