"""Numeric model of a mechanism for other multibody engines (MuJoCo, Pinocchio).

The model is a tree of rigid links with loop constraints. It is built from the description
(`mechanism.links.rigid_tree`, which the writers of other formats also use), not from Tauloop's
equations. It differs from the tree of the equations: it may cut different joints, every rod is a
body with joints, and rods are cut at their far ends.
"""

from __future__ import annotations

from collections.abc import Callable

from tauloop.common.records import dataclass
from tauloop.mechanism.links.rigid_tree import LinkInertia, RodLinks
from tauloop.mechanism.model import Joint
from tauloop.mechanism.poses import Array, FramePose
from tauloop.mechanism.solids.primitives import Primitive

#: Index of the immovable base among the links.
GROUND = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EngineLink:
    """A rigid link that moves relative to its parent by at most one primitive joint.

    Attributes:
        name: name for messages.
        parent: index of the parent link, or `GROUND`.
        pose: pose of the joint frame in the parent; at zero coordinates the link's frame coincides
            with this frame.
        primitive: motion relative to the parent; None if the link is fixed to its parent.
        inertia: inertia of the link; None for a massless link.
    """

    name: str
    parent: int
    pose: FramePose
    primitive: Primitive | None = None
    inertia: LinkInertia | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Anchor:
    """A frame fixed on a link.

    Attributes:
        link: index of the link, or `GROUND`.
        pose: pose of the frame in the link.
    """

    link: int
    pose: FramePose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constraint:
    """Constraint between two frames at a cut joint or at the far end of a rod.

    Attributes:
        name: name of the cut joint or rod.
        first: frame on the first link.
        second: frame on the second link.
        position_directions: directions (n, 3) in the first frame along which the two origins must
            coincide.
        orthogonal_pairs: pairs (n, 2, 3) of a direction in the first frame and a direction in the
            second frame that must remain orthogonal.
    """

    name: str
    first: Anchor
    second: Anchor
    position_directions: Array
    orthogonal_pairs: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedJoint:
    """A joint of the machine file, cut or not, with the numeric poses of its two frames.

    Attributes:
        joint: description of the joint in the machine file.
        pose_in_parent: pose of the joint frame in the parent body.
        pose_in_child: pose of the joint frame in the child body.
    """

    joint: Joint
    pose_in_parent: FramePose
    pose_in_child: FramePose


#: A curve as a function from coordinates (N,) to its value, first and second derivative (N,).
CurveFunction = Callable[[Array], tuple[Array, Array, Array]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loads:
    """Elements on the coordinates: rotors, springs, the transmission of actuators, and couplings.

    Row i of the couplings is the constraint that the sum of gears_ij q_j over j, minus the sum of
    its curves, equals gear_offsets_i.

    Attributes:
        inertia: (n_v, n_v) inertia of rotors, including those of actuators, kg m^2 or kg.
        stiffness: (n_v,) stiffness of springs, N m/rad or N/m; zero where there is no spring.
        preload: (n_v,) spring forces at zero coordinates, which are stiffness times rest position,
            N m or N.
        q_index: index of the coordinate of each velocity; -1 for angular velocities of balls, which
            have no springs and no couplings.
        transmission: matrix (n_u, n_v) from velocities to actuator velocities.
        actuators: names of the actuators.
        gears: (n_g, n_v) ratios of couplings between coordinates.
        gear_offsets: (n_g,) constant of each coupling, rad or m.
        curves: for each cam, the row of the coupling, the index of the velocity, and the curve.
    """

    inertia: Array
    stiffness: Array
    preload: Array
    q_index: tuple[int, ...]
    transmission: Array
    actuators: tuple[str, ...]
    gears: Array
    gear_offsets: Array
    curves: tuple[tuple[int, int, CurveFunction], ...] = ()

    def springs(self, q: Array) -> Array:
        """Return the generalized forces K q - preload (N, n_v) that balance the springs.

        K is the stiffness of the springs, and q are coordinates (N, n_q).
        """
        return q[:, list(self.q_index)] * self.stiffness - self.preload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RigidTree:
    """The numeric model of a mechanism, from which an engine's model is built.

    Attributes:
        name: name of the mechanism.
        gravity: (3,) acceleration of gravity, m/s^2.
        links: links, parents before their children.
        bodies: link index of each body of the machine file, by name.
        joints: all joints of the machine file, by name.
        tree: names of the joints in the tree, from the base outwards; the others are cut.
        rods: links and joints of the rods.
        constraints: constraints that close the loops.
        loads: rotors, springs, transmission and couplings on the coordinates.
        tool: the tool center point.
    """

    name: str
    gravity: Array
    links: tuple[EngineLink, ...]
    bodies: dict[str, int]
    joints: dict[str, PlacedJoint]
    tree: tuple[str, ...]
    rods: tuple[RodLinks, ...]
    constraints: tuple[Constraint, ...]
    loads: Loads
    tool: Anchor

    @property
    def primitives(self) -> tuple[Primitive, ...]:
        """Primitive joints of the moving links, in order."""
        return tuple(link.primitive for link in self.links if link.primitive is not None)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates in order (n_q)."""
        return tuple(name for primitive in self.primitives for name in primitive.coordinates)

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the velocities in order (n_v)."""
        return tuple(name for primitive in self.primitives for name in primitive.velocities)

    @property
    def balls(self) -> tuple[tuple[int, int, bool], ...]:
        """First index in q and in v of each ball joint, and whether its bodies are swapped."""
        balls = []
        q = 0
        v = 0
        for primitive in self.primitives:
            if primitive.kind == "ball":
                balls.append((q, v, primitive.is_reversed))
            q += len(primitive.coordinates)
            v += len(primitive.velocities)
        return tuple(balls)

    @property
    def anchored(self) -> tuple[int, ...]:
        """Indices of the links, except the ground, that carry a constraint frame or the tool."""
        ends = {
            anchor.link
            for constraint in self.constraints
            for anchor in (constraint.first, constraint.second)
        }
        return tuple(sorted((ends | {self.tool.link}) - {GROUND}))
