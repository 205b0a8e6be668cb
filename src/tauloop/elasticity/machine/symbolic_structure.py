"""The compliance of a machine as a function of its coordinates and of all its parameters.

A structure is in equilibrium where its mixed energy (Hellinger-Reissner) is stationary:

    L_ab = w_a · J x_b + w_b · J x_a - Σ (f_a · B x_b + f_b · B x_a - f_a · F f_b)

Here w are wrenches at the tool, and a and b two load cases. x contains the twists of the bodies and
the motions of the joints, and J is the Jacobian of the tool. For each item, B x is its deformation, f
its force and F its flexibility; F = 0 if the item is rigid. In equilibrium L_ab equals the compliance
C_ab. The derivative of C_ab is that of L_ab with constant x and f, so that no derivative of the
equilibrium is needed. Derivatives of the positions follow from the loop closure by the implicit
function theorem.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import ElasticJoint, Element
from tauloop.elasticity.machine.beams import piece_lengths, piece_sections
from tauloop.elasticity.machine.symbolic_twists import carry, symbolic_free_twists
from tauloop.elasticity.static_analysis.gradients import ElasticLaw
from tauloop.equations.assembly.loops import closure, nominal, stacked
from tauloop.equations.operators import cross
from tauloop.equations.tree import TreeMotion, coordinate_rates, symbolic_motion
from tauloop.equations.values import BatchFunction, Values
from tauloop.mechanism.elastic.beams import Beam, BodyBeam
from tauloop.mechanism.elastic.sections import SectionProperties
from tauloop.mechanism.model import BASE, Joint, Mechanism, Placement, Rod
from tauloop.model import Model

#: Singular values of equilibrium and loop equations, relative to the largest, that count as zero.
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SymbolicItem:
    """An item that deforms, or a rigid connection.

    Attributes:
        name: name of the element, joint or combination.
        deformation: matrix B (m, n_x) from the twists and motions x to the deformation.
        flexibility: F (m, m); None for a rigid connection, or if `stiffness` is set.
        stiffness: K (m, m), used instead of a flexibility.
        force: forces (N, m, 6), one column per unit wrench; None if they follow from equilibrium.
    """

    name: str
    deformation: ca.SX
    flexibility: ca.SX | None = None
    stiffness: ca.SX | None = None
    force: Array | None = None


class SymbolicStructure:
    """A machine's structure as expressions of its coordinates and some of its parameters.

    Attributes:
        q, theta: symbols of the coordinates and of the parameters.
        items: all items that deform, and all rigid connections.
        tool: matrix (6, n_x) from x to the twist of the tool.
    """

    def __init__(
        self,
        model: Model,
        assembled: AssembledStructure,
        tool_body: str,
        laws: Collection[ElasticLaw],
        displacement: Array,
        names: Sequence[str],
        *,
        has_shear: bool,
    ) -> None:
        """Build the expressions.

        Args:
            model: the machine.
            assembled: its structure in minimal coordinates at N poses.
            tool_body: body or node that carries the tool.
            laws: expressions of all elastic items.
            displacement: minimal coordinates (N, n, 6) for each unit wrench at the tool.
            names: parameters that become symbols.
            has_shear: whether beams deform in shear.
        """
        self.model = model
        self.assembled = assembled
        self.mechanism: Mechanism = model.assembly.loops.mechanism
        self.displacement = displacement
        self.names = tuple(names)
        self.has_shear = has_shear
        self.theta = ca.SX.sym("theta", len(names))
        symbols = {name: self.theta[i] for i, name in enumerate(names)}
        self.values: Values = nominal(self.mechanism, symbols)
        self.motion: TreeMotion = symbolic_motion(model.topology, self.values)
        self.q = self.motion.q
        structure = assembled.structure
        self.origins = dict(self._origins())
        self.body_columns = {body.name: 6 * i for i, body in enumerate(structure.bodies)}
        size = 6 * len(structure.bodies)
        self.motion_columns: dict[str, int] = {}
        for joint in structure.joints:
            for name in joint.names:
                self.motion_columns[name] = size
                size += 1
        self.size = size
        self.laws = {law.item: law for law in laws}
        tool = self.mechanism.platform.tool
        self.tool = self.point_jacobian(tool_body, self.position(tool))
        self.items = tuple(self._items())

    # Frames

    def position(self, placement: Placement) -> ca.SX:
        """Return the origin (3,) of a frame in the base frame."""
        return self.motion.point(placement).p

    def _rotation(self, placement: Placement) -> ca.SX:
        """Return the axes (3, 3) of a frame in the base frame, as columns."""
        return self.motion.bodies[placement.body].R @ self.values.rotation(placement.turns)

    def _origins(self) -> Iterator[tuple[str, ca.SX]]:
        """Yield the origins (3,) of all bodies and nodes by name."""
        yield BASE, ca.SX(3, 1)
        for body in self.mechanism.bodies:
            pose = self.motion.bodies[body.name]
            yield body.name, pose.p
            for beam in body.beams:
                for end, position in (("start", beam.start), ("end", beam.end)):
                    name = f"{body.name}.{beam.name}.{end}"
                    yield name, pose.p + pose.R @ self.values.vector(position)
        for item in self.mechanism.structures:
            pose = self.motion.bodies[item.body]
            for number, position in enumerate(item.nodes):
                name = f"{item.name}.node{number + 1}"
                yield name, pose.p + pose.R @ self.values.vector(position)

    def point_jacobian(self, body: str, point: ca.SX) -> ca.SX:
        """Return the matrix (6, n_x) that maps x to the twist of a body's point."""
        jacobian = ca.SX(6, self.size)
        if body != BASE:
            column = self.body_columns[body]
            jacobian[:, column : column + 6] = carry(point - self.origins[body])
        return jacobian

    def carried(self, body: str, point: ca.SX, twist: ca.SX) -> ca.SX:
        """Return the twist (6, n) of a body's point from the twist (6, n) of the body's origin."""
        return carry(point - self.origins[body]) @ twist

    # Items

    def _items(self) -> Iterator[SymbolicItem]:
        """Yield all items."""
        structure = self.assembled.structure
        rods = {rod.name: rod for rod in self.mechanism.rods}
        beams = {
            f"{body.name}.{beam.name}": (body.name, beam)
            for body in self.mechanism.bodies
            for beam in body.beams
        }
        motions = self.assembled.element_motion
        for element, rows in zip(structure.elements, motions, strict=True):
            if not element.matrices.stiffness.any():
                continue
            load = element.matrices.stiffness @ (rows @ self.displacement)
            if element.name in rods:
                yield self._rod_item(rods[element.name], element, load)
            elif element.name in beams:
                yield self._beam_item(*beams[element.name], element, load)
            else:
                yield self._reduced_item(element, load)
        for link in structure.links:
            rod = rods[link.name.removesuffix(".length")]
            yield SymbolicItem(name=link.name, deformation=self._stretch(rod, link.bodies))
        joints = {joint.name: joint for joint in self.mechanism.joints}
        rows_of = dict(zip(structure.joints, self.assembled.joint_motion, strict=True))
        for joint, rows in rows_of.items():
            yield from self._joint_items(joints[joint.name], joint, rows @ self.displacement)
        yield from self._combination_items()

    def _stretch(self, rod: Rod, bodies: tuple[str, str]) -> ca.SX:
        """Return the row (1, n_x) that maps x to the elongation of a rod."""
        start, end = self.position(rod.start), self.position(rod.end)
        direction = (end - start) / ca.norm_2(end - start)
        relative = self.point_jacobian(bodies[1], end) - self.point_jacobian(bodies[0], start)
        return direction.T @ relative[:3, :]

    def _rod_item(self, rod: Rod, element: Element, load: Array) -> SymbolicItem:
        """Return the item of a rod that carries tension: its E A in series with its springs."""
        law = self.laws[rod.name]
        compliance = ca.SX(0)
        for spring in law.springs:
            compliance += 1.0 / self.values.scalar(spring)
        if law.beams:
            for length, EA in self._axial_pieces(rod, law.beams):
                compliance += length / EA
        start, end = element.attachments
        force = load[:, [len(start.freedoms) + end.freedoms.index(0)]]
        return SymbolicItem(
            name=rod.name,
            deformation=self._stretch(rod, (start.body, end.body)),
            flexibility=compliance,
            force=force,
        )

    def _axial_pieces(self, rod: Rod, beams: Sequence[Beam]) -> Iterator[tuple[ca.SX, ca.SX]]:
        """Yield the length and E A of each piece of a rod.

        Where the parts of a telescopic rod overlap, they act in parallel.
        """
        if len(beams) == 1:
            yield from (
                (length, self.values.scalar(section.axial_stiffness))
                for length, section in self._pieces(beams[0])
            )
            return
        distance = ca.norm_2(self.position(rod.end) - self.position(rod.start))
        lower_length, lower_section = next(iter(self._pieces(beams[0])))
        upper_length, upper_section = next(iter(self._pieces(beams[1])))
        lower_EA = self.values.scalar(lower_section.axial_stiffness)
        upper_EA = self.values.scalar(upper_section.axial_stiffness)
        yield distance - upper_length, lower_EA
        yield lower_length + upper_length - distance, lower_EA + upper_EA
        yield distance - lower_length, upper_EA

    def _pieces(self, beam: Beam) -> Iterator[tuple[ca.SX, SectionProperties]]:
        """Yield the length and section of each piece of a beam."""
        lengths = piece_lengths(beam)
        for (length, count), section in zip(lengths, piece_sections(beam), strict=True):
            yield ca.SX(self.values.scalar(length)) / count, section

    def _beam_item(self, body: str, beam: BodyBeam, element: Element, load: Array) -> SymbolicItem:
        """Return the item of a beam between two nodes, which deforms like a cantilever."""
        start = self.values.vector(beam.start)
        end = self.values.vector(beam.end)
        x = (end - start) / ca.norm_2(end - start)
        across = self._across(beam)
        y = cross(across, x)
        y = y / ca.norm_2(y)
        axes = self.motion.bodies[body].R @ ca.horzcat(x, y, cross(x, y))
        near, far = (attachment.body for attachment in element.attachments)
        # The nodes are at the beam's ends, so their twists are those of the ends.
        length = ca.norm_2(end - start)
        at_end = self.point_jacobian(near, self.origins[near] + axes[:, 0] * length)
        relative = self.point_jacobian(far, self.origins[far]) - at_end
        local = ca.vertcat(axes.T @ relative[:3, :], axes.T @ relative[3:, :])
        return SymbolicItem(
            name=element.name,
            deformation=local,
            flexibility=self._end_flexibility(beam.beam),
            force=load[:, 6:12],
        )

    def _across(self, beam: BodyBeam) -> ca.SX:
        """Return a direction (3,) in body coordinates that lies in the x-z plane of a beam."""
        if beam.z_axis is not None:
            return ca.SX(np.array(beam.z_axis))
        start = np.array([self.mechanism.value(x) for x in beam.start])
        end = np.array([self.mechanism.value(x) for x in beam.end])
        return ca.SX(np.eye(3)[int(np.argmin(np.abs(end - start)))])

    def _end_flexibility(self, beam: Beam) -> ca.SX:
        """Return the flexibility (6, 6) of a beam's end with its start clamped, in local axes.

        Unit-load method: the bending moments at the distance d from the end are
        M_z = m_z + f_y d and M_y = m_y - f_z d. They are integrated over the pieces.
        """
        F = ca.SX(6, 6)
        pieces = list(self._pieces(beam))
        scalar = self.values.scalar
        remaining = sum((length for length, _ in pieces), ca.SX(0))
        sections = [section for _, section in pieces]
        has_shear = self.has_shear and all(item.shear_stiffness is not None for item in sections)
        for length, section in pieces:
            far, near = remaining, remaining - length
            remaining = near
            EI_y, EI_z = (scalar(stiffness) for stiffness in section.bending_stiffness)
            first_moment = (far**2 - near**2) / 2.0
            second_moment = (far**3 - near**3) / 3.0
            F[0, 0] += length / scalar(section.axial_stiffness)
            F[3, 3] += length / scalar(section.torsional_stiffness)
            F[1, 1] += second_moment / EI_z
            F[1, 5] += first_moment / EI_z
            F[5, 5] += length / EI_z
            F[2, 2] += second_moment / EI_y
            F[2, 4] -= first_moment / EI_y
            F[4, 4] += length / EI_y
            if has_shear and section.shear_stiffness is not None:
                GA_y, GA_z = (scalar(stiffness) for stiffness in section.shear_stiffness)
                F[1, 1] += length / GA_y
                F[2, 2] += length / GA_z
        F[5, 1], F[4, 2] = F[1, 5], F[2, 4]
        return F

    def _reduced_item(self, element: Element, load: Array) -> SymbolicItem:
        """Return the item of a finite-element model.

        Its stiffness is constant in the axes of its body.
        """
        item = next(item for item in self.mechanism.structures if item.name == element.name)
        to_body = self.motion.bodies[item.body].R.T
        rows = []
        for attachment in element.attachments:
            twist = self.point_jacobian(attachment.body, self.origins[attachment.body])
            rows += [to_body @ twist[:3, :], to_body @ twist[3:, :]]
        return SymbolicItem(
            name=element.name,
            deformation=ca.vertcat(*rows),
            stiffness=ca.SX(np.asarray(element.matrices.stiffness)),
            force=load,
        )

    def _joint_items(
        self, joint: Joint, elastic: ElasticJoint, unit_motions: Array
    ) -> Iterator[SymbolicItem]:
        """Yield the items of a joint: springs of its motions, rigid directions and bearings.

        Args:
            joint: the joint of the machine.
            elastic: the same joint in the structure.
            unit_motions: motions (N, f, 6) of the joint for each unit wrench.

        Raises:
            InputError: the joint has a rigid motor, and bearings with a stiffness.
        """
        law = self.laws.get(joint.name, ElasticLaw(item=joint.name))
        point = self.position(joint.child)
        child = self.point_jacobian(elastic.child, point)
        relative = child - self.point_jacobian(elastic.parent, point)
        free = self.free_twists(joint)
        columns = {
            name: self.motion_columns[name]
            for name in joint.velocity_names
            if name in self.motion_columns
        }
        blocked = relative
        for index, name in enumerate(joint.velocity_names):
            if name in columns:
                allowed = ca.SX(6, self.size)
                allowed[:, columns[name]] = free[:, index]
                blocked = blocked - allowed
        springs = dict(law.motions)
        for index, motion_name in enumerate(elastic.names):
            row = ca.SX(1, self.size)
            row[0, self.motion_columns[motion_name]] = 1.0
            if index in springs:
                stiffness = self.values.scalar(springs[index])
                number = self.mechanism.value(springs[index])
                yield SymbolicItem(
                    name=motion_name,
                    deformation=row,
                    flexibility=1.0 / ca.SX(stiffness),
                    force=number * unit_motions[:, [index]],
                )
        if joint.compliance is None:
            yield SymbolicItem(name=joint.name, deformation=blocked)
            return
        matrix = ca.SX(6, 6)
        for i, entries in enumerate(joint.compliance.matrix):
            for j, expression in enumerate(entries):
                matrix[i, j] = self.values.scalar(expression)
        rotation = ca.diagcat(self._rotation(joint.parent), self._rotation(joint.parent))
        rotated_matrix = rotation @ matrix @ rotation.T
        if not joint.compliance.is_stiffness:
            yield SymbolicItem(name=joint.name, deformation=blocked, flexibility=rotated_matrix)
            return
        if set(columns) != set(joint.velocity_names):
            what = (
                "has a rigid motor, and bearings that are defined by a stiffness; this combination is "
                "not supported"
            )
            remedy = "give the motor a stiffness, or the bearings a compliance"
            raise InputError.of(f"joints.{joint.name}", what, remedy)
        # Bearings resist the part of the relative motion that is orthogonal to the free twists.
        # Rotations are weighted by the length of the structure.
        weight = np.diag(np.repeat([1.0, self.assembled.structure.length], 3) ** 2)
        projected = relative
        if joint.velocity_names:
            project = ca.solve(free.T @ weight @ free, free.T @ weight)
            motions = project @ relative
            projected = relative - free @ motions
            for index, name in enumerate(joint.velocity_names):
                row = ca.SX(1, self.size)
                row[0, columns[name]] = 1.0
                yield SymbolicItem(name=f"{joint.name} {name}", deformation=motions[index, :] - row)
        yield SymbolicItem(name=joint.name, deformation=projected, stiffness=rotated_matrix)

    def free_twists(self, joint: Joint) -> ca.SX:
        """Return the twists (6, f) that a joint leaves free.

        Symbolic counterpart of `tauloop.elasticity.machine.joints.free_twists`.
        """
        parent, child = self._rotation(joint.parent), self._rotation(joint.child)
        return symbolic_free_twists(joint, parent, child)

    def _combination_items(self) -> Iterator[SymbolicItem]:
        """Yield the items of gears, and of motors that drive several coordinates."""
        terms = {item.name: item.terms for item in self.mechanism.couplings}
        terms |= {item.name: item.drives for item in self.mechanism.actuators}
        structure = self.assembled.structure
        elastic = [item for item in structure.combinations if item.stiffness]
        rows_of = dict(
            zip((item.name for item in elastic), self.assembled.combination_motion, strict=True)
        )
        for combination in structure.combinations:
            ratios = dict(terms[combination.name])
            row = ca.SX(1, self.size)
            for name, _ in combination.terms:
                row[0, self.motion_columns[name]] += self.values.scalar(ratios[name])
            if combination.name not in rows_of:
                yield SymbolicItem(name=combination.name, deformation=row)
                continue
            spring = self.laws[combination.name].springs[0]
            force = self.mechanism.value(spring) * (rows_of[combination.name] @ self.displacement)
            yield SymbolicItem(
                name=combination.name,
                deformation=row,
                flexibility=1.0 / ca.SX(self.values.scalar(spring)),
                force=force,
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComplianceDerivatives:
    """Compliance of a machine from its mixed energy, and its derivatives at fixed poses.

    Attributes:
        compliance: (N, 6, 6), computed from the mixed energy.
        derivatives: (N, 6, 6, p), with respect to the p parameters.
    """

    compliance: Array
    derivatives: Array


def compliance_derivatives(symbolic: SymbolicStructure, q: Array) -> ComplianceDerivatives:
    """Return the derivatives of the compliance with respect to parameters.

    Independent coordinates are fixed.

    Args:
        symbolic: expressions of the machine.
        q: coordinates (N, n_q).
    """
    samples = len(q)
    theta = np.array(symbolic.mechanism.parameters.vector(symbolic.names), dtype=float)
    x = _twists_and_motions(symbolic)
    forces = _forces(symbolic, q, theta, x)
    size = symbolic.size
    rows = forces.shape[1]
    X, f = ca.SX.sym("x", size, 6), ca.SX.sym("f", rows, 6)
    energy = _mixed_energy(symbolic, X, f)
    upper_triangle = [(i, j) for j in range(6) for i in range(j + 1)]
    entries = ca.vertcat(*(energy[i, j] for i, j in upper_triangle))
    variables = ca.vertcat(symbolic.theta, symbolic.q)
    jacobian = ca.jacobian(entries, variables)
    inputs = [symbolic.q, symbolic.theta, ca.vec(X), ca.vec(f)]
    outputs = [ca.densify(entries), ca.densify(ca.vec(jacobian))]
    function = BatchFunction(ca.Function("derivatives", inputs, outputs))
    numbers = [
        q,
        np.tile(theta, (samples, 1)),
        np.swapaxes(x, 1, 2).reshape(samples, -1),
        np.swapaxes(forces, 1, 2).reshape(samples, -1),
    ]
    values, flat = function(numbers, samples)
    count = len(theta)
    partial = np.swapaxes(flat.reshape(samples, -1, len(upper_triangle)), 1, 2)
    total = partial[..., :count] + partial[..., count:] @ _coordinate_derivatives(
        symbolic, q, theta
    )
    compliance = np.zeros((samples, 6, 6))
    derivatives = np.zeros((samples, 6, 6, count))
    for k, (i, j) in enumerate(upper_triangle):
        compliance[:, i, j] = compliance[:, j, i] = values[:, k]
        derivatives[:, i, j] = derivatives[:, j, i] = total[:, k]
    return ComplianceDerivatives(compliance=compliance, derivatives=derivatives)


def _mixed_energy(symbolic: SymbolicStructure, X: ca.SX, f: ca.SX) -> ca.SX:
    """Return the mixed energy L (6, 6) for unit wrenches.

    Args:
        symbolic: expressions of the machine.
        X: twists and motions (n_x, 6), one column per unit wrench.
        f: forces (M, 6) of all items, one column per unit wrench.
    """
    work = symbolic.tool @ X
    energy = work + work.T
    offset = 0
    for item in symbolic.items:
        count = item.deformation.shape[0]
        force = f[offset : offset + count, :]
        offset += count
        deformation = item.deformation @ X
        if item.stiffness is not None:
            energy -= deformation.T @ item.stiffness @ deformation
            continue
        mixed = force.T @ deformation
        energy -= mixed + mixed.T
        if item.flexibility is not None:
            energy += force.T @ item.flexibility @ force
    return energy


def _twists_and_motions(symbolic: SymbolicStructure) -> Array:
    """Return x (N, n_x, 6): twists of all bodies and motions of all joints per unit wrench."""
    assembled = symbolic.assembled
    displacement = symbolic.displacement
    structure = assembled.structure
    parts = [assembled.body_motion[body.name] @ displacement for body in structure.bodies]
    parts += [rows @ displacement for rows in assembled.joint_motion]
    return np.concatenate(parts, axis=1)


def _forces(symbolic: SymbolicStructure, q: Array, theta: Array, x: Array) -> Array:
    """Return the forces (N, M, 6) of all items, one column per unit wrench.

    The unknown forces f_u of rigid items follow from equilibrium: B_uᵀ f_u = Jᵀ - B_kᵀ f_k with the
    known forces f_k. A bearing with a compliance also satisfies F f_u = B_u x. For redundant
    constraints, the minimum-norm solution is used.
    """
    samples = len(q)
    size = symbolic.size
    items = symbolic.items
    outputs = [ca.densify(ca.vec(symbolic.tool))]
    outputs += [ca.densify(ca.vec(item.deformation)) for item in items]
    open_items = [item for item in items if item.force is None]
    outputs += [
        ca.densify(ca.vec(item.flexibility)) for item in open_items if item.flexibility is not None
    ]
    function = BatchFunction(ca.Function("items", [symbolic.q, symbolic.theta], outputs))
    tool, *values = function([q, np.tile(theta, (samples, 1))], samples)

    def matrices(flat: Array, columns: int) -> Array:
        return np.swapaxes(flat.reshape(samples, columns, -1), 1, 2)

    length = symbolic.assembled.structure.length
    weight = np.ones(size)
    for column in symbolic.body_columns.values():
        weight[column + 3 : column + 6] = 1.0 / length
    unbalanced = np.swapaxes(matrices(tool, size), 1, 2)
    unknown = []
    for item, flat in zip(items, values, strict=False):
        B = matrices(flat, size)
        if item.force is None:
            unknown.append(B)
        else:
            unbalanced = unbalanced - np.swapaxes(B, 1, 2) @ item.force
    solved = np.zeros((samples, 0, 6))
    if unknown:
        B_u = np.concatenate(unknown, axis=1)
        A = np.swapaxes(B_u, 1, 2) * weight[:, None]
        right = unbalanced * weight[:, None]
        flexible = iter(values[len(items) :])
        offset = 0
        rows = [A]
        sides = [right]
        for item, B in zip(open_items, unknown, strict=True):
            count = B.shape[1]
            if item.flexibility is not None:
                F = matrices(next(flexible), count)
                scale = np.abs(F).max(axis=(1, 2), keepdims=True)
                row = np.zeros((samples, count, B_u.shape[1]))
                row[..., offset : offset + count] = F / scale
                rows.append(row)
                sides.append(B @ x / scale)
            offset += count
        A = np.concatenate(rows, axis=1)
        right = np.concatenate(sides, axis=1)
        solved = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ right
    forces = []
    offset = 0
    for item in items:
        count = item.deformation.shape[0]
        if item.force is None:
            forces.append(solved[:, offset : offset + count])
            offset += count
        else:
            forces.append(np.broadcast_to(item.force, (samples, count, 6)))
    return np.concatenate(forces, axis=1)


def _coordinate_derivatives(symbolic: SymbolicStructure, q: Array, theta: Array) -> Array:
    """Return the derivatives (N, n_q, p) of the coordinates with respect to parameters.

    The independent coordinates are constant. The dependent velocities v_d solve K_d v_d = -∂φ/∂θ with
    the loop equations φ = 0 and their Jacobian K_d. The derivatives are N v, where N maps velocities to
    derivatives of the coordinates.
    """
    samples = len(q)
    assembly = symbolic.model.assembly
    topology = symbolic.model.topology
    n_v = topology.n_v
    count = len(theta)
    rows = closure(symbolic.mechanism, symbolic.motion)
    if not rows:
        return np.zeros((samples, q.shape[1], count))
    phi, rate, _ = stacked(rows)
    K = ca.jacobian(rate, symbolic.motion.v)
    N = coordinate_rates(topology, symbolic.q)
    outputs = [ca.densify(ca.vec(item)) for item in (K, ca.jacobian(phi, symbolic.theta), N)]
    function = BatchFunction(ca.Function("closure", [symbolic.q, symbolic.theta], outputs))
    flat = function([q, np.tile(theta, (samples, 1))], samples)
    K_values = np.swapaxes(flat[0].reshape(samples, n_v, -1), 1, 2)
    phi_theta = np.swapaxes(flat[1].reshape(samples, count, -1), 1, 2)
    N_values = np.swapaxes(flat[2].reshape(samples, n_v, -1), 1, 2)
    fixed = {*assembly.independent, *assembly.locked}
    moving = [i for i in range(n_v) if i not in fixed]
    loops = assembly.loops
    row_scale = loops.row_scale[:, None]
    v_scale = loops.velocity_scale[moving]
    scaled = row_scale * K_values[..., moving] * v_scale
    v = np.zeros((samples, n_v, count))
    right = -row_scale * phi_theta
    v[:, moving] = v_scale[:, None] * (np.linalg.pinv(scaled, rcond=RANK_TOLERANCE) @ right)
    return np.asarray(N_values @ v)
