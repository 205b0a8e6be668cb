"""Parts of a machine's structure in the frames of its bodies, in which they are constant.

Only the poses of bodies, and the lengths of telescopic rods, change with the pose of the machine.
The parts are read from structures at several poses. An error lists the parts that are not constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.elasticity.compensation.tool_errors import platform_directions
from tauloop.elasticity.frame.assembled import assemble
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import ElasticJoint, Element, MotionCombination
from tauloop.elasticity.frame.thermal import FreeExpansion
from tauloop.elasticity.machine.constants import machine_constants
from tauloop.elasticity.machine.structure import (
    MachineStructure,
    StructureOptions,
    machine_structure,
)
from tauloop.model import Model

#: Largest relative change of a part in its body's frame that counts as a rounding error.
CONSTANT_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalPoint:
    """A point of a body of the machine.

    Attributes:
        node: body or node of the structure to which the point belongs.
        body: the body of the machine, or the base.
        position: (3,) position in the frame of this body, m.
    """

    node: str
    body: str
    position: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalBody:
    """A body or node of the structure.

    Attributes:
        origin: origin of the body or node.
        mass: mass, kg.
        moment: (3,) first moment of mass about the origin, in body axes, kg m.
    """

    origin: LocalPoint
    mass: float
    moment: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalJoint:
    """A joint with twists that are constant in the frames of its bodies.

    Attributes:
        joint: the joint of the structure.
        point: point of the joint on the child's body.
        frames: body in whose axes each twist is constant.
        twists: (6, f) twists in these axes.
        stiffness: (f, f) stiffness of the motions; None if all motions are free.
    """

    joint: ElasticJoint
    point: LocalPoint
    frames: tuple[str, ...]
    twists: Array
    stiffness: Array | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LengthLaw:
    """A rational function of the length d of a rod: (c_0 + c_1 d + c_2 d²) / (e_0 + e_1 d).

    Attributes:
        numerator: coefficients c.
        denominator: coefficients e.
    """

    numerator: tuple[float, ...]
    denominator: tuple[float, ...] = (1.0,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalRod:
    """A rod between two points, with its axial stiffness and the masses that its ends carry.

    Attributes:
        name: name of the rod.
        ends: its two end points.
        stiffness: axial stiffness, N/m; None if the rod has no stiffness.
        axial_masses: masses that the two ends carry along the rod, kg.
        lateral_masses: masses that the two ends carry perpendicular to the rod, kg.
        elongation: (p,) changes of length per kelvin of each part, m/K.
    """

    name: str
    ends: tuple[LocalPoint, LocalPoint]
    stiffness: LengthLaw | None
    axial_masses: tuple[LengthLaw, LengthLaw]
    lateral_masses: tuple[LengthLaw, LengthLaw]
    elongation: tuple[LengthLaw, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalElement:
    """An element between nodes of the same body, in the axes of this body.

    Attributes:
        name: name of the beam or finite-element model.
        points: points of its attachments.
        axes: (3, 3) local axes of each attachment as columns.
        freedoms: degrees of freedom of each attachment that are coordinates of the element.
        stiffness: (k, k) stiffness matrix.
        weight: (k, 3) forces on its coordinates per unit of gravity in body axes, kg.
        elongation: (p,) changes of length per kelvin, m/K; zero unless it is a beam that expands.
        axial_rows: indices of the axial displacements of its two ends; None unless it is a beam
            that expands.
    """

    name: str
    points: tuple[LocalPoint, ...]
    axes: tuple[Array, ...]
    freedoms: tuple[tuple[int, ...], ...]
    stiffness: Array
    weight: Array
    elongation: Array
    axial_rows: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalParts:
    """All parts of a machine's structure.

    Attributes:
        bodies: bodies and nodes by name.
        tree: joints from the base outwards, each with the node nearer to the base and the other
            node.
        closing: joints that close loops.
        rods: elastic rods, and masses of rods.
        links: rigid rods.
        elements: other elements.
        combinations: gears, and motors that drive several coordinates.
        tool: the tool center point.
        parts: names of the p parts that expand.
        scaling: (p,) coefficients of expansion of bodies and nodes, by name, 1/K.
        directions: (6, m) directions in which the tool is corrected; None if joints are commanded.
        length: characteristic length of the machine, m.
    """

    bodies: Mapping[str, LocalBody]
    tree: tuple[tuple[LocalJoint, str, str], ...]
    closing: tuple[LocalJoint, ...]
    rods: tuple[LocalRod, ...]
    links: tuple[LocalRod, ...]
    elements: tuple[LocalElement, ...]
    combinations: tuple[MotionCombination, ...]
    tool: LocalPoint
    parts: tuple[str, ...]
    scaling: Mapping[str, Array]
    directions: Array | None
    length: float


def local_parts(
    model: Model, q: Array, parts: tuple[str, ...], expansion: FreeExpansion
) -> LocalParts:
    """Return the parts of a machine in the frames of its bodies.

    Args:
        model: the machine.
        q: coordinates (M, n_q) of several poses.
        parts: names of the parts that expand.
        expansion: free expansion of these parts at the poses.

    Raises:
        InputError: parts are not constant in the frame of a body; the error lists all of them.
    """
    elastic_machine = machine_structure(model, q, StructureOptions(has_rod_modes=False))
    reader = _Reader(model, q, elastic_machine, expansion)
    problems = Problems()
    with problems.collecting(InputError):
        result = reader.read(parts)
    InputError.raise_if_any(problems)
    return result


class _Reader:
    """Reads the parts of structures at M poses."""

    def __init__(
        self, model: Model, q: Array, elastic_machine: MachineStructure, expansion: FreeExpansion
    ) -> None:
        """Store the poses of all bodies."""
        self.model = model
        self.elastic_machine = elastic_machine
        self.expansion = expansion
        self.geometry = machine_constants(model).shape.at(np.ascontiguousarray(q))
        self.samples = len(q)
        self.length = elastic_machine.structure.length
        names = [rod.name for rod in model.mechanism.rods]
        #: Names of elements between two points: rods, and separate masses of rods.
        self.rods = {*names, *(f"{name}.mass" for name in names)}

    def read(self, parts: tuple[str, ...]) -> LocalParts:
        """Return all parts; `parts` are the names of the parts that expand."""
        structure = self.elastic_machine.structure
        assembled = assemble(structure)
        joints = {joint.name: self.joint(joint) for joint in structure.joints}
        tree_joints = {joint.name for joint, _, _ in assembled.tree}
        rods = [item for item in structure.elements if item.name in self.rods]
        others = [item for item in structure.elements if item.name not in self.rods]
        return LocalParts(
            bodies={body.name: self.body(body.name) for body in structure.bodies},
            tree=tuple((joints[joint.name], near, far) for joint, near, far in assembled.tree),
            closing=tuple(item for name, item in joints.items() if name not in tree_joints),
            rods=tuple(self.rod(element) for element in rods),
            links=tuple(self.link(number) for number in range(len(structure.links))),
            elements=tuple(self.element(element) for element in others),
            combinations=structure.combinations,
            tool=self.point(
                self.elastic_machine.tool_body, self.elastic_machine.tool_point, "the tool"
            ),
            parts=parts,
            scaling=self.expansion.scaling,
            directions=platform_directions(self.model),
            length=self.length,
        )

    # Frames

    def machine_body(self, node: str) -> str:
        """Return the body of the machine to which a node belongs."""
        return self.elastic_machine.carried_by.get(node, node)

    def rotation(self, body: str) -> Array:
        """Return the orientations (M, 3, 3) of a body."""
        return np.asarray(self.geometry.rotations[:, self.geometry.shape.index[body]])

    def constant(self, values: Array, scale: float, item: str) -> Array:
        """Return the common value (...) of M samples (M, ...).

        Args:
            values: samples at the M poses.
            scale: typical magnitude of the values, to which the tolerance is relative.
            item: name of the part, for the error.

        Raises:
            InputError: the samples differ by more than rounding errors.
        """
        values = np.asarray(values, dtype=float)
        first = values[0]
        if np.abs(values - first).max(initial=0.0) > CONSTANT_TOLERANCE * max(scale, 1e-300):
            what = "changes with the pose in a way that an exported compensation does not support"
            raise InputError.of(item, what, "use `tauloop.compensate` for this machine")
        return np.asarray(first)

    def point(self, node: str, position: Array, item: str) -> LocalPoint:
        """Return a point (M, 3) or (3,) of a node in the frame of its body."""
        body = self.machine_body(node)
        index = self.geometry.shape.index[body]
        offset = np.broadcast_to(position, (self.samples, 3)) - self.geometry.origins[:, index]
        local = (np.swapaxes(self.rotation(body), -1, -2) @ offset[..., None])[..., 0]
        return LocalPoint(node=node, body=body, position=self.constant(local, self.length, item))

    # Parts

    def body(self, name: str) -> LocalBody:
        """Return the body or node with this name."""
        (body,) = (item for item in self.elastic_machine.structure.bodies if item.name == name)
        origin = self.point(name, body.origin, name)
        if body.inertia is None:
            return LocalBody(origin=origin, mass=0.0, moment=np.zeros(3))
        inertia = np.broadcast_to(body.inertia, (self.samples, 6, 6))
        h = np.stack([inertia[:, 5, 1], inertia[:, 3, 2], inertia[:, 4, 0]], axis=-1)
        local = (np.swapaxes(self.rotation(origin.body), -1, -2) @ h[..., None])[..., 0]
        mass = float(inertia[0, 0, 0])
        return LocalBody(
            origin=origin, mass=mass, moment=self.constant(local, mass * self.length, name)
        )

    def joint(self, joint: ElasticJoint) -> LocalJoint:
        """Return a joint; each twist is constant in the frame of its parent or child."""
        twists = np.broadcast_to(joint.motion, (self.samples, 6, joint.count))
        ends = [self.machine_body(node) for node in (joint.parent, joint.child)]
        local = [self.in_body_axes(body, twists) for body in ends]
        free = self.free_count(joint)
        frames = []
        columns = []
        for index in range(joint.count):
            side = 0
            if index < free:
                changes = [np.abs(twist[..., index] - twist[0, :, index]).max() for twist in local]
                side = int(changes[0] > CONSTANT_TOLERANCE * self.length)
                self.constant(local[side][..., index], self.length, joint.name)
            frames.append(ends[side])
            columns.append(local[side][0, :, index])
        stiffness = None
        if joint.stiffness is not None:
            K = np.broadcast_to(joint.stiffness, (self.samples, joint.count, joint.count))
            stiffness = np.array(K[0])
            if free < joint.count:
                # The basis of the bearing directions may differ from pose to pose, so the
                # compliance in fixed axes is compared instead.
                T = local[0][..., free:]
                C = T @ np.linalg.solve(K[:, free:, free:], np.swapaxes(T, -1, -2))
                weight = np.repeat([1.0, self.length], 3)
                C = C * weight[:, None] * weight
                self.constant(C, float(np.abs(C).max()), f"{joint.name} (bearings)")
            self.constant(K[:, :free, :free], float(np.abs(K).max()), joint.name)
        twist = np.stack(columns, axis=-1) if columns else np.zeros((6, 0))
        return LocalJoint(
            joint=joint,
            point=self.point(joint.child, joint.point, joint.name),
            frames=tuple(frames),
            twists=twist,
            stiffness=stiffness,
        )

    @staticmethod
    def free_count(joint: ElasticJoint) -> int:
        """Return the number of motions that do not belong to bearings."""
        labels = joint.motion_names
        return sum(not label.startswith("bearing") for label in labels)

    def in_body_axes(self, body: str, twists: Array) -> Array:
        """Return twists (M, 6, f) in the axes of a body."""
        to_body = np.swapaxes(self.rotation(body), -1, -2)
        return np.concatenate([to_body @ twists[:, :3], to_body @ twists[:, 3:]], axis=1)

    def rod(self, element: Element) -> LocalRod:
        """Return a rod with its stiffness and masses as functions of its length."""
        start, end = element.attachments
        ends = tuple(self.point(item.body, item.point, element.name) for item in (start, end))
        d = np.broadcast_to(np.linalg.norm(end.point - start.point, axis=-1), (self.samples,))
        K = np.broadcast_to(element.matrices.stiffness, (self.samples, 6, 6))
        M = np.broadcast_to(element.matrices.mass, (self.samples, 6, 6))
        k = K[:, 0, 0]
        compliance = None
        stiffness = None
        if k.any():
            compliance = self.law(d, 1.0 / k, 1, element.name)
            stiffness = LengthLaw(numerator=(1.0,), denominator=compliance.numerator)
        axial_masses = []
        lateral_masses = []
        for row in (0, 3):
            axial_mass = M[:, row, 0] + M[:, row, 3]
            if compliance is None:
                axial_masses.append(self.inverse_law(d, axial_mass, element.name))
            else:
                # The product of the mass and the compliance is a polynomial of the length.
                scaled = self.law(d, axial_mass / k, 2, element.name)
                law = LengthLaw(numerator=scaled.numerator, denominator=compliance.numerator)
                axial_masses.append(law)
            lateral_mass = M[:, row + 1, 1] + M[:, row + 1, 4]
            lateral_masses.append(self.inverse_law(d, lateral_mass, element.name))
        return LocalRod(
            name=element.name,
            ends=(ends[0], ends[1]),
            stiffness=stiffness,
            axial_masses=(axial_masses[0], axial_masses[1]),
            lateral_masses=(lateral_masses[0], lateral_masses[1]),
            elongation=self.elongation(element.name, d),
        )

    def link(self, number: int) -> LocalRod:
        """Return the rigid rod with this index; its mass is a separate element."""
        link = self.elastic_machine.structure.links[number]
        ends = tuple(
            self.point(body, position, link.name)
            for body, position in zip(link.bodies, link.points, strict=True)
        )
        d = np.broadcast_to(
            np.linalg.norm(link.points[1] - link.points[0], axis=-1), (self.samples,)
        )
        zero = LengthLaw(numerator=(0.0,))
        return LocalRod(
            name=link.name,
            ends=(ends[0], ends[1]),
            stiffness=None,
            axial_masses=(zero, zero),
            lateral_masses=(zero, zero),
            elongation=self.elongation(link.name, d),
        )

    def elongation(self, name: str, d: Array) -> tuple[LengthLaw, ...]:
        """Return the changes of a rod's length per kelvin of each part."""
        values = self.expansion.elongation.get(name)
        if values is None:
            return (LengthLaw(numerator=(0.0,)),) * self.expansion.count
        return tuple(self.law(d, column, 1, name) for column in np.asarray(values).T)

    def law(self, d: Array, values: Array, degree: int, item: str) -> LengthLaw:
        """Return values (M,) as a polynomial of lengths (M,).

        Raises:
            InputError: the values are not such a polynomial.
        """
        center, half = 0.5 * (d.max() + d.min()), 0.5 * (d.max() - d.min())
        scale = float(np.abs(values).max())
        if half <= CONSTANT_TOLERANCE * self.length:
            return LengthLaw(numerator=(float(self.constant(values, scale, item)),))
        powers = ((d - center) / half)[:, None] ** np.arange(degree + 1)
        scaled_coefficients = np.linalg.lstsq(powers, values, rcond=None)[0]
        self.constant(values - powers @ scaled_coefficients, scale, item)
        polynomial = np.polynomial.Polynomial(
            scaled_coefficients, domain=[center - half, center + half]
        )
        coefficients = polynomial.convert().coef
        return LengthLaw(numerator=tuple(float(c) for c in coefficients))

    def inverse_law(self, d: Array, values: Array, item: str) -> LengthLaw:
        """Return values (M,) as a function (c_0 + c_1 d) / d of lengths (M,)."""
        law = self.law(d, values * d, 1, item)
        return LengthLaw(numerator=law.numerator, denominator=(0.0, 1.0))

    def element(self, element: Element) -> LocalElement:
        """Return an element whose ends belong to the same body."""
        name = element.name
        points = []
        axes = []
        for attachment in element.attachments:
            points.append(self.point(attachment.body, attachment.point, name))
            R = self.rotation(points[-1].body)
            local = np.swapaxes(R, -1, -2) @ np.broadcast_to(attachment.axes, R.shape)
            axes.append(self.constant(local, 1.0, name))
        size = element.external
        K = np.broadcast_to(
            element.matrices.stiffness, (self.samples, *element.matrices.stiffness.shape[-2:])
        )
        stiffness = self.constant(K, float(np.abs(K).max()), name)[:size, :size]
        M = np.broadcast_to(element.matrices.mass, K.shape)
        mass = self.constant(M, float(np.abs(M).max()), name)[:size, :size]
        # Displacements of the coordinates due to unit translations along the axes of the body.
        translations = np.zeros((size, 3))
        row = 0
        for axis, attachment in zip(axes, element.attachments, strict=True):
            node_rows = np.concatenate([axis.T, np.zeros((3, 3))])
            count = len(attachment.freedoms)
            translations[row : row + count] = node_rows[list(attachment.freedoms)]
            row += count
        values = self.expansion.elongation.get(name)
        elongation = np.zeros(self.expansion.count)
        rows = None
        if values is not None:
            elongation = self.constant(values, float(np.abs(values).max()), name)
            starts = [item.freedoms for item in element.attachments]
            rows = (starts[0].index(0), len(starts[0]) + starts[1].index(0))
        return LocalElement(
            name=name,
            points=tuple(points),
            axes=tuple(axes),
            freedoms=tuple(item.freedoms for item in element.attachments),
            stiffness=stiffness,
            weight=mass @ translations,
            elongation=elongation,
            axial_rows=rows,
        )


def prevented_parts(parts: tuple[str, ...], is_prevented: Array) -> Iterator[Problem]:
    """Yield a problem for each part whose expansion rigid parts prevent."""
    for part, prevented in zip(parts, is_prevented, strict=True):
        if prevented:
            what = "rigid parts prevent its thermal expansion"
            yield Problem(part, what, "give joints, rods or drives of its loops a stiffness")
