"""A mechanism at its nominal parameters as a tree of rigid links with loop closures, for formats that know only these.

A rod becomes a link (a telescopic one two links) that hangs on its start body by a universal joint and closes a loop by
a ball at its other end. A slender rod has no inertia about its own axis, hence that joint moves it exactly as the
ball joint of the machine file does. A joint that the tree must cut and that is no closure of the target, or on whose
coordinate something acts, is kept on a massless copy of its child, which is then welded to the child.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.errors import DescriptionError, Problem
from tauloop.mechanism.elements import PLATFORM_JOINT
from tauloop.mechanism.expression import evaluate
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    AxisName,
    Body,
    Freedom,
    Inertia,
    Joint,
    Mechanism,
    Rod,
    SlenderPart,
)
from tauloop.mechanism.poses import IDENTITY, Pose, placement_pose
from tauloop.mechanism.rotation import turns_to_axes

_AXES: Mapping[str, np.ndarray] = {"x": np.eye(3)[0], "y": np.eye(3)[1], "z": np.eye(3)[2]}
#: Sine of the least angle between a rod and a neighbouring joint's axis that serves as the first axis of its hinges.
_CLEAR = 0.5
#: Asymmetry about the rod's axis, relative to its inertia, that counts as rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Primitive:
    """One hinge, slide or ball.

    Attributes:
        kind: which of the three.
        name: of its coordinate; of the joint for a ball.
        axis: unit vector (3,) in the frame it moves; backwards where the joint is run from child to parent.
        reference: start value (1,), m or rad, or quaternion (4,) w x y z.
        freedom: what acts on it; of a ball, on its first component.
        is_reversed: whether the tree runs through the joint from its child to its parent.
    """

    kind: Literal["hinge", "slide", "ball"]
    name: str
    axis: np.ndarray
    reference: np.ndarray
    freedom: Freedom
    is_reversed: bool = False

    def pose(self) -> Pose:
        """Motion at the start value."""
        if self.kind == "slide":
            return Pose(np.eye(3), self.reference * self.axis)
        turn = (
            Rotation.from_rotvec(self.reference * self.axis)
            if self.kind == "hinge"
            else Rotation.from_quat(self.reference, scalar_first=True)
        )
        return Pose(turn.as_matrix(), np.zeros(3))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mass:
    """Mass (kg), mass centre (3,) in the link's frame, and inertia (3, 3) about it in the link's axes, kg m^2."""

    mass: float
    center: np.ndarray
    inertia: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link:
    """A rigid link.

    Attributes:
        name: of the body or of the rod's part.
        parent: name of the link it hangs on.
        at: where its joint starts, in the parent's frame.
        chain: its joint; rigidly fixed if empty.
        frame: the link's own frame at the end of the chain.
        mass: None for a massless link.
    """

    name: str
    parent: str
    at: Pose
    chain: tuple[Primitive, ...]
    frame: Pose = IDENTITY
    mass: Mass | None = None

    def pose(self) -> Pose:
        """Pose in the parent's frame at the start values."""
        pose = self.at
        for primitive in self.chain:
            pose = pose @ primitive.pose()
        return pose @ self.frame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closure:
    """Two frames, each on a link, that a joint of some kind holds together; `axis` (3,) is along both frames."""

    name: str
    kind: str
    first: tuple[str, Pose]
    second: tuple[str, Pose]
    axis: np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """A mechanism as links, parents before children, and closures; `notes` tells what is not as in the mechanism."""

    links: tuple[Link, ...]
    closures: tuple[Closure, ...]
    notes: tuple[str, ...]


def spanning_tree(mechanism: Mechanism, closable: Collection[str]) -> Tree:
    """The mechanism as a tree.

    Args:
        mechanism: any mechanism.
        closable: kinds of joints that the target can close a loop by; ball joints must be among them.

    Raises:
        DescriptionError: a body without a joint to the base, or a rod that no rigid link and ideal joints represent.
    """
    builder = _Builder(mechanism)
    for joint, is_reversed in builder.edges():
        builder.hang(joint, is_reversed)
    for joint in mechanism.joints:
        if joint.name not in builder.used and joint.kind != "free":
            builder.cut(joint, closable)
    for rod in mechanism.rods:
        builder.hang_rod(rod)
    DescriptionError.raise_if_any(builder.problems)
    return Tree(links=tuple(builder.links), closures=tuple(builder.closures), notes=tuple(builder.notes))


@dataclass(slots=True)
class _Builder:
    """Collects links and closures."""

    mechanism: Mechanism
    links: list[Link] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    poses: dict[str, Pose] = field(default_factory=lambda: {BASE: IDENTITY})

    def edges(self) -> list[tuple[Joint, bool]]:
        """Joints of the tree from the base outwards, each with whether it is run backwards.

        Grown by the platform's own joint, then fixed joints, then those on whose coordinates something acts, then those
        with few freedoms: what is left to be cut are mostly ball joints on which nothing acts.
        """

        def cost(joint: Joint) -> tuple[bool, bool, bool, int]:
            freedoms = len(JOINT_KINDS[joint.kind].velocities)
            return joint.name != PLATFORM_JOINT, freedoms > 0, not self._is_loaded(joint), freedoms

        m = self.mechanism
        queue = sorted((joint for joint in reversed(m.joints) if not joint.is_cut), key=cost)
        reached, edges = {BASE}, []
        while joint := next((j for j in queue if (j.parent.body in reached) != (j.child.body in reached)), None):
            edges.append((joint, joint.child.body in reached))
            self.used.add(joint.name)
            reached |= {joint.parent.body, joint.child.body}
        for body in m.bodies:
            if body.name not in reached:
                what, remedy = "no joint leads from the base to this body", "give it a joint that is not cut"
                self.problems.append(Problem(where=body.name, what=what, remedy=remedy, file=m.file))
        return [] if self.problems else edges

    def _is_loaded(self, joint: Joint) -> bool:
        m = self.mechanism
        wanted = {name for actuator in m.actuators for name, _ in actuator.drives} | set(m.platform.independent)
        wanted |= {name for coupling in m.couplings for name, _ in coupling.terms}
        acts = any(f.friction or f.spring or f.inertia for f in joint.freedoms)
        return acts or not wanted.isdisjoint(joint.velocity_names)

    def hang(self, joint: Joint, is_reversed: bool) -> None:
        """Append the body at the far side of a joint."""
        near, far = (joint.child, joint.parent) if is_reversed else (joint.parent, joint.child)
        body = self.mechanism.body(far.body)
        if "qw" in JOINT_KINDS[joint.kind].coordinates and len(set(joint.freedoms[-3:])) > 1:
            self.notes.append(
                f"joint {joint.name}: what acts on its rotations differs; that on the first stands for all"
            )
        self._append(
            Link(
                name=body.name,
                parent=near.body,
                at=placement_pose(self.mechanism, near),
                chain=primitives(joint, is_reversed=is_reversed),
                frame=placement_pose(self.mechanism, far).inverse(),
                mass=self._body_mass(body),
            )
        )

    def cut(self, joint: Joint, closable: Collection[str]) -> None:
        """Close a loop by a joint, or by its massless copy."""
        second = (joint.child.body, placement_pose(self.mechanism, joint.child))
        if joint.kind in closable and not self._is_loaded(joint):
            axis = _AXES[joint.axes[0]] if joint.axes else _AXES["z"]
            first = (joint.parent.body, placement_pose(self.mechanism, joint.parent))
            self.closures.append(Closure(name=joint.name, kind=joint.kind, first=first, second=second, axis=axis))
            return
        copy = f"{joint.name}.end"
        at = placement_pose(self.mechanism, joint.parent)
        self._append(Link(name=copy, parent=joint.parent.body, at=at, chain=primitives(joint)))
        self.notes.append(f"joint {joint.name} closes a loop: it carries the massless link {copy}, which is welded on")
        self.closures.append(
            Closure(name=joint.name, kind="fixed", first=(copy, IDENTITY), second=second, axis=_AXES["z"])
        )

    def hang_rod(self, rod: Rod) -> None:
        """Append the links of a rod, and its closure."""
        A, B = placement_pose(self.mechanism, rod.start), placement_pose(self.mechanism, rod.end)
        d = (self.poses[rod.start.body] @ A).inverse() @ self.poses[rod.end.body] @ B
        frame = Pose(self._hinges(rod, A, A.rotation @ d.position), A.position)
        towards = frame.rotation.T @ A.rotation @ d.position
        x, y, z = towards / (np.linalg.norm(towards) or 1.0)
        # z of the rod is (sin b, -sin a cos b, cos a cos b) after turns a about x and b about y
        angles = {"x": float(np.arctan2(-y, z)), "y": float(np.arcsin(np.clip(x, -1.0, 1.0)))}
        hinges = tuple(
            Primitive(
                kind="hinge",
                name=f"{rod.name}.{word}",
                axis=_AXES[axis],
                reference=np.array([angles[axis]]),
                freedom=Freedom(),
            )
            for axis, word in (("x", "first"), ("y", "second"))
        )
        if rod.tension is not None:
            self.notes.append(
                f"rod {rod.name}: bounds of its tension have no place there; it pushes as well as it pulls"
            )
        lower = f"{rod.name}.lower" if rod.telescope is not None else rod.name
        mass = self._part(rod, rod.lower, 1.0)
        self._append(Link(name=lower, parent=rod.start.body, at=frame, chain=hinges, mass=mass))
        tip, tip_pose = lower, Pose(np.eye(3), np.array([0.0, 0.0, self._length(rod)]))
        if rod.telescope is not None:
            start = np.array([rod.telescope.reference])
            slide = Primitive(
                kind="slide", name=rod.name, axis=_AXES["z"], reference=start, freedom=rod.telescope.freedom
            )
            tip, tip_pose = f"{rod.name}.upper", IDENTITY
            mass = self._part(rod, rod.upper, -1.0)
            self._append(Link(name=tip, parent=lower, at=IDENTITY, chain=(slide,), mass=mass))
        self.closures.append(
            Closure(
                name=f"{rod.name}.tip",
                kind="spherical",
                first=(rod.end.body, B),
                second=(tip, tip_pose),
                axis=_AXES["z"],
            )
        )

    def _append(self, link: Link) -> None:
        self.links.append(link)
        self.poses[link.name] = self.poses[link.parent] @ link.pose()

    def _length(self, rod: Rod) -> float:
        return 0.0 if rod.length is None else self.mechanism.value(rod.length)

    def _hinges(self, rod: Rod, A: Pose, along: np.ndarray) -> np.ndarray:
        """Axes (3, 3) whose x is opposite to the first hinge of a rod that lies along a vector (3,) at the start."""
        along = along / np.linalg.norm(along) if np.any(along) else _AXES["z"]
        if rod.is_full and rod.spin == "universal" and rod.first_axis is not None:
            first = np.array([self.mechanism.value(component) for component in rod.first_axis])
            return _hinge_frame(first / np.linalg.norm(first), along)
        for joint in self.mechanism.joints:
            for side in (joint.parent, joint.child) if joint.kind == "revolute" else ():
                axis = placement_pose(self.mechanism, side).rotation @ _AXES[joint.axes[0]]
                if side.body == rod.start.body and np.linalg.norm(np.cross(axis, along)) > _CLEAR:
                    return _hinge_frame(axis, along)
        first = np.cross(along, np.eye(3)[np.argmin(np.abs(along))])
        return _hinge_frame(first / np.linalg.norm(first), along)

    def _body_mass(self, body: Body) -> Mass | None:
        return (
            None if body.inertia is None else self._mass(body.name, *map(self.mechanism.value, body.inertia.parameters))
        )

    def _part(self, rod: Rod, part: SlenderPart | Inertia | None, sign: float) -> Mass | None:
        """Inertia of a rod's part in the rod frame at A, or at B."""
        if part is None:
            return None
        if isinstance(part, SlenderPart):
            m, h, J = map(self.mechanism.value, part.parameters)
            return self._mass(rod.name, m, 0.0, 0.0, sign * h, J, 0.0, J, 0.0, 0.0, 0.0)
        m, hx, hy, hz, xx, xy, yy, xz, yz, zz = map(self.mechanism.value, part.parameters)
        if rod.spin == "universal":
            return self._mass(rod.name, m, hx, hy, hz, xx, xy, yy, xz, yz, zz)
        skewness = max(abs(xx - yy), abs(xy), abs(xz), abs(yz))
        if skewness > _ROUNDING * max(abs(xx), abs(yy)) or max(abs(hx), abs(hy)) > _ROUNDING * abs(m):
            self.problems.append(
                Problem(
                    where=f"rods.{rod.name}",
                    what=f"does not spin and is no body of revolution (its moments differ by {skewness:.3g} kg m^2)",
                    remedy="no ideal joint keeps a rod from spinning: write spin: universal, or make it slender",
                    file=self.mechanism.file,
                )
            )
        # With w.u = 0 and dw/dt.u = 0 a body of revolution moves as if it had no inertia about its axis u.
        return self._mass(rod.name, m, 0.0, 0.0, hz, xx, 0.0, xx, 0.0, 0.0, 0.0)

    def _mass(self, where: str, m: float, *rest: float) -> Mass | None:
        """About the mass centre, by the theorem of parallel axes."""
        hx, hy, hz, xx, xy, yy, xz, yz, zz = rest
        h, about = np.array([hx, hy, hz]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if m == 0.0:
            if h.any():
                what = f"has the first moment {np.linalg.norm(h):.3g} kg m without mass, hence no mass centre"
                self.problems.append(Problem(where=where, what=what, remedy="give it a mass", file=self.mechanism.file))
            return Mass(mass=0.0, center=np.zeros(3), inertia=about) if about.any() else None
        c = h / m
        return Mass(mass=m, center=c, inertia=about - m * (c @ c * np.eye(3) - np.outer(c, c)))


def constant_angles(rotation: np.ndarray) -> dict[AxisName, float]:
    """Angles (rad) of turns about z, then y, then x that make a rotation matrix (3, 3); those of zero are left out."""
    turns = turns_to_axes(rotation[:, 0].tolist(), rotation[:, 1].tolist())
    return {turn.axis: float(evaluate(turn.angle, {})) for turn in turns}


def _hinge_frame(first: np.ndarray, along: np.ndarray) -> np.ndarray:
    """Axes (3, 3): x against the first hinge, z as near to `along` as this allows, so that the hinges start near zero.

    A rod along z of the frame, turned about x and then about y by less than a right angle, has its y along first x z,
    which is the rod frame of the machine file.
    """
    z = along - first * (first @ along)
    if np.linalg.norm(z) < _CLEAR:
        z = np.eye(3)[np.argmin(np.abs(first))]
        z = z - first * (first @ z)
    z = z / np.linalg.norm(z)
    return np.column_stack([-first, np.cross(first, z), z])


def primitives(joint: Joint, *, is_reversed: bool = False) -> tuple[Primitive, ...]:
    """A joint as a chain of primitives from its parent frame to its child frame, or backwards."""
    kind = JOINT_KINDS[joint.kind]
    q = joint.reference or kind.neutral
    freedoms = joint.freedoms or (Freedom(),) * len(kind.velocities)
    words: dict[str, list[tuple[Literal["hinge", "slide"], str]]] = {
        "cylindrical": [("hinge", "axis"), ("slide", "axis")],
        "planar": [("slide", "x"), ("slide", "y"), ("hinge", "z")],
        "schoenflies": [("slide", "x"), ("slide", "y"), ("slide", "z"), ("hinge", "z")],
        "translational": [("slide", "x"), ("slide", "y"), ("slide", "z")],
        "free": [("slide", "x"), ("slide", "y"), ("slide", "z")],
        "revolute": [("hinge", "axis")],
        "prismatic": [("slide", "axis")],
        "universal": [("hinge", "axis"), ("hinge", "second")],
    }
    chain = []
    for i, (word, axis) in enumerate(words.get(joint.kind, ())):
        letter = joint.axes[0] if axis == "axis" else joint.axes[1] if axis == "second" else axis
        chain.append(
            Primitive(
                kind=word,
                name=joint.coordinate_names[i],
                axis=-_AXES[letter] if is_reversed else _AXES[letter],
                reference=np.array([q[i]]),
                freedom=freedoms[i],
                is_reversed=is_reversed,
            )
        )
    if "qw" in kind.coordinates:
        turn = np.array(q[-4:]) * ([1.0, -1.0, -1.0, -1.0] if is_reversed else 1.0)
        chain.append(
            Primitive(
                kind="ball",
                name=f"{joint.name}.turn" if joint.kind == "free" else joint.name,
                axis=_AXES["z"],
                reference=turn,
                freedom=freedoms[-3],
                is_reversed=is_reversed,
            )
        )
    return tuple(chain[::-1] if is_reversed else chain)
