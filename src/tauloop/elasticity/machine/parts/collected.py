"""Collection of the parts of a structure, and poses of the machine's bodies."""

from __future__ import annotations

import numpy as np

from tauloop.elasticity.frame.beams import Array, Matrices
from tauloop.elasticity.frame.reduction import ReducedBeam
from tauloop.elasticity.frame.structure import (
    ElasticJoint,
    Element,
    MotionCombination,
    RigidBody,
    RigidLink,
    spatial_inertia,
)
from tauloop.elasticity.machine.beams import NumericBeam, SectionStrength, numeric_beam, stated_mass
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.structure_options import StructureOptions
from tauloop.elasticity.machine.telescopic_rods import TelescopicRod
from tauloop.elasticity.static_analysis.gradients import ElasticLaw
from tauloop.elasticity.vibrations.servo_drives import RodLength, ServoParts
from tauloop.geometry.machine_geometry import MachineGeometry
from tauloop.mechanism.elastic.beams import Beam
from tauloop.mechanism.elastic.inertia import ElementMass
from tauloop.mechanism.expression import ZERO, Expression, add
from tauloop.mechanism.model import MOMENT_ENTRIES, Inertia, Mechanism, Placement
from tauloop.mechanism.poses import FramePose
from tauloop.model import Model

#: Points of a body that are closer than this, in characteristic lengths, share a node.
SAME_NODE = 1e-6
#: Largest cosine of the angle between a rod and the direction that defines its section's axes.
MAX_COSINE = 0.9
#: Degrees of freedom of the end of a rigid rod: the translations of a node.
TRANSLATIONS = (0, 1, 2)


class StructureParts:
    """Collects the parts of a machine's structure at N poses."""

    def __init__(self, model: Model, q: Array, options: StructureOptions) -> None:
        """Compute the poses of all bodies at coordinates (N, n_q)."""
        self.model = model
        self.options = options
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
        #: Names of the items that are elastic.
        self.elastic: list[str] = []
        #: Actuators whose drive is the only spring of a coordinate, by the coordinate's name.
        self.drives: dict[str, str] = {}
        #: Finite-element models without a mass matrix.
        self.massless: list[str] = []
        #: Stiffness of the items as expressions in the parameters.
        self.laws: list[ElasticLaw] = []
        #: Total stiffness of the motors and springs of each coordinate, by the coordinate's name.
        self.spring_laws: dict[str, Expression] = {}
        #: Nodes of each body with beams: name, and position (3,) in the body's frame.
        self.nodes: dict[str, list[tuple[str, Array]]] = {}
        #: Controlled motors and the parts that they add.
        self.servo = ServoParts(self.mechanism, self.options.laws or {})
        #: Rotor bodies between the parts of driven telescopic rods, by rod.
        self.rotors: dict[str, str] = {}
        self.lengths: dict[str, RodLength] = {}
        self.telescopes: dict[str, TelescopicRod] = {}

    def body_pose(self, name: str) -> FramePose:
        """Return the position and rotation of a body at the N poses of the machine."""
        index = self.geometry.shape.index[name]
        return FramePose(self.geometry.rotations[:, index], self.geometry.origins[:, index])

    def frame(self, placement: Placement) -> FramePose:
        """Return the position and rotation of a frame at the N poses of the machine."""
        return self.body_pose(placement.body) @ self.constants.frame(placement)

    def carrier(self, name: str, point: Array, item: str) -> str:
        """Return the body or node to which a point (3,) of a body is attached.

        Args:
            name: the body.
            point: position (3,) in the body's frame.
            item: name of the attached joint, rod or tool, for notes.
        """
        nodes = self.nodes.get(name)
        if nodes is None:
            return name
        distances = [float(np.linalg.norm(point - position)) for _, position in nodes]
        nearest = int(np.argmin(distances))
        if distances[nearest] > SAME_NODE * self.length:
            offset = 1000.0 * distances[nearest]
            self.notes.append(
                f"{item} is attached to {nodes[nearest][0]} by a rigid offset of {offset:.4g} mm"
            )
        return nodes[nearest][0]

    def attachment(self, placement: Placement, item: str) -> tuple[str, Array]:
        """Return the body or node that carries a frame, and the frame's origin (N, 3).

        `item` names the attached joint, rod or tool in notes.
        """
        local = self.constants.frame(placement).position
        body = self.carrier(placement.body, np.asarray(local), item)
        return body, self.frame(placement).position

    def node_at(self, body: str, point: Array) -> str | None:
        """Return the node of a body at a point (3,) in its frame; None if there is no node."""
        tolerance = SAME_NODE * self.length
        for name, position in self.nodes[body]:
            if np.linalg.norm(position - point) <= tolerance:
                return name
        return None

    def inertia(self, inertia: Inertia, pose: FramePose) -> Array:
        """Return the inertia (N, 6, 6) of a body about its origin in the axes of the base."""
        m, *moments = (self.mechanism.value(x) for x in inertia.parameters)
        J = np.zeros((3, 3))
        for (i, j), moment in zip(MOMENT_ENTRIES, moments[3:], strict=True):
            J[i, j] = J[j, i] = moment
        R = pose.rotation
        return spatial_inertia(m, R @ np.array(moments[:3]), R @ J @ np.swapaxes(R, -1, -2))

    def add_spring(self, name: str, stiffness: Expression) -> None:
        """Add a spring to a coordinate, in parallel with its other springs."""
        self.spring_laws[name] = add(self.spring_laws.get(name, ZERO), stiffness)

    def stated_mass(
        self, name: str, mass: Expression | None, beams: list[Beam], spread: bool
    ) -> ElementMass:
        """Return the specified mass of a link, and the masses of its sections and fittings."""
        return self.constants.stored(
            ("mass", name), lambda: stated_mass(self.mechanism, name, mass, beams, spread)
        )

    def numeric_beam(self, name: str, beam: Beam, stated: ElementMass) -> NumericBeam:
        """Return the numeric values of a beam.

        The specified mass that exceeds the mass of sections and fittings is spread along the beam.
        """
        factor = 1.0
        if stated.mass > 0.0 and stated.section > 0.0:
            factor = (stated.mass - stated.fittings) / stated.section
        shear = self.options.has_shear
        return self.constants.stored(
            ("beam", name, shear),
            lambda: numeric_beam(self.mechanism, beam, mass_factor=factor, shear=shear),
        )

    def reduced_beam(
        self,
        numbers: NumericBeam,
        lengths: Array,
        released: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> ReducedBeam:
        """Return a beam reduced to the coordinates of its ends and its modes.

        Args:
            numbers: the beam.
            lengths: lengths of its elements, m.
            released: released degrees of freedom at both ends.
        """
        return self.constants.reduced(
            lengths, numbers.properties, released, self.options.modes, self.options.max_frequency
        )

    def add_element(self, element: Element, numbers: NumericBeam) -> None:
        """Add a beam element, and its section data for stresses."""
        self.elements.append(element)
        if numbers.strength is not None:
            self.strengths[element.name] = numbers.strength


def transverse_direction(direction: Array) -> Array:
    """Return a coordinate axis (..., 3) that is not nearly parallel to a direction (..., 3).

    If possible, all samples have the same axis, so that axes are continuous along a motion.
    """
    cosines = np.abs(direction) / np.linalg.norm(direction, axis=-1, keepdims=True)
    largest = cosines.reshape(-1, 3).max(axis=0)
    smallest = np.argmin(cosines, axis=-1)
    if largest.min() <= MAX_COSINE:
        smallest = np.full_like(smallest, np.argmin(largest))
    return np.asarray(np.eye(3)[smallest])


def with_fittings(element: Element, fittings: tuple[float, float]) -> Element:
    """Return an element with point masses at its two ends."""
    if not any(fittings):
        return element
    M = np.array(element.matrices.mass)
    offset = 0
    for mass, attachment in zip(fittings, element.attachments, strict=True):
        for index, freedom in enumerate(attachment.freedoms):
            if freedom in TRANSLATIONS:
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
