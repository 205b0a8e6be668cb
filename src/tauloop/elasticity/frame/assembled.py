"""Minimal coordinates of a structure, and its stiffness and mass in them.

A tree of joints connects the bodies to the base, so that a joint adds only its motions as
coordinates. A body without a joint adds six coordinates. Joints that close loops are constraints.
The minimal coordinates are a basis of the null space of these constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np

from tauloop.common.errors import AssemblyError, Problems
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import (
    Attachment,
    ElasticJoint,
    MotionCombination,
    RigidBody,
    Structure,
    in_local_axes,
    transport,
)
from tauloop.mechanism.model import BASE
from tauloop.mechanism.poses import skew

#: A motion counts as a mechanism (rigid-body mode) if its stiffness, relative to that of the elements
#: it involves, is below this value. Rounding errors are about 1e-15.
MECHANISM_TOLERANCE = 1e-12
#: Eigenvalues are not computed if a lower bound of the stiffness exceeds MECHANISM_TOLERANCE by
#: this factor, which is far above the bound's rounding errors.
BOUND_MARGIN = 100.0
#: Constraints count as dependent if a singular value relative to the largest is below this value.
RANK_TOLERANCE = 1e-9
#: An error names the bodies whose motion, relative to the largest, is at least this fraction.
NAMED_MOTION = 0.1
#: Names of the coordinates of a body without a joint.
FREE_MOTIONS = ("x", "y", "z", "rx", "ry", "rz")


@dataclass(frozen=True, kw_only=True, eq=False)
class AssembledStructure:
    """A structure in n minimal coordinates at N poses.

    Attributes:
        structure: the bodies, joints and elements.
        coordinate_names: names of the kinematic coordinates, then of the internal coordinates of
            elements.
        body_motion: matrices (N, 6, n) from the coordinates to the twists of the bodies' origins,
            by name.
        element_motion: matrices (N, k, n) from the coordinates to those of the elements.
        joint_motion: matrices (N, f, n) from the coordinates to the motions of the joints.
        combination_motion: rows (N, 1, n) of the combinations with a stiffness.
        tree: joints from the base outwards, each with the nearer and the farther body.
        constraints: number of constraints by closed loops, rigid links and gears.
    """

    structure: Structure
    coordinate_names: tuple[str, ...]
    body_motion: Mapping[str, Array]
    element_motion: tuple[Array, ...]
    joint_motion: tuple[Array, ...]
    combination_motion: tuple[Array, ...] = ()
    tree: tuple[tuple[ElasticJoint, str, str], ...] = ()
    constraints: int = 0

    @property
    def size(self) -> int:
        """Number of coordinates n."""
        return int(self.body_motion[BASE].shape[-1])

    @property
    def samples(self) -> int:
        """Number of poses N."""
        return int(self.body_motion[BASE].shape[0])

    @cached_property
    def elastic_items(self) -> tuple[tuple[str, Array, Array], ...]:
        """All items with stiffness: name, motion (N, k, n), stiffness (..., k, k).

        Local coordinates without stiffness are omitted.
        """
        structure = self.structure
        items = [
            (element.name, *_used(motion, element.matrices.stiffness))
            for element, motion in zip(structure.elements, self.element_motion, strict=True)
            if element.matrices.stiffness.any()
        ]
        for joint, motion in zip(structure.joints, self.joint_motion, strict=True):
            if joint.stiffness is not None and joint.count:
                items += _joint_items(joint, motion, joint.stiffness)
        elastic = [item for item in structure.combinations if item.stiffness]
        for combination, motion in zip(elastic, self.combination_motion, strict=True):
            items.append((combination.name, motion, np.array([[combination.stiffness]])))
        return tuple(items)

    @cached_property
    def stiffness(self) -> Array:
        """Elastic stiffness (N, n, n)."""
        return self._sum((motion, matrix) for _, motion, matrix in self.elastic_items)

    @cached_property
    def mass(self) -> Array:
        """Mass (N, n, n) of elements, bodies and rotors."""
        structure = self.structure
        parts = [
            (motion, element.matrices.mass)
            for element, motion in zip(structure.elements, self.element_motion, strict=True)
        ]
        for body in structure.bodies:
            if body.inertia is not None:
                parts.append((self.body_motion[body.name], body.inertia))
        for joint, motion in zip(structure.joints, self.joint_motion, strict=True):
            if joint.inertia is not None:
                parts.append((motion, joint.inertia))
        return self._sum(parts)

    @cached_property
    def stiffness_scale(self) -> Array:
        """Diagonal (N, n) of the stiffness with all terms replaced by their magnitudes."""
        scale = np.zeros((self.samples, self.size))
        for _, motion, K in self.elastic_items:
            magnitude = np.abs(motion)
            scale += np.sum(magnitude * (np.abs(K) @ magnitude), axis=-2)
        return scale

    def _sum(self, parts: Iterable[tuple[Array, Array]]) -> Array:
        """Return the sum of Bᵀ K B (N, n, n) over pairs of motions B and matrices K."""
        pairs = [_used(motion, matrix) for motion, matrix in parts]
        empty = np.zeros((self.samples, 0, self.size))
        B = np.concatenate([empty, *(motion for motion, _ in pairs)], axis=1)
        KB = np.concatenate([empty, *(matrix @ motion for motion, matrix in pairs)], axis=1)
        total = np.swapaxes(B, -1, -2) @ KB
        return np.asarray(0.5 * (total + np.swapaxes(total, -1, -2)))

    def geometric(self, axial: Mapping[str, Array]) -> Array:
        """Return the geometric stiffness (N, n, n) due to axial forces in elements.

        Args:
            axial: forces (N,) by element, N; tension is positive.
        """
        parts = []
        for element, motion in zip(self.structure.elements, self.element_motion, strict=True):
            force = np.asarray(axial.get(element.name, 0.0), dtype=float)
            parts.append((motion, force[..., None, None] * element.matrices.geometric))
        return self._sum(parts)

    def point_motion(self, body: str, point: Array, axes: Array | None = None) -> Array:
        """Return the matrix (N, 6, n) from the coordinates to the twist of a body's point.

        Args:
            body: name of the body.
            point: (N, 3) or (3,) position in the base frame, m.
            axes: (N, 3, 3) axes of the twist as columns; default: the axes of the base.
        """
        motion = transport(point - self.origin(body)) @ self.body_motion[body]
        return motion if axes is None else in_local_axes(axes, motion)

    def origin(self, body: str) -> Array:
        """Return the origin (N, 3) or (3,) of a body."""
        origins = {item.name: item.origin for item in self.structure.bodies}
        return np.asarray(origins.get(body, np.zeros(3)))

    @cached_property
    def mechanisms(self) -> Array:
        """Motions (N, n, d) without deformation; their number d must not depend on the pose.

        Raises:
            AssemblyError: the number differs between the poses.
        """
        scale = self.stiffness_scale
        root = np.where(scale > 0.0, np.sqrt(np.where(scale > 0.0, scale, 1.0)), 1.0)
        scaled = self.stiffness / root[:, :, None] / root[:, None, :]
        if _smallest_eigenvalue_bound(scaled) > BOUND_MARGIN * MECHANISM_TOLERANCE:
            return np.zeros((self.samples, self.size, 0))
        eigenvalues, vectors = np.linalg.eigh(scaled)
        counts = (eigenvalues < MECHANISM_TOLERANCE).sum(axis=1)
        if not len(counts) or counts.max() == 0:
            return np.zeros((self.samples, self.size, 0))
        if counts.min() != counts.max():
            pose = int(np.argmax(counts))
            what = (
                f"pose {pose} has {counts.max()} motions without deformation, other poses have "
                f"{counts.min()}"
            )
            raise AssemblyError.of("structure", what, "exclude singular poses")
        return np.asarray(vectors[:, :, : counts[0]] / root[:, :, None])

    def require_no_mechanism(self) -> None:
        """Check that every motion causes deformation.

        Raises:
            AssemblyError: bodies can move without any deformation; the error names them.
        """
        mechanisms = self.mechanisms
        problems = Problems()
        for column in _sparse_columns(mechanisms[0]).T:
            where, what = self._described(column)
            remedy = "give a stiffness to an actuator, joint or link in this motion, or lock it"
            problems.add(where, what, remedy)
        AssemblyError.raise_if_any(problems)

    def _described(self, motion: Array) -> tuple[str, str]:
        """Return the body with the largest motion at the first pose, and a description of the motion.

        Args:
            motion: motion (n,) without deformation.
        """
        length = self.structure.length
        twists = {
            body.name: self.body_motion[body.name][0] @ motion for body in self.structure.bodies
        }
        magnitudes = {
            name: float(np.linalg.norm(twist[:3]) + length * np.linalg.norm(twist[3:]))
            for name, twist in twists.items()
        }
        largest = max(magnitudes.values(), default=0.0)
        if largest == 0.0:
            index = int(np.argmax(np.abs(motion)))
            return "elements", f"an internal coordinate (number {index}) has no stiffness"
        names = [name for name, value in magnitudes.items() if value >= NAMED_MOTION * largest]
        first = max(names, key=lambda name: magnitudes[name])
        twist = twists[first]
        angle = float(np.linalg.norm(twist[3:]))
        is_rotation = angle * length > NAMED_MOTION * magnitudes[first]
        direction = twist[3:] if is_rotation else twist[:3]
        direction = direction / np.linalg.norm(direction) + 0.0
        text = ", ".join(f"{component:.3g}" for component in np.round(direction, 3) + 0.0)
        verb = "rotates about" if is_rotation else "moves along"
        others = ""
        if len(names) > 1:
            others = f", together with {', '.join(name for name in names if name != first)},"
        return first, f"{verb} ({text}){others} without any deformation: a mechanism"


def _used(motion: Array, matrix: Array) -> tuple[Array, Array]:
    """Return the rows of a motion (N, k, n) with nonzero matrix columns, and their submatrix."""
    size = matrix.shape[-1]
    used = np.flatnonzero(matrix.reshape(-1, size).any(axis=0))
    if len(used) == size:
        return motion, matrix
    return motion[:, used], matrix[..., used[:, None], used]


def _smallest_eigenvalue_bound(matrices: Array) -> float:
    """Return the lower bound 1 / tr A⁻¹ of all eigenvalues of matrices A (N, n, n).

    The bound is zero if a matrix is not positive definite.
    """
    try:
        L_inverse = np.linalg.inv(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        return 0.0
    largest = np.sum(L_inverse**2, axis=(1, 2)).max(initial=1.0)
    return float(1.0 / largest) if np.isfinite(largest) else 0.0


def _sparse_columns(motions: Array) -> Array:
    """Return a basis (n, d) of the same space with few entries per column (echelon form)."""
    basis = motions.copy()
    rows = np.abs(basis).max(axis=1, initial=0.0)
    weights = np.where(rows > 0.0, 1.0 / np.where(rows > 0.0, rows, 1.0), 0.0)
    for column in range(basis.shape[1]):
        remaining = np.abs(basis[:, column:]) * weights[:, None]
        pivot_row, offset = np.unravel_index(int(np.argmax(remaining)), remaining.shape)
        chosen = column + int(offset)
        basis[:, [column, chosen]] = basis[:, [chosen, column]]
        basis[:, column] /= basis[pivot_row, column]
        factors = basis[pivot_row].copy()
        factors[column] = 0.0
        basis -= np.outer(basis[:, column], factors)
        weights[pivot_row] = 0.0
    return basis


def assemble(structure: Structure) -> AssembledStructure:
    """Return a structure in minimal coordinates.

    Raises:
        AssemblyError: the rank of the constraints of closed loops changes between the poses.
    """
    samples = structure.samples
    origins = {body.name: body.origin for body in structure.bodies} | {BASE: np.zeros(3)}
    steps = _tree(structure)
    motion, names = _tree_motion(structure, steps, origins, samples)
    in_tree = {step.name for step in steps if isinstance(step, ElasticJoint)}
    closing = [joint for joint in structure.joints if joint.name not in in_tree]
    constraints = _constraints(structure, closing, motion, origins)
    if constraints:
        rows, terms = (np.concatenate(parts, axis=1) for parts in zip(*constraints, strict=True))
        basis = _allowed(structure, rows, terms, motion)
        motion = {name: twist @ basis for name, twist in motion.items()}
        names = [f"loop coordinate {i + 1}" for i in range(basis.shape[-1])]
    internal = sum(element.internal for element in structure.elements)
    kinematic = motion[BASE].shape[-1]
    size = kinematic + internal
    body_motion = {name: _widened(twist, size) for name, twist in motion.items()}
    elements = _element_motion(structure, motion, origins, size)
    for element in structure.elements:
        names += [f"{element.name}.mode{i + 1}" for i in range(element.internal)]
    joints = tuple(
        _widened(_joint_motion(joint, motion, origins), size) for joint in structure.joints
    )
    elastic = [item for item in structure.combinations if item.stiffness]
    by_name = _motions_by_name(structure, motion, origins) if elastic else {}
    combinations = tuple(_widened(_combined(item, by_name), size) for item in elastic)
    return AssembledStructure(
        structure=structure,
        coordinate_names=tuple(names),
        body_motion=body_motion,
        element_motion=elements,
        joint_motion=joints,
        combination_motion=combinations,
        tree=_ordered(steps),
        constraints=sum(row.shape[1] for row, _ in constraints),
    )


def _ordered(
    steps: list[ElasticJoint | RigidBody],
) -> tuple[tuple[ElasticJoint, str, str], ...]:
    """Return the joints of the tree, each with the nearer and the farther body."""
    connected = {BASE}
    ordered = []
    for step in steps:
        if isinstance(step, RigidBody):
            connected.add(step.name)
            continue
        near, far = step.parent, step.child
        if near not in connected:
            near, far = far, near
        connected.add(far)
        ordered.append((step, near, far))
    return tuple(ordered)


def _widened(rows: Array, size: int) -> Array:
    """Return rows (N, k, m) with zero columns appended up to `size`."""
    return np.concatenate([rows, np.zeros((*rows.shape[:-1], size - rows.shape[-1]))], axis=-1)


def _tree(structure: Structure) -> list[ElasticJoint | RigidBody]:
    """Return the joints of the tree, and bodies without a joint, from the base outwards."""
    connected = {BASE}
    steps: list[ElasticJoint | RigidBody] = []
    remaining = sorted(structure.joints, key=lambda joint: joint.count)
    while True:
        joint = next(
            (item for item in remaining if (item.parent in connected) != (item.child in connected)),
            None,
        )
        if joint is not None:
            remaining.remove(joint)
            connected |= {joint.parent, joint.child}
            steps.append(joint)
            continue
        body = next((item for item in structure.bodies if item.name not in connected), None)
        if body is None:
            return steps
        connected.add(body.name)
        steps.append(body)


def _tree_motion(
    structure: Structure,
    steps: list[ElasticJoint | RigidBody],
    origins: Mapping[str, Array],
    samples: int,
) -> tuple[dict[str, Array], list[str]]:
    """Return matrices (N, 6, m) from tree coordinates to body twists, and the coordinate names."""
    size = sum(step.count if isinstance(step, ElasticJoint) else 6 for step in steps)
    motion = {BASE: np.zeros((samples, 6, size))}
    names: list[str] = []
    for step in steps:
        start = len(names)
        if isinstance(step, RigidBody):
            twist = np.zeros((samples, 6, size))
            twist[:, range(6), range(start, start + 6)] = 1.0
            motion[step.name] = twist
            names += [f"{step.name}.{name}" for name in FREE_MOTIONS]
            continue
        is_reversed = step.parent not in motion
        near, far = (step.child, step.parent) if is_reversed else (step.parent, step.child)
        at_joint = transport(step.point - origins[near]) @ motion[near]
        columns = slice(start, start + step.count)
        at_joint[..., columns] += -step.motion if is_reversed else step.motion
        motion[far] = transport(origins[far] - step.point) @ at_joint
        names += step.names
    return motion, names


def _relative(
    joint: ElasticJoint, motion: Mapping[str, Array], origins: Mapping[str, Array]
) -> Array:
    """Return the twist (N, 6, m) of a joint's child relative to its parent."""
    child = _at_joint(joint, joint.child, motion, origins)
    return np.asarray(child - _at_joint(joint, joint.parent, motion, origins))


def _at_joint(
    joint: ElasticJoint, body: str, motion: Mapping[str, Array], origins: Mapping[str, Array]
) -> Array:
    """Return the twist (N, 6, m) of a body's point at a joint."""
    return np.asarray(transport(joint.point - origins[body]) @ motion[body])


def _joint_motion(
    joint: ElasticJoint, motion: Mapping[str, Array], origins: Mapping[str, Array]
) -> Array:
    """Return the motions (N, f, m) of a joint."""
    relative = _relative(joint, motion, origins)
    if not joint.count:
        return relative[:, :0]
    if joint.count > 1:
        return np.asarray(np.linalg.pinv(joint.motion) @ relative)
    direction = np.swapaxes(joint.motion, -1, -2)
    return np.asarray(direction / (direction @ joint.motion) @ relative)


def _constraints(
    structure: Structure,
    closing: list[ElasticJoint],
    motion: Mapping[str, Array],
    origins: Mapping[str, Array],
) -> list[tuple[Array, Array]]:
    """Return the constraints of closed loops, rigid links and gears as pairs of arrays.

    The first array of a pair contains rows (N, c, m), whose product with the coordinates must be
    zero. Each row is the difference of two motions. The second array contains the magnitudes (N, c, m)
    of these motions, to which rounding errors are relative.
    """
    samples = len(motion[BASE])
    weight = np.repeat([1.0, structure.length], 3)[:, None]
    rows = []
    for joint in closing:
        allowed = np.broadcast_to(joint.motion * weight, (samples, 6, joint.count))
        U, _, _ = np.linalg.svd(allowed, full_matrices=True)
        blocked = np.swapaxes(U[..., joint.count :], -1, -2)
        ends = [_at_joint(joint, body, motion, origins) for body in (joint.child, joint.parent)]
        forbidden = blocked @ ((ends[0] - ends[1]) * weight)
        rows.append((forbidden, _magnitudes(forbidden, [end * weight for end in ends])))
    for link in structure.links:
        end_motions = [
            (transport(point - origins[body]) @ motion[body])[:, :3]
            for body, point in zip(link.bodies, link.points, strict=True)
        ]
        direction = np.broadcast_to(link.points[1] - link.points[0], (samples, 3))
        direction = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
        stretch = direction[:, None, :] @ (end_motions[1] - end_motions[0])
        rows.append((stretch, _magnitudes(stretch, end_motions)))
    rigid = [combination for combination in structure.combinations if not combination.stiffness]
    if rigid:
        by_name = _motions_by_name(structure, motion, origins)
        combined = [_combined(combination, by_name) for combination in rigid]
        rows += [(row, np.abs(row)) for row in combined]
    return [pair for pair in rows if pair[0].shape[1]]


def _magnitudes(rows: Array, motions: list[Array]) -> Array:
    """Return the magnitudes (N, c, m) of motions (N, k, m), repeated for each of the rows."""
    magnitude = np.sqrt(sum(np.sum(item**2, axis=1, keepdims=True) for item in motions))
    return np.broadcast_to(magnitude, rows.shape)


def _motions_by_name(
    structure: Structure, motion: Mapping[str, Array], origins: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the rows (N, m) of all joint motions, by full name."""
    by_name: dict[str, Array] = {}
    for joint in structure.joints:
        rows = _joint_motion(joint, motion, origins)
        by_name |= {name: rows[:, i] for i, name in enumerate(joint.names)}
    return by_name


def _combined(combination: MotionCombination, by_name: Mapping[str, Array]) -> Array:
    """Return the row (N, 1, m) of a combination of motions."""
    row = sum(np.asarray(ratio)[..., None] * by_name[name] for name, ratio in combination.terms)
    return np.asarray(row)[:, None, :]


def _allowed(structure: Structure, C: Array, terms: Array, motion: Mapping[str, Array]) -> Array:
    """Return a basis (N, m, k) of the motions that constraints (N, c, m) allow.

    Args:
        structure: the structure.
        C: constraints (N, c, m).
        terms: (N, c, m) magnitudes of the motions whose differences are the constraints. A row that is
            much smaller is a rounding error, such as an out-of-plane constraint of a planar loop.
        motion: twists of the bodies.

    Raises:
        AssemblyError: the number of independent constraints differs between the poses.
    """
    weight = np.repeat([1.0, structure.length], 3)[:, None]
    squares = [np.sum((twist * weight) ** 2, axis=1) for twist in motion.values()]
    largest = np.sqrt(np.max(squares, axis=0))
    scale = np.where(largest > 0.0, largest, 1.0)
    scaled = C / scale[:, None, :]
    norms = np.linalg.norm(scaled, axis=-1, keepdims=True)
    term_norms = np.linalg.norm(terms / scale[:, None, :], axis=-1, keepdims=True)
    # Normalize, because rows of links, joints and gears have different units.
    is_row = norms > RANK_TOLERANCE * term_norms
    scaled = np.where(is_row, scaled / np.where(is_row, norms, 1.0), 0.0)
    _, sigma, Vt = np.linalg.svd(scaled, full_matrices=True)
    ranks = (sigma > RANK_TOLERANCE * sigma[:, :1]).sum(axis=1)
    if ranks.min() != ranks.max():
        what = (
            f"the number of independent constraints of closed loops changes from {ranks.min()} to "
            f"{ranks.max()} between the poses"
        )
        raise AssemblyError.of("structure", what, "exclude singular poses")
    return np.asarray(np.swapaxes(Vt[:, ranks[0] :], -1, -2) / scale[:, :, None])


def _element_motion(
    structure: Structure, motion: Mapping[str, Array], origins: Mapping[str, Array], size: int
) -> tuple[Array, ...]:
    """Return the matrices (N, k, n) from the coordinates to those of all elements.

    All attachments of a body are computed in a single product.

    Args:
        structure: the structure.
        motion: twists (N, 6, m) of the bodies as functions of the m kinematic coordinates.
        origins: origins of the bodies.
        size: number n of all coordinates; internal coordinates come last, in the order of elements.
    """
    samples, kinematic = len(motion[BASE]), motion[BASE].shape[-1]
    elements = []
    attached: dict[str, list[tuple[Array, Array]]] = {}
    offset = kinematic
    for element in structure.elements:
        rows = np.zeros((samples, element.external + element.internal, size))
        elements.append(rows)
        inner = np.arange(element.internal)
        rows[:, element.external + inner, offset + inner] = 1.0
        offset += element.internal
        first = 0
        for attachment in element.attachments:
            count = len(attachment.freedoms)
            target = rows[:, first : first + count, :kinematic]
            first += count
            if attachment.body != BASE:
                projection = _attached_freedoms(attachment, origins[attachment.body])
                attached.setdefault(attachment.body, []).append((target, projection))
    for body, pairs in attached.items():
        stacked = np.concatenate(
            [np.broadcast_to(item, (samples, *item.shape[-2:])) for _, item in pairs], axis=1
        )
        displacements = stacked @ motion[body]
        first = 0
        for target, _ in pairs:
            target[...] = displacements[:, first : first + target.shape[1]]
            first += target.shape[1]
    return tuple(elements)


def _joint_items(
    joint: ElasticJoint, motion: Array, stiffness: Array
) -> Iterator[tuple[str, Array, Array]]:
    """Yield the elastic items of a joint, such as drive and bearings; see `elastic_items`."""
    names = joint.stiffness_parts or (joint.name,) * joint.count
    for name in dict.fromkeys(names):
        rows = [k for k, item in enumerate(names) if item == name]
        block = stiffness[..., rows, :][..., rows]
        if block.any():
            yield name, *_used(motion[..., rows, :], block)


def _attached_freedoms(attachment: Attachment, origin: Array) -> Array:
    """Return the matrix (..., k, 6) from a body's twist to an attachment's degrees of freedom."""
    to_local = np.swapaxes(attachment.axes, -1, -2)
    arm = skew(attachment.point - origin)
    matrix = np.zeros((*np.broadcast_shapes(to_local.shape[:-2], arm.shape[:-2]), 6, 6))
    matrix[..., :3, :3] = to_local
    matrix[..., :3, 3:] = -to_local @ arm
    matrix[..., 3:, 3:] = to_local
    return matrix[..., list(attachment.freedoms), :]
