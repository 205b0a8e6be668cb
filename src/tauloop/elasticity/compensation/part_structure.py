"""Symbolic expressions for the tool deflection, as functions of the poses of a machine's bodies.

The expressions solve the same equations as `stiffness` and `thermal_expansion`. The joints form a
tree that defines the coordinates. Loop-closing joints add constraints that eliminate some of them.
The other coordinates minimize the energy of all elements under loads and heat. Here the parts of the
structure are numbers in the frames of bodies. In `SymbolicStructure`, which computes
derivatives, they are expressions of the parameters of the machine file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import casadi as ca
import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.compiler.builder import ProgramBuilder
from tauloop.elasticity.compensation.local_parts import (
    LengthLaw,
    LocalElement,
    LocalJoint,
    LocalParts,
    LocalPoint,
    LocalRod,
)
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.machine.symbolic_twists import carry
from tauloop.mechanism.model import BASE

#: Constraints count as dependent if a singular value relative to the largest is below this value.
RANK_TOLERANCE = 1e-9
#: Maximum condition number, over the sampled poses, of the constraint Jacobian with respect to the
#: dependent coordinates.
MAX_DEPENDENT_CONDITION = 1e8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Displacement:
    """A displacement (k,) that is linear in the coordinates, plus a thermal displacement.

    Attributes:
        rows: matrix (k, n) from the coordinates to the displacement.
        thermal: displacement (k, 1) due to thermal expansion.
    """

    rows: ca.SX
    thermal: ca.SX

    def __add__(self, other: Displacement) -> Displacement:
        """Return the sum."""
        return Displacement(rows=self.rows + other.rows, thermal=self.thermal + other.thermal)

    def __sub__(self, other: Displacement) -> Displacement:
        """Return the difference."""
        return Displacement(rows=self.rows - other.rows, thermal=self.thermal - other.thermal)

    def times(self, matrix: ca.SX) -> Displacement:
        """Return the product (m,) of a constant or symbolic matrix (m, k) and the displacement."""
        return Displacement(rows=matrix @ self.rows, thermal=matrix @ self.thermal)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strain:
    """A generalized strain: a displacement that a stiffness resists."""

    displacement: Displacement
    stiffness: ca.SX


class SymbolicPartStructure:
    """Symbolic stiffness equations of a structure at given poses of its bodies.

    Attributes:
        parts: parts of the structure in the frames of bodies.
        frames: orientation (3, 3) and origin (3,) of each body of the machine, by name.
        temperatures: (p,) temperatures of the parts that expand, relative to the reference, K.
        size: number n of coordinates of the tree.
        motions: twist (6) of each node about its origin, by name.
    """

    def __init__(
        self,
        parts: LocalParts,
        frames: Mapping[str, tuple[ca.SX, ca.SX]],
        temperatures: ca.SX,
    ) -> None:
        """Derive the twists of all nodes, from the base to the ends of the tree."""
        self.parts = parts
        self.temperatures = temperatures
        self.frames = {**frames, BASE: (ca.SX.eye(3), ca.SX(3, 1))}
        self.motions = self._tree_motions()

    # Frames

    def position(self, point: LocalPoint) -> ca.SX:
        """Return the position (3,) of a point in the base frame."""
        R, p = self.frames[point.body]
        return p + R @ ca.DM(point.position)

    def origin(self, node: str) -> ca.SX:
        """Return the origin (3,) of a node in the base frame."""
        return ca.SX(3, 1) if node == BASE else self.position(self.parts.bodies[node].origin)

    def thermal_strain(self, node: str) -> ca.SX:
        """Return the thermal strain of the body or node with this name."""
        coefficients = self.parts.scaling.get(node)
        if coefficients is None or not np.any(coefficients):
            return ca.SX(0)
        return ca.DM(coefficients).T @ self.temperatures

    def point_twist(self, node: str, position: ca.SX) -> Displacement:
        """Return the twist (6) of a point that moves with a node and its thermal expansion.

        Args:
            node: name of the node.
            position: (3,) position of the point in the base frame.
        """
        offset = position - self.origin(node)
        rigid = self.motions[node].times(carry(offset))
        expansion = ca.vertcat(offset * self.thermal_strain(node), ca.SX(3, 1))
        return Displacement(rows=rigid.rows, thermal=rigid.thermal + expansion)

    def twists(self, joint: LocalJoint) -> ca.SX:
        """Return the free and elastic twists (6, f) of a joint in the axes of the base."""
        columns = [ca.SX(6, 0)]
        for index, body in enumerate(joint.frames):
            R = self.frames[body][0]
            local = ca.DM(joint.twists[:, index])
            columns.append(ca.vertcat(R @ local[:3], R @ local[3:]))
        return ca.sparsify(ca.horzcat(*columns))

    def _tree_motions(self) -> dict[str, Displacement]:
        """Return the twists of all nodes, by name, as functions of the coordinates of the tree."""
        steps: list[tuple[LocalJoint | None, str, str]] = []
        far_ends = {far for _, _, far in self.parts.tree}
        steps += [(None, BASE, node) for node in self.parts.bodies if node not in far_ends]
        steps += list(self.parts.tree)
        self.size = sum(6 if joint is None else joint.joint.count for joint, _, _ in steps)
        self.motions = {BASE: Displacement(rows=ca.SX(6, self.size), thermal=ca.SX(6, 1))}
        start = 0
        for joint, near, far in steps:
            rows = ca.SX(6, self.size)
            if joint is None:
                rows[:, start : start + 6] = ca.SX.eye(6)
                self.motions[far] = Displacement(rows=rows, thermal=ca.SX(6, 1))
                start += 6
                continue
            position = self.position(joint.point)
            sign = 1.0 if joint.joint.parent == near else -1.0
            count = joint.joint.count
            if count:
                rows[:, start : start + count] = sign * self.twists(joint)
            start += count
            joint_twist = Displacement(rows=rows, thermal=ca.SX(6, 1))
            offset = self.origin(far) - position
            expansion = ca.vertcat(offset * self.thermal_strain(far), ca.SX(3, 1))
            rigid = (self.point_twist(near, position) + joint_twist).times(carry(offset))
            self.motions[far] = Displacement(rows=rigid.rows, thermal=rigid.thermal + expansion)
        return self.motions

    # Elements

    def _relative(self, joint: LocalJoint) -> Displacement:
        """Return the twist (6) of a joint's child relative to its parent."""
        position = self.position(joint.point)
        return self.point_twist(joint.joint.child, position) - self.point_twist(
            joint.joint.parent, position
        )

    def _joint_motion(self, joint: LocalJoint) -> Displacement:
        """Return the motions (f) of a joint."""
        frames = set(joint.frames)
        if len(frames) == 1:
            # The twists are constant in a single frame, so their pseudoinverse is numeric.
            R = self.frames[frames.pop()][0]
            local = self._relative(joint).times(ca.diagcat(R.T, R.T))
            return local.times(ca.SX(ca.DM(np.linalg.pinv(joint.twists))))
        T = self.twists(joint)
        return self._relative(joint).times(ca.solve(T.T @ T, T.T))

    def _elongation(self, rod: LocalRod) -> tuple[ca.SX, ca.SX, Displacement]:
        """Return the direction (3,) of a rod, its length, and its elastic elongation (1)."""
        positions = [self.position(end) for end in rod.ends]
        difference = positions[1] - positions[0]
        d = ca.norm_2(difference)
        e = difference / d
        ends = [
            self.point_twist(end.node, position)
            for end, position in zip(rod.ends, positions, strict=True)
        ]
        axial_row = ca.horzcat(e.T, ca.SX(1, 3))
        change = (ends[1] - ends[0]).times(ca.sparsify(axial_row))
        expansion = ca.SX(0)
        for index, law in enumerate(rod.elongation):
            expansion += at_length(law, d) * self.temperatures[index]
        return e, d, Displacement(rows=change.rows, thermal=change.thermal - expansion)

    def _attachment_displacement(self, element: LocalElement) -> Displacement:
        """Return the displacements (k) of an element's attachments, in their local axes."""
        rows = [ca.SX(0, self.size)]
        thermal_parts = [ca.SX(0, 1)]
        for point, axes, freedoms in zip(
            element.points, element.axes, element.freedoms, strict=True
        ):
            A = self.frames[point.body][0] @ ca.DM(axes)
            local = self.point_twist(point.node, self.position(point)).times(ca.diagcat(A.T, A.T))
            rows.append(local.rows[list(freedoms), :])
            thermal_parts.append(local.thermal[list(freedoms)])
        return Displacement(rows=ca.vertcat(*rows), thermal=ca.vertcat(*thermal_parts))

    def strains(self) -> Iterator[Strain]:
        """Yield all displacements that a stiffness resists."""
        parts = self.parts
        for rod in parts.rods:
            if rod.stiffness is not None:
                _, d, change = self._elongation(rod)
                yield Strain(displacement=change, stiffness=at_length(rod.stiffness, d))
        for element in parts.elements:
            displacement = self._attachment_displacement(element)
            thermal = ca.SX(displacement.thermal)
            if element.axial_rows is not None:
                expansion = ca.DM(element.elongation).T @ self.temperatures
                thermal[element.axial_rows[0]] += 0.5 * expansion
                thermal[element.axial_rows[1]] -= 0.5 * expansion
            K = ca.sparsify(ca.SX(ca.DM(element.stiffness)))
            yield Strain(
                displacement=Displacement(rows=displacement.rows, thermal=thermal), stiffness=K
            )
        for joint in (*(item for item, _, _ in parts.tree), *parts.closing):
            if joint.stiffness is not None and joint.joint.count:
                K = ca.sparsify(ca.SX(ca.DM(joint.stiffness)))
                yield Strain(displacement=self._joint_motion(joint), stiffness=K)
        for combination in parts.combinations:
            if combination.stiffness:
                motion = self._combined(combination.terms)
                yield Strain(displacement=motion, stiffness=ca.SX(combination.stiffness))

    def _combined(self, terms: tuple[tuple[str, Array], ...]) -> Displacement:
        """Return the sum (1) of joint motions, each times its ratio."""
        total = Displacement(rows=ca.SX(1, self.size), thermal=ca.SX(1, 1))
        joints = (*(item for item, _, _ in self.parts.tree), *self.parts.closing)
        for name, ratio in terms:
            for joint in joints:
                if name in joint.joint.names:
                    index = joint.joint.names.index(name)
                    motion = self._joint_motion(joint)
                    factor = float(np.ravel(ratio)[0])
                    row = Displacement(
                        rows=factor * motion.rows[index, :], thermal=factor * motion.thermal[index]
                    )
                    total = total + row
        return total

    # Constraints

    def constraints(self) -> Iterator[Displacement]:
        """Yield the displacements that loop-closing joints, rigid rods and gears keep at zero."""
        for joint in self.parts.closing:
            blocked = self._blocked_directions(joint)
            if blocked.size1():
                yield self._relative(joint).times(blocked)
        for link in self.parts.links:
            yield self._elongation(link)[2]
        for combination in self.parts.combinations:
            if not combination.stiffness:
                yield self._combined(combination.terms)

    def _blocked_directions(self, joint: LocalJoint) -> ca.SX:
        """Return the directions (6 - f, 6) that a joint blocks.

        Raises:
            InputError: the joint's twists are constant in different frames, and it is not a
                universal joint.
        """
        frames = set(joint.frames)
        length = self.parts.length
        weight = np.repeat([1.0, length], 3)
        if len(frames) <= 1:
            R = self.frames[frames.pop() if frames else joint.point.body][0]
            U, _, _ = np.linalg.svd(joint.twists * weight[:, None], full_matrices=True)
            rows = U[:, joint.joint.count :].T * weight
            return ca.sparsify(ca.SX(ca.DM(rows)) @ ca.diagcat(R.T, R.T))
        if joint.joint.count != 2 or np.any(joint.twists[:3]):
            what = "closes a loop, and has one axis fixed in each of its two bodies"
            remedy = "cut the loop at another joint (`cut: yes`), or use `tauloop.compensate`"
            raise InputError.of(f"joints.{joint.joint.name}", what, remedy)
        axes = self.twists(joint)[3:, :]
        blocked_axis = length * ca.cross(axes[:, 0], axes[:, 1])
        translations = ca.horzcat(ca.SX.eye(3), ca.SX(3, 3))
        return ca.sparsify(ca.vertcat(translations, ca.horzcat(ca.SX(1, 3), blocked_axis.T)))

    # Loads

    def load(self, wrench: ca.SX, gravity: Array) -> ca.SX:
        """Return the generalized forces (n,) due to weight and a wrench at the tool."""
        force = self.tool.rows.T @ wrench
        g = ca.DM(gravity)
        for name, body in self.parts.bodies.items():
            if body.mass:
                R = self.frames[body.origin.body][0]
                weight = ca.vertcat(body.mass * g, ca.cross(R @ ca.DM(body.moment), ca.SX(g)))
                force += self.motions[name].rows.T @ weight
        for rod in self.parts.rods:
            force += self._rod_weight(rod, g)
        for element in self.parts.elements:
            if not np.any(element.weight):
                continue
            local = self.frames[element.points[0].body][0].T @ g
            force += self._attachment_displacement(element).rows.T @ (ca.DM(element.weight) @ local)
        return force

    def _rod_weight(self, rod: LocalRod, g: ca.DM) -> ca.SX:
        """Return the generalized forces (n,) due to a rod's weight."""
        force = ca.SX(self.size, 1)
        e, d, _ = self._elongation(rod)
        for end, axial_mass, lateral_mass in zip(
            rod.ends, rod.axial_masses, rod.lateral_masses, strict=True
        ):
            axial = at_length(axial_mass, d)
            lateral = at_length(lateral_mass, d)
            end_force = lateral * g + (axial - lateral) * ca.dot(e, g) * e
            twist = self.point_twist(end.node, self.position(end))
            force += twist.rows[:3, :].T @ end_force
        return force

    @property
    def tool(self) -> Displacement:
        """Twist (6) of the tool center point."""
        return self.point_twist(self.parts.tool.node, self.position(self.parts.tool))

    # Solution

    def tool_twist(self, builder: ProgramBuilder, wrench: ca.SX, gravity: Array) -> ca.SX:
        """Return the twist (6,) of the tool due to a wrench, weight and heat.

        Args:
            builder: builder of the program, to which the linear solves are added.
            wrench: (6,) force and moment at the tool, N and N m.
            gravity: (3,) acceleration of gravity, m/s^2.

        Raises:
            InputError: the rank or the independent set of the loop constraints changes between poses.
        """
        total = Displacement(rows=ca.SX.eye(self.size), thermal=ca.SX(self.size, 1))
        rows = list(self.constraints())
        if rows:
            total = self._eliminated(builder, rows)
        K = ca.SX(self.size, self.size)
        force = self.load(wrench, gravity)
        for strain in self.strains():
            B = strain.displacement.rows
            KB = strain.stiffness @ B
            K += B.T @ KB
            force -= KB.T @ (strain.displacement.thermal + B @ total.thermal)
        G = ca.sparsify(total.rows)
        reduced = ca.sparsify(G.T @ K @ G)
        y = builder.solve_symmetric(ca.densify(reduced), G.T @ force, "deflection")
        x = G @ y + total.thermal
        return self.tool.rows @ x + self.tool.thermal

    def _eliminated(self, builder: ProgramBuilder, rows: list[Displacement]) -> Displacement:
        """Return all coordinates as functions of the free coordinates and of heat.

        The constraints determine the dependent coordinates.
        """
        A = ca.vertcat(*(row.rows for row in rows))
        c = ca.vertcat(*(row.thermal for row in rows))
        values = builder.at_samples(ca.densify(A)).reshape(-1, self.size, A.size1())
        samples = np.swapaxes(values, -1, -2)
        independent, dependent = independent_rows(samples)
        free = [i for i in range(self.size) if i not in dependent]
        G = ca.SX(self.size, len(free))
        right = ca.horzcat(-A[independent, free], -c[independent])
        solved = builder.solve(A[independent, dependent], right, "loops of the structure")
        for column, index in enumerate(free):
            G[index, column] = 1.0
        thermal = ca.SX(self.size, 1)
        for row, index in enumerate(dependent):
            G[index, :] = solved[row, : len(free)]
            thermal[index] = solved[row, len(free)]
        return Displacement(rows=G, thermal=thermal)


def at_length(law: LengthLaw, d: ca.SX) -> ca.SX:
    """Return the value of a rational function of a rod's length d."""

    def polynomial(coefficients: tuple[float, ...]) -> ca.SX:
        value = ca.SX(0)
        for coefficient in reversed(coefficients):
            value = value * d + coefficient
        return value

    if law.denominator == (1.0,):
        return polynomial(law.numerator)
    return polynomial(law.numerator) / polynomial(law.denominator)


def independent_rows(samples: Array) -> tuple[list[int], list[int]]:
    """Return the indices of r independent constraints, and of r coordinates that they determine.

    Args:
        samples: matrices (M, c, n) of c constraints at M poses.

    Raises:
        InputError: the rank r or the independent constraints differ between the poses.
    """
    from scipy.linalg import qr

    norms = np.linalg.norm(samples, axis=-1, keepdims=True)
    is_row = norms > RANK_TOLERANCE * norms.max(axis=1, keepdims=True, initial=0.0)
    scaled = np.where(is_row, samples / np.where(is_row, norms, 1.0), 0.0)
    first = scaled[0]
    rank = int(np.linalg.matrix_rank(first, RANK_TOLERANCE))
    _, _, order = qr(first.T, pivoting=True, mode="economic")
    independent = sorted(int(i) for i in order[:rank])
    _, _, columns = qr(first[independent], pivoting=True, mode="economic")
    dependent = sorted(int(i) for i in columns[:rank])
    square = scaled[:, independent][:, :, dependent]
    is_same = all(int(np.linalg.matrix_rank(item, RANK_TOLERANCE)) == rank for item in scaled)
    if not is_same or np.linalg.cond(square).max() > MAX_DEPENDENT_CONDITION:
        what = "the rank or the independent set of the loop constraints changes between poses"
        raise InputError.of("structure", what, "use `tauloop.compensate` for this machine")
    return independent, dependent
