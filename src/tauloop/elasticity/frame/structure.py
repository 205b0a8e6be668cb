"""A structure of rigid bodies, joints and elastic elements at N poses.

The motion of a body is a small twist (u, θ) of its origin, in the axes of the base. A joint allows
motions of its child relative to its parent along some twists, freely or against a stiffness; it is
rigid in other directions. An element connects points of bodies by stiffness and mass.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.elasticity.frame.beams import NODE_FREEDOMS, Array, Matrices
from tauloop.elasticity.frame.reduction import ReducedBeam
from tauloop.mechanism.model import BASE
from tauloop.mechanism.poses import skew


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RigidBody:
    """A rigid body, or a massless node.

    Attributes:
        name: unique name.
        origin: (N, 3) or (3,) origin in the base frame, m.
        inertia: (N, 6, 6) or (6, 6) spatial inertia about the origin, in the axes of the base (see
            `spatial_inertia`); None for a massless node.
    """

    name: str
    origin: Array
    inertia: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ElasticJoint:
    """A connection that is rigid except along some twists.

    Attributes:
        name: unique name.
        parent, child: names of the bodies; the parent may be the base.
        point: (N, 3) or (3,) point of the joint in the base frame, m.
        motion: (N, 6, f) or (6, f) twists of the child relative to the parent, in the axes of the
            base: translation of the point, then rotation.
        stiffness: (N, f, f) or (f, f) stiffness against these motions; None if all are free.
        inertia: (f, f) inertia of these motions, such as that of rotors; None if there is none.
        motion_names: names of the motions.
        stiffness_parts: for each motion, the name of the part whose stiffness acts on it, such as a
            drive or the bearings; default: the joint. The stiffness does not couple different
            parts.
    """

    name: str
    parent: str
    child: str
    point: Array
    motion: Array
    stiffness: Array | None = None
    inertia: Array | None = None
    motion_names: tuple[str, ...] = ()
    stiffness_parts: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Number of motions."""
        return int(self.motion.shape[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Full names of the motions."""
        labels = self.motion_names or tuple(str(i + 1) for i in range(self.count))
        return tuple(f"{self.name}.{label}" if label else self.name for label in labels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attachment:
    """A point of a body to which an element is attached.

    Attributes:
        body: name of the body, or the base.
        point: (N, 3) or (3,) position in the base frame, m.
        axes: (N, 3, 3) or (3, 3) local axes of the element as columns, in the base frame.
        freedoms: degrees of freedom that are coordinates of the element: 0 to 2 for u, 3 to 5 for θ,
            in local axes.
    """

    body: str
    point: Array
    axes: Array
    freedoms: tuple[int, ...] = tuple(range(NODE_FREEDOMS))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Element:
    """A link, a spring, or a reduced finite-element model.

    Attributes:
        name: unique name.
        attachments: points on bodies to which the element is attached.
        matrices: (N, k, k) or (k, k) matrices in the coordinates of the element: the degrees of
            freedom of the attachments in their order, then internal coordinates.
        beam: the beam that the matrices describe; None if the element is not a beam.
    """

    name: str
    attachments: tuple[Attachment, ...]
    matrices: Matrices
    beam: ReducedBeam | None = None

    @property
    def external(self) -> int:
        """Number of degrees of freedom at the attachments."""
        return sum(len(attachment.freedoms) for attachment in self.attachments)

    @property
    def internal(self) -> int:
        """Number of internal coordinates."""
        return int(self.matrices.stiffness.shape[-1]) - self.external


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RigidLink:
    """A constant distance between points of two bodies.

    Attributes:
        name: unique name.
        bodies: names of the two bodies.
        points: (N, 3) or (3,) positions of a point of each body in the base frame, m.
    """

    name: str
    bodies: tuple[str, str]
    points: tuple[Array, Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MotionCombination:
    """A linear combination of joint motions, Σ ratio x, that is held rigidly or by a stiffness.

    Attributes:
        name: unique name.
        terms: full name of each motion, "joint.motion" or "joint", and its ratio (N,) or ().
        stiffness: stiffness against the combination; None if it is held rigidly.
    """

    name: str
    terms: tuple[tuple[str, Array], ...]
    stiffness: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Structure:
    """Rigid bodies, joints and elastic elements at N poses.

    Attributes:
        bodies: moving bodies and nodes.
        joints: connections that are rigid in some directions.
        elements: elastic elements.
        links: constant distances.
        combinations: combinations of motions that are held, such as gears and coupled motors.
        length: typical length, m; tolerances multiply rotations by it to compare them with
            translations.
    """

    bodies: tuple[RigidBody, ...]
    joints: tuple[ElasticJoint, ...] = ()
    elements: tuple[Element, ...] = ()
    links: tuple[RigidLink, ...] = ()
    combinations: tuple[MotionCombination, ...] = ()
    length: float = 1.0

    def __post_init__(self) -> None:
        """Check names and shapes.

        Raises:
            InputError: a name is used twice, a body is missing, or an array has the wrong shape.
        """
        InputError.raise_if_any(self._problems())

    def _problems(self) -> Iterator[Problem]:
        """Yield all problems with names and shapes."""
        problems = Problems()
        connections = [joint.name for joint in self.joints]
        connections += [element.name for element in self.elements]
        connections += [link.name for link in self.links]
        connections += [combination.name for combination in self.combinations]
        for names in ([body.name for body in self.bodies], connections):
            for name in sorted({name for name in names if names.count(name) > 1}):
                problems.add(name, "this name is used twice", "give each item its own name")
        known = {BASE, *(body.name for body in self.bodies)}
        ends = [(joint.name, end) for joint in self.joints for end in (joint.parent, joint.child)]
        ends += [(link.name, body) for link in self.links for body in link.bodies]
        for element in self.elements:
            ends += [(element.name, attachment.body) for attachment in element.attachments]
            if element.internal < 0:
                size = element.matrices.stiffness.shape[-1]
                what = (
                    f"has {size} coordinates, but its attachments have {element.external} degrees "
                    "of freedom"
                )
                problems.add(
                    element.name, what, "give matrices that cover all its degrees of freedom"
                )
        for name, body in ends:
            if body not in known:
                problems.add(name, f"there is no body {body!r}", "name a body of the structure")
        motions = {name for joint in self.joints for name in joint.names}
        for combination in self.combinations:
            for name, _ in combination.terms:
                if name not in motions:
                    what = f"there is no joint degree of freedom {name!r}"
                    problems.add(combination.name, what, "name a degree of freedom of a joint")
        yield from problems

    @property
    def samples(self) -> int:
        """Number of poses N."""
        arrays = [body.origin[..., 0] for body in self.bodies]
        arrays += [joint.motion[..., 0, 0] for joint in self.joints if joint.count]
        arrays += [point[..., 0] for link in self.links for point in link.points]
        for element in self.elements:
            arrays.append(element.matrices.stiffness[..., 0, 0])
            arrays += [attachment.point[..., 0] for attachment in element.attachments]
        return int(np.broadcast_shapes((1,), *(array.shape for array in arrays))[0])


def spatial_inertia(mass: Array | float, first_moment: Array, second_moment: Array) -> Array:
    """Return the inertia (..., 6, 6) of a body for twists (v, ω) of its origin.

    It is [[m 1, -S(h)], [S(h), J]] with h = m c and S(h) x = h × x.

    Args:
        mass: mass m (...), kg.
        first_moment: first moment of mass h (..., 3), kg m.
        second_moment: rotational inertia J (..., 3, 3) about the origin, kg m^2.
    """
    m = np.asarray(mass, dtype=float)
    S = skew(np.asarray(first_moment, dtype=float))
    upper = np.concatenate([m[..., None, None] * np.eye(3) + 0.0 * S, -S], axis=-1)
    lower = np.concatenate([S, np.asarray(second_moment, dtype=float) + 0.0 * S], axis=-1)
    return np.concatenate([upper, lower], axis=-2)


def transport(offset: Array) -> Array:
    """Return the matrices (..., 6, 6) from a body's twist at its origin to the twist at a point.

    u_point = u + θ × r, θ_point = θ.

    Args:
        offset: r (..., 3) from the body's origin to the point.
    """
    r = np.asarray(offset, dtype=float)
    matrix = np.zeros((*r.shape[:-1], 6, 6))
    matrix[..., range(6), range(6)] = 1.0
    matrix[..., :3, 3:] = -skew(r)
    return matrix


def in_local_axes(axes: Array, motion: Array) -> Array:
    """Return twists (..., 6, n) in local axes.

    Args:
        axes: local axes (..., 3, 3) as columns, in the axes of the base.
        motion: twists (..., 6, n) in the axes of the base.
    """
    to_local = np.swapaxes(axes, -1, -2)
    return np.concatenate([to_local @ motion[..., :3, :], to_local @ motion[..., 3:, :]], axis=-2)


def beam_axes(start: Array, end: Array, across: Array) -> Array:
    """Return local axes (..., 3, 3) of beams: x from start to end, z in the plane of x, `across`.

    Args:
        start, end: ends (..., 3) in the base frame, m.
        across: direction (..., 3) that is not parallel to the beam.
    """
    x = end - start
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    y = np.cross(across, x)
    y = y / np.linalg.norm(y, axis=-1, keepdims=True)
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def beam_element(
    name: str,
    beam: ReducedBeam,
    start: tuple[str, Array],
    end: tuple[str, Array],
    axes: Array,
) -> Element:
    """Return the element of a reduced beam between points of two bodies.

    Args:
        name: unique name.
        beam: reduced chain of elements between the points.
        start, end: name of a body, and point (..., 3) in the base frame, m.
        axes: local axes (..., 3, 3), see `beam_axes`.
    """
    attachments = tuple(
        Attachment(body=body, point=point, axes=axes, freedoms=freedoms)
        for (body, point), freedoms in ((start, beam.start), (end, beam.end))
    )
    return Element(name=name, attachments=attachments, matrices=beam.matrices, beam=beam)


def spring_element(
    name: str,
    bodies: tuple[str, str],
    point: Array,
    axes: Array,
    stiffness: Array,
) -> Element:
    """Return a massless spring between two bodies at a common point.

    Args:
        name: unique name.
        bodies: names of the two bodies; one may be the base.
        point: (..., 3) position in the base frame, m.
        axes: local axes (..., 3, 3) as columns.
        stiffness: (..., 6, 6) stiffness against u and θ of the second body relative to the first,
            in local axes.
    """
    relative = np.concatenate([-np.eye(NODE_FREEDOMS), np.eye(NODE_FREEDOMS)], axis=-1)
    K = relative.T @ np.asarray(stiffness, dtype=float) @ relative
    attachments = tuple(Attachment(body=body, point=point, axes=axes) for body in bodies)
    zero = np.zeros_like(K)
    matrices = Matrices(stiffness=K, mass=zero, geometric=zero)
    return Element(name=name, attachments=attachments, matrices=matrices)
