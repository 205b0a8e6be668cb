"""A mechanism at nominal parameters as a tree of rigid links with loop closures.

This form is the basis for file formats and physics engines that only have links and closures.

A rod becomes one link, and a telescopic rod two. A universal joint attaches the rod to its start
body, and a ball joint at the other end closes a loop. A slender rod has no inertia about its own
axis, so the universal joint is equivalent to the ball joint of the machine file. Sometimes a loop
must be opened at a joint that the target cannot close, or on which forces act. Such a joint then
moves a massless link, which is welded to the joint's child body.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

import numpy as np

from tauloop.common.errors import Problems, TauloopError
from tauloop.common.records import dataclass
from tauloop.mechanism.description.placements import turns_to_axes
from tauloop.mechanism.expression import evaluate
from tauloop.mechanism.inertia import about_center, as_matrices
from tauloop.mechanism.model import (
    BASE,
    AxisName,
    Freedom,
    Inertia,
    Joint,
    Mechanism,
    Rod,
    SlenderPart,
    spanning_joints,
)
from tauloop.mechanism.poses import IDENTITY, UNIT_VECTORS, Array, FramePose, placement_pose
from tauloop.mechanism.solids.primitives import Primitive, primitives, single

#: Unit vectors (3,) by axis letter.
VECTORS: dict[str, Array] = {letter: np.array(vector) for letter, vector in UNIT_VECTORS.items()}
#: The axis of a neighboring joint is used as a rod's first hinge axis if the sine of the angle
#: between the axis and the rod is larger than this.
_MIN_SINE = 0.5
#: Largest asymmetry about a rod's axis, relative to the rod's inertia, that counts as rounding.
_ASYMMETRY_TOLERANCE = 1e-12
#: The mass center of a link lighter than this fraction of the machine's heaviest mass is undefined;
#: its first moment must be zero.
MIN_MASS_RATIO = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkInertia:
    """Mass properties of a link, in the link's frame.

    Attributes:
        mass: mass, kg.
        center: mass center (3,), m.
        about_center: inertia (3, 3) about the mass center, kg m^2.
    """

    mass: float
    center: Array
    about_center: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Link:
    """A rigid link.

    Attributes:
        name: name of the body, rod, or part of a rod.
        parent: name of the parent link.
        at: pose of the joint's first frame in the parent's frame.
        chain: primitive joints between parent and link; fixed if empty.
        frame: pose of the link's frame in the last frame of the chain.
        mass: mass properties; None for a massless link.
        joint: name of the joint or rod that moves the link.
    """

    name: str
    parent: str
    at: FramePose
    chain: tuple[Primitive, ...]
    frame: FramePose = IDENTITY
    mass: LinkInertia | None = None
    joint: str = ""

    def pose(self) -> FramePose:
        """Return the pose of the link in the parent's frame at the joint's start values."""
        pose = self.at
        for primitive in self.chain:
            pose = pose @ primitive.pose()
        return pose @ self.frame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Closure:
    """A joint that closes a loop.

    Attributes:
        name: name of the joint.
        kind: key of `JOINT_KINDS`.
        first, second: the two frames of the joint, each as (link, pose on that link).
        axes: letters of the joint's axes.
    """

    name: str
    kind: str
    first: tuple[str, FramePose]
    second: tuple[str, FramePose]
    axes: tuple[AxisName, ...] = ()

    @property
    def axis(self) -> Array:
        """Axis (3,) in both frames; z if the joint has none."""
        return np.array(UNIT_VECTORS[self.axes[0] if self.axes else "z"])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RodLinks:
    """A rod in the tree: hinges about x and then y attach it, and its z axis points along the rod.

    Attributes:
        name: name of the rod, and of its length if it is telescopic.
        start, end: frames at the joint centers A (axes of the two hinges) and B, each as (body,
            pose on that body).
        angles: names of the two hinge angles.
        is_telescopic: whether the length of the rod is a coordinate.
    """

    name: str
    start: tuple[str, FramePose]
    end: tuple[str, FramePose]
    angles: tuple[str, str]
    is_telescopic: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tree:
    """A mechanism as rigid links.

    Attributes:
        links: links of the tree, parents before children.
        closures: joints that close the loops.
        joints: names of the joints in the tree, from the base outwards.
        rods: hinges and frames of the rods.
        notes: differences from the mechanism, as texts.
    """

    links: tuple[Link, ...]
    closures: tuple[Closure, ...]
    joints: tuple[str, ...]
    rods: tuple[RodLinks, ...]
    notes: tuple[str, ...]


def rigid_tree(
    mechanism: Mechanism,
    closable: Collection[str],
    error: type[TauloopError],
    *,
    keeps_loaded: bool = True,
) -> Tree:
    """Return the mechanism as a tree.

    Args:
        mechanism: the machine.
        closable: kinds of joints by which the target can close a loop; ball joints must be
            included.
        error: type of the errors.
        keeps_loaded: whether a loop-closing joint on which forces act keeps its coordinates, by a
            massless link (see the description of the module).

    Raises:
        TauloopError: of the given type; a body has no chain of joints to the base, or a rod or mass
            cannot be represented by rigid links and ideal joints.
    """
    builder = _TreeBuilder(mechanism, keeps_loaded)
    # among equal joints, prefer the last in the file: then mostly unloaded ball joints are cut
    for joint, is_reversed in spanning_joints(mechanism, error, lambda depth, index: (-index,)):
        builder.add_link(joint, is_reversed)
    for joint in mechanism.joints:
        if joint.name not in builder.used and (
            joint.kind != "free" or (keeps_loaded and mechanism.is_loaded(joint))
        ):
            builder.add_closure(joint, closable)
    for rod in mechanism.rods:
        if rod.drum is None:
            builder.add_rod(rod)
        else:
            what = "winds onto a drum, which rigid links and joints cannot represent"
            remedy = "omit the drum if its radius is small; only machine files support drums"
            builder.problems.add(f"rods.{rod.name}.drum", what, remedy, file=mechanism.file)
    error.raise_if_any(builder.problems)
    return Tree(
        links=tuple(builder.links),
        closures=tuple(builder.closures),
        joints=tuple(builder.used),
        rods=tuple(builder.rods),
        notes=tuple(builder.notes),
    )


@dataclass(slots=True)
class _TreeBuilder:
    """Collects links and closures."""

    mechanism: Mechanism
    keeps_loaded: bool
    links: list[Link] = field(default_factory=list)
    closures: list[Closure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)
    used: list[str] = field(default_factory=list)
    rods: list[RodLinks] = field(default_factory=list)
    poses: dict[str, FramePose] = field(default_factory=lambda: {BASE: IDENTITY})

    def add_link(self, joint: Joint, is_reversed: bool) -> None:
        """Add the link of the body at the outer side of a joint."""
        self.used.append(joint.name)
        inner, outer = (joint.child, joint.parent) if is_reversed else (joint.parent, joint.child)
        body = self.mechanism.body(outer.body)
        self._append(
            Link(
                name=body.name,
                parent=inner.body,
                at=placement_pose(self.mechanism, inner),
                chain=primitives(joint, is_reversed=is_reversed),
                frame=placement_pose(self.mechanism, outer).inverse(),
                joint=joint.name,
                mass=self._mass(f"bodies.{body.name}", body.inertia),
            )
        )

    def add_closure(self, joint: Joint, closable: Collection[str]) -> None:
        """Close a loop by a joint, or by a massless link that is welded to the joint's child."""
        second = (joint.child.body, placement_pose(self.mechanism, joint.child))
        if joint.kind in closable and not (self.keeps_loaded and self.mechanism.is_loaded(joint)):
            first = (joint.parent.body, placement_pose(self.mechanism, joint.parent))
            closure = Closure(
                name=joint.name, kind=joint.kind, first=first, second=second, axes=joint.axes
            )
            self.closures.append(closure)
            return
        extra_link = f"{joint.name}.end"
        parent_frame = placement_pose(self.mechanism, joint.parent)
        self._append(
            Link(
                name=extra_link,
                parent=joint.parent.body,
                at=parent_frame,
                chain=primitives(joint),
                joint=joint.name,
            )
        )
        self.notes.append(
            f"joint {joint.name} closes a loop: it moves the massless link {extra_link}, which is "
            f"welded to {joint.child.body}"
        )
        self.closures.append(
            Closure(name=joint.name, kind="fixed", first=(extra_link, IDENTITY), second=second)
        )

    def add_rod(self, rod: Rod) -> None:
        """Add the links of a rod, and its closure."""
        A, B = placement_pose(self.mechanism, rod.start), placement_pose(self.mechanism, rod.end)
        d = (self.poses[rod.start.body] @ A).inverse() @ self.poses[rod.end.body] @ B
        frame = FramePose(self._hinges(rod, A, A.rotation @ d.position), A.position)
        direction = frame.rotation.T @ A.rotation @ d.position
        x, y, z = direction / (np.linalg.norm(direction) or 1.0)
        # z of the rod is (sin b, -sin a cos b, cos a cos b) after rotations a about x, b about y
        first, second = float(np.arctan2(-y, z)), float(np.arcsin(np.clip(x, -1.0, 1.0)))
        angles = (("first", "x", first), ("second", "y", second))
        hinges = tuple(
            single("hinge", f"{rod.name}.{suffix}", axis, angle, Freedom())
            for suffix, axis, angle in angles
        )
        if rod.tension is not None:
            self.notes.append(
                f"rod {rod.name}: the target has no tension bounds; the cable pushes as well as "
                "pulls"
            )
        lower = f"{rod.name}.lower" if rod.telescope is not None else rod.name
        mass = self._part(rod, rod.lower, 1.0)
        self._append(
            Link(
                name=lower, parent=rod.start.body, at=frame, chain=hinges, mass=mass, joint=rod.name
            )
        )
        length = 0.0 if rod.length is None else self.mechanism.value(rod.length)
        tip_link, tip_pose = lower, FramePose(position=np.array([0.0, 0.0, length]))
        if rod.telescope is not None:
            slide = single("slide", rod.name, "z", rod.telescope.reference, rod.telescope.freedom)
            tip_link, tip_pose = f"{rod.name}.upper", IDENTITY
            mass = self._part(rod, rod.upper, -1.0)
            self._append(
                Link(
                    name=tip_link,
                    parent=lower,
                    at=IDENTITY,
                    chain=(slide,),
                    mass=mass,
                    joint=rod.name,
                )
            )
        self.closures.append(
            Closure(
                name=f"{rod.name}.tip",
                kind="spherical",
                first=(rod.end.body, B),
                second=(tip_link, tip_pose),
            )
        )
        self.rods.append(
            RodLinks(
                name=rod.name,
                start=(rod.start.body, frame),
                end=(rod.end.body, B),
                angles=(hinges[0].name, hinges[1].name),
                is_telescopic=rod.telescope is not None,
            )
        )

    def _append(self, link: Link) -> None:
        self.links.append(link)
        self.poses[link.name] = self.poses[link.parent] @ link.pose()

    def _hinges(self, rod: Rod, A: FramePose, direction: np.ndarray) -> np.ndarray:
        """Return the hinge frame (3, 3) of a rod; its x axis is opposite to the first hinge axis.

        Args:
            rod: the rod.
            A: frame of the rod's start.
            direction: vector (3,) along the rod, in axes of its start body.
        """
        direction = direction / np.linalg.norm(direction) if np.any(direction) else VECTORS["z"]
        if rod.is_full and rod.spin == "universal":
            if rod.first_axis is None:
                what, file = "has a universal joint without `first_axis`", self.mechanism.file
                self.problems.add(f"rods.{rod.name}", what, "add the axis", file=file)
                return np.eye(3)
            first = np.array([self.mechanism.value(component) for component in rod.first_axis])
            return _hinge_frame(first / np.linalg.norm(first), direction)
        return _hinge_frame(first_hinge(self.mechanism, rod, direction), direction)

    def _heaviest(self) -> float:
        """Return the largest mass of a body or of a part of a rod, kg."""
        parts: list[SlenderPart | Inertia | None] = [body.inertia for body in self.mechanism.bodies]
        parts += [part for rod in self.mechanism.rods for part in (rod.lower, rod.upper)]
        masses = (
            abs(self.mechanism.value(part.parameters[0])) for part in parts if part is not None
        )
        return max(masses, default=0.0)

    def _mass(self, where: str, inertia: Inertia | None) -> LinkInertia | None:
        if inertia is None:
            return None
        return self._about_center(where, *map(self.mechanism.value, inertia.parameters))

    def _part(
        self, rod: Rod, part: SlenderPart | Inertia | None, sign: float
    ) -> LinkInertia | None:
        """Return the inertia of one part of a rod, in the rod frame at A (`sign` = 1) or B (-1)."""
        where = f"rods.{rod.name}"
        if part is None:
            return None
        if isinstance(part, SlenderPart):
            m, h, J = map(self.mechanism.value, part.parameters)
            return self._about_center(where, m, 0.0, 0.0, sign * h, J, 0.0, J, 0.0, 0.0, 0.0)
        m, hx, hy, hz, xx, xy, yy, xz, yz, _ = map(self.mechanism.value, part.parameters)
        if rod.spin == "universal":
            return self._mass(where, part)
        offset = max(abs(hz), abs(m) * self.mechanism.characteristic_length)
        asymmetry = max(abs(xx - yy), abs(xy), abs(xz), abs(yz))
        if (
            asymmetry > _ASYMMETRY_TOLERANCE * max(abs(xx), abs(yy))
            or max(abs(hx), abs(hy)) > _ASYMMETRY_TOLERANCE * offset
        ):
            eccentricity = np.hypot(hx, hy) / m if m else 0.0
            self.problems.add(
                where,
                "the inertia of a rod with spin: none must be that of a body of revolution, got "
                f"I_xx = {xx:.6g}, I_yy = {yy:.6g}, largest product "
                f"{max(abs(xy), abs(xz), abs(yz)):.3g} kg m^2, mass center off its axis by "
                f"{eccentricity:.3g} m; no ideal joint prevents its spin",
                "write `spin: universal`, or make the rod slender",
                file=self.mechanism.file,
            )
        # With w.u = 0 and dw/dt.u = 0 a body of revolution moves as if it had no inertia about its
        # axis u: the terms I_zz dw_z/dt and (I_yy - I_xx) w_x w_y vanish.
        return self._about_center(where, m, 0.0, 0.0, hz, xx, 0.0, xx, 0.0, 0.0, 0.0)

    def _about_center(self, where: str, *parameters: float) -> LinkInertia | None:
        """Return the inertia about the mass center from the ten parameters about the origin."""
        m, h, about = as_matrices(parameters)
        if abs(m) <= MIN_MASS_RATIO * self._heaviest():
            if h.any():
                what = (
                    f"the mass center is undefined: first moment {np.linalg.norm(h):.3g} kg m, "
                    f"mass {m:.3g} kg"
                )
                remedy = "give it a mass; engines and other formats need a mass center"
                self.problems.add(where, what, remedy, file=self.mechanism.file)
            if not about.any():
                return None
            return LinkInertia(mass=0.0, center=np.zeros(3), about_center=about)
        center, about = about_center(m, h, about)
        return LinkInertia(mass=m, center=center, about_center=about)


def constant_angles(rotation: np.ndarray) -> dict[AxisName, float]:
    """Return the angles (rad) about z, then y, then x of a rotation matrix (3, 3), by axis.

    Zero angles are omitted.
    """
    rotations = turns_to_axes(rotation[:, 0].tolist(), rotation[:, 1].tolist())
    return {
        rotation_step.axis: float(evaluate(rotation_step.angle, {})) for rotation_step in rotations
    }


def first_hinge(mechanism: Mechanism, rod: Rod, direction: Array) -> Array:
    """Return the axis (3,) about which a rod rotates first, on its start body.

    This is the axis of a neighboring hinge, or a direction perpendicular to a neighboring slide.

    Args:
        mechanism: the machine.
        rod: a rod without `first_axis`.
        direction: unit vector (3,) along the rod, in axes of its start body.
    """
    sides = [(joint, side) for joint in mechanism.joints for side in (joint.parent, joint.child)]
    for joint, side in sides:
        if side.body == rod.start.body and joint.kind in ("revolute", "prismatic"):
            axis = placement_pose(mechanism, side).rotation @ VECTORS[joint.axes[0]]
            perpendicular = np.cross(axis, direction)
            if np.linalg.norm(perpendicular) > _MIN_SINE:
                if joint.kind == "revolute":
                    return axis
                return np.asarray(perpendicular / np.linalg.norm(perpendicular))
    first = np.cross(direction, np.eye(3)[np.argmin(np.abs(direction))])
    return np.asarray(first / np.linalg.norm(first))


def _hinge_frame(first: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return axes (3, 3): x opposite to the first hinge, z as near to `direction` as this allows.

    The hinge angles then start near zero. After rotations about x and y by less than 90 deg, the
    y axis is along first x z, as in the rod frame of the machine file.
    """
    z = direction - first * (first @ direction)
    if np.linalg.norm(z) < _MIN_SINE:
        z = np.eye(3)[np.argmin(np.abs(first))]
        z = z - first * (first @ z)
    z = z / np.linalg.norm(z)
    return np.column_stack([-first, np.cross(first, z), z])
