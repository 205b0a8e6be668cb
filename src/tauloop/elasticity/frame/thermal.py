"""Motion and internal forces of a structure due to the free expansion of its parts.

A heated element has a new stress-free shape, and its stiffness resists deviations from this shape.
A heated rigid body scales about its origin. The displacement of the structure is the sum of two
motions. The first motion restores compatibility at joints and rigid links after the free expansion
of the parts. The second motion is one of the unheated structure that minimizes the energy of all
elements. Both are linear in the expansion.
Source: Przemieniecki 1968, Theory of matrix structural analysis, chapter 5 (equivalent loads).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tauloop.common.errors import AssemblyError
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import (
    Attachment,
    ElasticJoint,
    Element,
    MotionCombination,
    RigidLink,
    Structure,
    in_local_axes,
    transport,
)
from tauloop.mechanism.model import BASE
from tauloop.mechanism.suggestions import listing

#: Constraints count as dependent if a singular value relative to the largest is below this value.
RANK_TOLERANCE = 1e-9
#: Largest gap between rigid parts, relative to the largest expansion, that counts as rounding.
GAP_TOLERANCE = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreeExpansion:
    """The expansion of a structure's parts per kelvin of each of p temperatures.

    Attributes:
        count: number of temperatures p.
        scaling: coefficients (p,) of rigid bodies and the base by name, 1/K; bodies that are not
            listed keep their size.
        elongation: changes of length (N, p) of elements and rigid links by name, m/K.
    """

    count: int
    scaling: Mapping[str, Array]
    elongation: Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThermalResponse:
    """The motion of a structure and its internal loads per kelvin of each of p temperatures.

    Attributes:
        structure: bodies, joints and elements of the heated machine.
        expansion: free expansion of its parts per kelvin.
        twist: twists (N, 6, p) of the bodies' origins by name.
        loads: forces and moments (N, k, p) on the coordinates of each element by name.
        deformations: elastic deformation (N, k, p) of elements, joints and combinations by name.
        unbalance: largest residual generalized force, relative to the forces of fully constrained
            expansion.
        conditions: names of the joint, rigid link or gear of each of c compatibility conditions.
        gaps: (N, c, p) remaining gap of each condition, m/K; it exceeds rounding errors if rigid
            parts prevent the expansion.
        free_gaps: (p,) largest gap that free expansion would cause without a motion of the bodies,
            m/K.
    """

    structure: Structure
    expansion: FreeExpansion
    twist: Mapping[str, Array]
    loads: Mapping[str, Array]
    deformations: Mapping[str, Array]
    unbalance: float
    conditions: tuple[str, ...]
    gaps: Array
    free_gaps: Array

    @property
    def is_prevented(self) -> Array:
        """Whether rigid parts prevent the expansion due to each temperature (p,) alone."""
        largest = np.abs(self.gaps).max(axis=(0, 1), initial=0.0)
        return np.asarray(largest > GAP_TOLERANCE * self.free_gaps.max(initial=0.0))

    def require_closed(self, temperatures: Array) -> None:
        """Check that rigid parts do not prevent the expansion at temperatures (p,) or (N, p).

        Raises:
            AssemblyError: rigid parts prevent the expansion; the error names them.
        """
        remaining = (self.gaps @ temperatures[..., None])[..., 0]
        error = np.abs(remaining).max(axis=0, initial=0.0)
        limit = GAP_TOLERANCE * float((np.abs(temperatures) @ self.free_gaps).max(initial=0.0))
        order = [int(index) for index in np.argsort(-error) if error[index] > limit]
        if not order:
            return
        names = dict.fromkeys(self.conditions[index] for index in order)
        what = (
            f"rigid parts prevent the thermal expansion: a gap of {1e6 * error[order[0]]:.3g} um "
            f"remains at {listing(names, 6)}"
        )
        remedy = "give joints, rods or drives of these loops a stiffness"
        raise AssemblyError.of(next(iter(names)), what, remedy)

    def point_motion(self, body: str, point: Array) -> Array:
        """Return the twist (N, 6, p) of a point (N, 3) of a body, per kelvin."""
        motions = _PointMotions(self.structure, self.expansion)
        offset = point - motions.origin(body)
        by_expansion = motions.expansion_displacement(body, point)
        return np.asarray(transport(offset) @ self.twist[body] + by_expansion)


class _PointMotions:
    """Motions of points as functions of the bodies' twists, and due to expansion.

    A motion is affine, and represented by a pair: a matrix (N, k, m) from the scaled twists (u, L θ)
    of all bodies, and the motion (N, k, p) due to expansion per kelvin.
    """

    def __init__(self, structure: Structure, expansion: FreeExpansion) -> None:
        """Assign columns to the bodies; their scaled twists (u, L θ) are lengths."""
        self.samples, self.length = structure.samples, structure.length
        self.expansion = expansion
        self.origins = {body.name: body.origin for body in structure.bodies}
        self.body_columns = {name: 6 * index for index, name in enumerate(self.origins)}
        self.size = 6 * len(self.origins)
        self.weight = np.repeat([1.0, self.length], 3)

    def origin(self, body: str) -> Array:
        """Return the origin (N, 3) or (3,) of a body."""
        return np.asarray(self.origins.get(body, np.zeros(3)))

    def expansion_displacement(self, body: str, point: Array) -> Array:
        """Return the displacement (N, 6, p) of a body's point (N, 3) or (3,) due to expansion."""
        result = np.zeros((self.samples, 6, self.expansion.count))
        coefficients = self.expansion.scaling.get(body)
        if coefficients is not None:
            offset = np.broadcast_to(point - self.origin(body), (self.samples, 3))
            result[:, :3] = offset[..., None] * coefficients
        return result

    def point_twist(self, body: str, point: Array) -> tuple[Array, Array]:
        """Return the twist of a body's point: matrix (N, 6, m), and expansion (N, 6, p)."""
        rows = np.zeros((self.samples, 6, self.size))
        if body != BASE:
            columns = slice(self.body_columns[body], self.body_columns[body] + 6)
            rows[..., columns] = transport(point - self.origin(body)) / self.weight
        return rows, self.expansion_displacement(body, point)

    def relative_twist(self, joint: ElasticJoint) -> tuple[Array, Array]:
        """Return the twist of a joint's child relative to its parent, as `point_twist` does."""
        child_rows, child_expansion = self.point_twist(joint.child, joint.point)
        parent_rows, parent_expansion = self.point_twist(joint.parent, joint.point)
        return child_rows - parent_rows, child_expansion - parent_expansion

    def joint_motion(self, joint: ElasticJoint) -> tuple[Array, Array]:
        """Return the motions of a joint: matrix (N, f, m), and expansion (N, f, p)."""
        rows, by_expansion = self.relative_twist(joint)
        if not joint.count:
            return rows[:, :0], by_expansion[:, :0]
        inverse = np.linalg.pinv(joint.motion)
        return inverse @ rows, inverse @ by_expansion

    def attachment_motion(self, attachment: Attachment) -> tuple[Array, Array]:
        """Return the motion of an attachment's degrees of freedom.

        It is a matrix (N, k, m), and the motion due to expansion (N, k, p).
        """
        freedoms = list(attachment.freedoms)
        rows, by_expansion = self.point_twist(attachment.body, attachment.point)
        local_rows = in_local_axes(attachment.axes, rows)
        local_expansion = in_local_axes(attachment.axes, by_expansion)
        return local_rows[..., freedoms, :], local_expansion[..., freedoms, :]

    def combined_motion(
        self, combination: MotionCombination, joints: Mapping[str, tuple[Array, Array]]
    ) -> tuple[Array, Array]:
        """Return a combination of joint motions: matrix (N, 1, m), and expansion (N, 1, p)."""
        rows = np.zeros((self.samples, 1, self.size))
        by_expansion = np.zeros((self.samples, 1, self.expansion.count))
        for name, ratio in combination.terms:
            factor = np.asarray(ratio)[..., None, None]
            joint_rows, joint_expansion = joints[name]
            rows = rows + factor * joint_rows
            by_expansion = by_expansion + factor * joint_expansion
        return rows, by_expansion


def thermal_response(assembled: AssembledStructure, expansion: FreeExpansion) -> ThermalResponse:
    """Return the motion of a structure and its internal loads, per kelvin of each temperature.

    The motion is x = x_0 + B y. The columns of B are the motions of the unheated structure. A x_0 = c
    are the compatibility conditions of joints and links. y minimizes ½ Σ (D x - d)ᵀ K (D x - d) over
    the elements, where D x is the deformation of an element due to x, d its free thermal deformation,
    and K its stiffness.

    Args:
        assembled: the structure.
        expansion: free expansion of its parts.

    Raises:
        AssemblyError: a motion causes no deformation.
    """
    assembled.require_no_mechanism()
    structure = assembled.structure
    motions = _PointMotions(structure, expansion)
    joints = _joints_by_name(motions, structure.joints)
    conditions, A, c = _all_conditions(motions, structure, joints)
    x_0 = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ c
    element_terms = tuple(_element_deformations(assembled, motions, x_0))
    spring_terms = tuple(_spring_deformations(assembled, motions, x_0, joints))
    force = np.zeros((assembled.samples, assembled.size, expansion.count))
    scale = np.zeros_like(force)
    for motion, stiffness, deformation in (*element_terms, *spring_terms):
        contribution = np.swapaxes(motion, -1, -2) @ (stiffness @ deformation)
        force += contribution
        scale += np.abs(contribution)
    y = -np.linalg.solve(assembled.stiffness, force)
    residual = force + assembled.stiffness @ y
    loads = {
        element.name: stiffness @ (deformation + motion @ y)
        for element, (motion, stiffness, deformation) in zip(
            structure.elements, element_terms, strict=True
        )
    }
    elastic = [item.name for item in structure.joints if item.stiffness is not None and item.count]
    elastic += [item.name for item in structure.combinations if item.stiffness]
    names = [*(element.name for element in structure.elements), *elastic]
    deformations = {
        name: deformation + motion @ y
        for name, (motion, _, deformation) in zip(
            names, (*element_terms, *spring_terms), strict=True
        )
    }
    twist = {BASE: np.zeros((assembled.samples, 6, expansion.count))}
    for name, column in motions.body_columns.items():
        compatible = x_0[:, column : column + 6] / motions.weight[:, None]
        twist[name] = compatible + assembled.body_motion[name] @ y
    largest = scale.max(initial=0.0)
    return ThermalResponse(
        structure=structure,
        expansion=expansion,
        twist=twist,
        loads=loads,
        deformations=deformations,
        unbalance=float(np.abs(residual).max(initial=0.0) / largest) if largest > 0.0 else 0.0,
        conditions=conditions,
        gaps=A @ x_0 - c,
        free_gaps=np.abs(c).max(axis=(0, 1), initial=0.0),
    )


def _joints_by_name(
    motions: _PointMotions, joints: tuple[ElasticJoint, ...]
) -> dict[str, tuple[Array, Array]]:
    """Return all joint motions by full name: matrix (N, 1, m), and expansion (N, 1, p)."""
    by_name = {}
    for joint in joints:
        rows, by_expansion = motions.joint_motion(joint)
        for index, name in enumerate(joint.names):
            by_name[name] = rows[:, index : index + 1], by_expansion[:, index : index + 1]
    return by_name


def _all_conditions(
    motions: _PointMotions, structure: Structure, joints: Mapping[str, tuple[Array, Array]]
) -> tuple[tuple[str, ...], Array, Array]:
    """Return the compatibility conditions A x = c: r names, A (N, r, m) and c (N, r, p).

    After normalization all rows are lengths.
    """
    names: list[str] = []
    rows = [np.zeros((motions.samples, 0, motions.size))]
    gaps = [np.zeros((motions.samples, 0, motions.expansion.count))]
    for name, row, gap in _conditions(motions, structure, joints):
        names += [name] * row.shape[1]
        rows.append(row)
        gaps.append(gap)
    A, c = np.concatenate(rows, axis=1), -np.concatenate(gaps, axis=1)
    # Normalize, because rows of links, joints and gears have different units.
    norm = np.linalg.norm(A, axis=-1, keepdims=True)
    norm = np.where(norm > 0.0, norm, 1.0)
    return tuple(names), A / norm, c / norm


def _conditions(
    motions: _PointMotions, structure: Structure, joints: Mapping[str, tuple[Array, Array]]
) -> Iterator[tuple[str, Array, Array]]:
    """Yield the name, rows (N, r, m) and gaps (N, r, p) of each joint, rigid link and gear."""
    weight = motions.weight[:, None]
    for joint in structure.joints:
        allowed = np.broadcast_to(joint.motion * weight, (motions.samples, 6, joint.count))
        U, _, _ = np.linalg.svd(allowed, full_matrices=True)
        blocked = np.swapaxes(U[..., joint.count :], -1, -2)
        rows, gap = motions.relative_twist(joint)
        yield joint.name, blocked @ (weight * rows), blocked @ (weight * gap)
    for link in structure.links:
        yield link.name, *_link_condition(motions, link)
    for combination in structure.combinations:
        if not combination.stiffness:
            yield combination.name, *motions.combined_motion(combination, joints)


def _link_condition(motions: _PointMotions, link: RigidLink) -> tuple[Array, Array]:
    """Return the change of a link's length minus its elongation.

    The result is a matrix (N, 1, m), and the gap (N, 1, p) due to expansion.
    """
    start_rows, start_expansion = motions.point_twist(link.bodies[0], link.points[0])
    end_rows, end_expansion = motions.point_twist(link.bodies[1], link.points[1])
    direction = link.points[1] - link.points[0]
    direction = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    row_direction = direction[..., None, :]
    rows = row_direction @ (end_rows - start_rows)[:, :3]
    gap = row_direction @ (end_expansion - start_expansion)[:, :3]
    elongation = motions.expansion.elongation.get(link.name)
    if elongation is not None:
        gap = gap - elongation[:, None, :]
    return rows, gap


def _element_deformations(
    assembled: AssembledStructure, motions: _PointMotions, x_0: Array
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield D B (N, k, n), stiffness K and deformation D x_0 - d (N, k, p) of each element.

    The symbols are those of `thermal_response`. The deformation is relative to the stress-free shape.
    """
    elements = assembled.structure.elements
    for element, motion in zip(elements, assembled.element_motion, strict=True):
        ends = [motions.attachment_motion(attachment) for attachment in element.attachments]
        rows = np.concatenate([rows for rows, _ in ends], axis=1)
        by_expansion = np.concatenate([by_expansion for _, by_expansion in ends], axis=1)
        deformation = np.zeros((motions.samples, motion.shape[1], motions.expansion.count))
        deformation[:, : element.external] = rows @ x_0 + by_expansion
        elongation = motions.expansion.elongation.get(element.name)
        if elongation is not None:
            start_row, end_row = axial_rows(element)
            deformation[:, start_row] += 0.5 * elongation
            deformation[:, end_row] -= 0.5 * elongation
        yield motion, element.matrices.stiffness, deformation


def axial_rows(element: Element) -> tuple[int, int]:
    """Return the indices of the axial displacements of an element's two ends."""
    start, end = (attachment.freedoms for attachment in element.attachments)
    return start.index(0), len(start) + end.index(0)


def _spring_deformations(
    assembled: AssembledStructure,
    motions: _PointMotions,
    x_0: Array,
    joints: Mapping[str, tuple[Array, Array]],
) -> Iterator[tuple[Array, Array, Array]]:
    """Yield D B, K and D x_0 - d of each joint and combination with a stiffness."""
    structure = assembled.structure
    for joint, motion in zip(structure.joints, assembled.joint_motion, strict=True):
        if joint.stiffness is not None and joint.count:
            rows, by_expansion = motions.joint_motion(joint)
            yield motion, joint.stiffness, rows @ x_0 + by_expansion
    elastic = [item for item in structure.combinations if item.stiffness]
    for combination, motion in zip(elastic, assembled.combination_motion, strict=True):
        rows, by_expansion = motions.combined_motion(combination, joints)
        yield motion, np.array([[combination.stiffness]]), rows @ x_0 + by_expansion
