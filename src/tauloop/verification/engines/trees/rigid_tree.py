"""A mechanism as engines see it: a tree of rigid links in numbers, and the constraints that close its loops.

This is the common ground of all engines, made from the description alone
(`mechanism.links.rigid_tree`, which the writers of other formats use too) and not from Tauloop's
equations: it prefers other joints among equals, gives every rod a body with joints of its own, and
cuts at the rods' far ends.
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
    """A rigid link whose frame moves against its parent's by at most one primitive.

    Attributes:
        name: name for messages.
        parent: index of its parent link, or `GROUND`.
        at: pose of the joint frame in the parent; the link's own frame coincides with it at zero
            coordinates.
        primitive: motion against the parent; None if the link is fixed to its parent.
        inertia: None for a massless link.
    """

    name: str
    parent: int
    at: FramePose
    primitive: Primitive | None = None
    inertia: LinkInertia | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Anchor:
    """A frame fixed on a link."""

    link: int
    at: FramePose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constraint:
    """Constraint between two frames, of a cut joint or of the far end of a rod.

    Attributes:
        name: the cut joint or rod.
        first, second: the two frames.
        points: directions of the first frame (n, 3) along which the two origins must not part.
        directions: pairs (n, 2, 3) of a direction of the first and one of the second frame that
            stay at right angles.
    """

    name: str
    first: Anchor
    second: Anchor
    points: Array
    directions: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedJoint:
    """A joint of the file with its two frames in numbers; every one of them, cut or not."""

    joint: Joint
    parent: FramePose
    child: FramePose


#: A curve by arrays: coordinates (N,) -> value, first and second derivative (N,).
CurveFunction = Callable[[Array], tuple[Array, Array, Array]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loads:
    """Loads on the coordinates that are not those of the links: rotors, springs and actuators.

    Attributes:
        inertia: rotor inertias with the actuators' carried over (n_v, n_v), kg m^2 or kg.
        stiffness: stiffness of springs (n_v,), N m/rad or N/m.
        preload: stiffness times rest position (n_v,), N m or N.
        q_index: coordinate of each velocity (n_v,), -1 for the angular velocities of balls.
        transmission: actuator velocities from velocities (n_u, n_v).
        actuators: their names.
        gears: ratios of couplings between coordinates (n_g, n_v).
        gear_offsets: value of each sum of ratio times coordinate (n_g,), rad or m.
        curves: row of the coupling, index of the velocity, and curve of a cam.
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
        """Return the forces of the springs (N, n_v) that coordinates (N, n_q) must overcome."""
        return q[:, list(self.q_index)] * self.stiffness - self.preload


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RigidTree:
    """A mechanism in numbers, ready to be written into an engine.

    Attributes:
        name: name of the mechanism.
        gravity: (3,), m/s^2.
        links: parents before their children.
        bodies: link index of each body of the file.
        joints: every joint of the file, by name.
        tree: names of the joints in the tree, from the base outwards; the others are cut.
        rods: positions of the rods in the tree.
        constraints: constraints that close the loops.
        loads: loads on the coordinates.
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
        """Primitives of the links that move, in order."""
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
        """Start in q, start in v, and whether it is reversed, of every ball."""
        balls, q, v = [], 0, 0
        for primitive in self.primitives:
            if primitive.kind == "ball":
                balls.append((q, v, primitive.is_reversed))
            q, v = q + len(primitive.coordinates), v + len(primitive.velocities)
        return tuple(balls)

    @property
    def anchored(self) -> tuple[int, ...]:
        """Return the links that carry a frame of a constraint or the tool, without the ground."""
        ends = {
            anchor.link
            for constraint in self.constraints
            for anchor in (constraint.first, constraint.second)
        }
        return tuple(sorted((ends | {self.tool.link}) - {GROUND}))
