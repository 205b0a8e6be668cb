"""Links, joints and loops of a URDF as plain numbers, and the reader of their common elements."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tauloop.common.errors import Problem
from tauloop.common.records import dataclass
from tauloop.formats.lengths import LENGTH_ROUNDING_FRACTION, without_rounding
from tauloop.formats.xml.nodes import XmlNode, XmlReader
from tauloop.mechanism.description.placements import turns_to_axes
from tauloop.mechanism.expression import Constant
from tauloop.mechanism.links.rigid_tree import LinkInertia, constant_angles
from tauloop.mechanism.model import AxisName
from tauloop.mechanism.poses import FramePose, quaternion_rotation, rotation_matrix
from tauloop.mechanism.solids.solid import Solid

#: Angles that differ from a multiple of 90 deg by less than this, rad, count as exact. Files
#: contain pi/2 with about ten digits, and inexact zeros would multiply the number of operations.
_RIGHT_ANGLE_TOLERANCE = 1e-9
#: Largest rounding error of an angle from a product of rotations; such angles are not reported.
_ANGLE_ROUNDING = 1e-14
#: Sines and cosines below this are rounding errors of a right angle.
_COSINE_ROUNDING = 1e-15

#: Largest deviation from length one of quaternions printed with few digits.
_QUATERNION_LENGTH_TOLERANCE = 1e-4

#: Limits of this magnitude or larger count as unlimited; formats without infinity use such numbers.
UNLIMITED = 1e15

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class UrdfLink:
    """A link; without ``<inertial>`` it is massless."""

    name: str
    inertial: LinkInertia | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrdfJoint:
    """A joint of the tree; angles in rad, lengths in m, effort in N m or N.

    `kind` is a key of `JOINT_KINDS`. `axes` and `axis_joints` are the axes and rotations of a
    universal joint (not in URDF itself); the rotations have the names of its coordinates. `effort`
    is None if the file specifies none. `stiffness` and `rest` belong to a spring, and `start` is
    the start value. The joint's frame on its child is at `child_xyz`, rotated by `child_rpy`; in
    URDF itself, it is the child's frame. `locked_at` is the position of a joint whose limits are
    stated and equal, which is read as no limits.
    """

    name: str
    kind: str
    parent: str
    child: str
    xyz: Triple
    rpy: Triple
    axis: Triple
    lower: float = -math.inf
    upper: float = math.inf
    effort: float | None = None
    velocity: float = math.inf
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    start: float = 0.0
    child_xyz: Triple = (0.0, 0.0, 0.0)
    child_rpy: Triple = (0.0, 0.0, 0.0)
    axes: tuple[AxisName, ...] = ()
    axis_joints: tuple[UrdfJoint, ...] = ()
    locked_at: float | None = None

    @property
    def force(self) -> float:
        """Effort limit of the joint; infinite if it is absent or zero."""
        return self.effort or math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFrame:
    """A frame on a link: its origin, m, and its roll, pitch and yaw, rad, in the link frame."""

    link: str
    xyz: Triple = (0.0, 0.0, 0.0)
    rpy: Triple = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrdfLoop:
    """A joint that closes a loop: `kind` is a key of `JOINT_KINDS`.

    `axis` has the same coordinates in both frames. For a universal joint, `axis` is in the frame of
    the predecessor, and `other_axis` is in the frame of the successor.
    """

    name: str
    kind: str
    predecessor: LinkFrame
    successor: LinkFrame
    axis: Triple = (0.0, 0.0, 1.0)
    other_axis: Triple = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class UrdfCoupling:
    """A gear: sum of ratio_j q_j = offset, with (joint name, ratio) terms.

    `mimics` states whether the first joint mimics another.
    """

    name: str
    terms: tuple[tuple[str, float], ...]
    offset: float = 0.0
    mimics: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedMotor:
    """A motor of a file; its position is the sum of ratio_j (q_j - offset_j) over its joints.

    Attributes:
        name: name of the motor.
        drives: (joint, ratio) pairs.
        offsets: offsets of these joints, rad or m; empty if all are zero.
    """

    name: str
    drives: tuple[tuple[str, float], ...]
    offsets: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorStatement:
    """Motors that elements of one kind state.

    Attributes:
        source: the elements, for notes.
        motors: motors in the order of the file.
        passive: joints without a motor according to these elements.
        problems: errors in the elements; they are raised only if the statement is used.
    """

    source: str
    motors: tuple[StatedMotor, ...] = ()
    passive: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MotorElements:
    """Motors that a file's elements state.

    Attributes:
        statements: one statement per kind of element; the first statement with a motor applies.
        rotors: gear ratio n and rotor inertia J by joint, which add n^2 J at the joint (Drake).
        couplings: joints that follow others by a parameter of ``<ros2_control>``.
        notes: unused elements.
    """

    statements: tuple[MotorStatement, ...] = ()
    rotors: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    couplings: tuple[UrdfCoupling, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UrdfTree:
    """A checked URDF: every link except the root is the child of one joint.

    Attributes:
        name: name of the robot.
        file: name of the file.
        root: the link without a parent.
        links, joints: links and joints in the order of the file.
        loops, couplings: loop closures, then gears, each in the order of the file.
        independent: joints whose coordinates are independent according to the file (GRBDA); may be
            empty.
        notes: notes for the user, such as unused elements and zeros.
        solids: solids of the links, for drawing.
        renamed: new names of renamed links, by their names in the file.
        motors: motors that elements of the file state.
        cut_efforts: efforts of the joints that close loops, in formats that specify them.
        gravity: gravity (3,), m/s^2; None if the file does not specify it.
        weightless: names of links on which gravity does not act.
        omitted_forces, unknown_elements: as in `Mechanism`.
    """

    name: str
    file: str
    root: str
    links: tuple[UrdfLink, ...]
    joints: tuple[UrdfJoint, ...]
    loops: tuple[UrdfLoop, ...] = ()
    couplings: tuple[UrdfCoupling, ...] = ()
    independent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    solids: tuple[Solid, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    motors: MotorElements = MotorElements()
    cut_efforts: tuple[float, ...] = ()
    gravity: Triple | None = None
    weightless: tuple[str, ...] = ()
    omitted_forces: tuple[str, ...] = ()
    unknown_elements: tuple[str, ...] = ()

    def link_name(self, original: str) -> str:
        """Return the name in the mechanism for a link name of the file, which need not exist."""
        name = identifier(original)
        return self.renamed.get(name, name)


def rotation(rpy: Triple) -> np.ndarray:
    """Return R = Rz(yaw) Ry(pitch) Rx(roll), URDF's angles about the fixed x, y and z."""
    roll, pitch, yaw = rpy
    R = rotation_matrix([("z", yaw), ("y", pitch), ("x", roll)])
    return np.where(np.abs(R) < _COSINE_ROUNDING, 0.0, R)


def pose_of(xyz: Triple, rpy: Triple) -> FramePose:
    """Return the pose of an ``<origin>``."""
    return FramePose(np.eye(3) if rpy == (0.0, 0.0, 0.0) else rotation(rpy), np.array(xyz))


def roll_pitch_yaw(pose: FramePose) -> Triple:
    """Return roll, pitch and yaw of a pose, R = Rz(yaw) Ry(pitch) Rx(roll)."""
    angles = constant_angles(pose.rotation) if pose.is_turned else {}
    return angles.get("x", 0.0), angles.get("y", 0.0), angles.get("z", 0.0)


class UrdfReader(XmlReader):
    """Reader of common elements of a URDF, which collects notes and problems."""

    def __init__(self, file: str, largest: float) -> None:
        """Create a reader without notes and problems.

        Args:
            file: name of the file for messages.
            largest: largest length of the file, m, to which rounding errors are relative.
        """
        super().__init__(file)
        self._largest = largest
        self._notes: list[tuple[str, str]] = []
        self._right_angles: dict[str, None] = {}
        self._rounded_positions: dict[str, None] = {}
        self.renamed: dict[str, str] = {}

    def note(self, subject: str, what: str) -> None:
        """Add a note; equal notes on several subjects are combined."""
        self._notes.append((subject, what))

    def listed(self) -> list[str]:
        """Return all notes, in the order of their first occurrence."""
        grouped: dict[str, list[str]] = {}
        for subject, what in self._notes:
            grouped.setdefault(what, []).append(subject)
        notes = [
            f"{', '.join(subjects)}: {what}" if any(subjects) else what
            for what, subjects in grouped.items()
        ]
        if self._right_angles:
            names = ", ".join(self._right_angles)
            notes.append(f"angles with few digits are read as exact right angles: {names}")
        if self._rounded_positions:
            names = ", ".join(self._rounded_positions)
            notes.append(
                f"lengths below {LENGTH_ROUNDING_FRACTION:g} of the largest are read as zero: {names}"
            )
        return notes

    def name(self, node: XmlNode) -> str:
        """Return the name of an element as an identifier; its tag after a problem."""
        return identifier(self.text(node, node.tag, "name")) or node.tag

    def kind(self, node: XmlNode, name: str, kinds: Mapping[str, str], what: str) -> str:
        """Return the kind for an element's ``type``; "fixed" after a problem if it is unknown."""
        word = self.text(node, name, "type")
        remedy = f"use one of {', '.join(kinds)}"
        if not word:
            return "fixed"
        kind = self.look_up(node, name, word, kinds, f"{word!r} is not a {what}", remedy)
        return kind or "fixed"

    def without_rounding_errors(self, xyz: Triple, name: str) -> Triple:
        """Return a position without an exporter's rounding errors."""
        x, y, z = without_rounding(xyz, self._largest).tolist()
        if (x, y, z) != xyz and not any(map(math.isnan, xyz)):
            self._rounded_positions[name] = None
        return x, y, z

    def origin(self, node: XmlNode, name: str, tag: str = "origin") -> tuple[Triple, Triple]:
        """Return position and roll, pitch, yaw of an element's ``<origin>``, or zeros."""
        origin = node.first(tag)
        x, y, z = self.vector(origin, name, "xyz", (0.0, 0.0, 0.0))
        angles = self.vector(origin, name, "rpy", (0.0, 0.0, 0.0))
        if origin is not None and "quat_xyzw" in origin.attributes:
            angles = self._from_quaternion(origin, name)
        roll, pitch, yaw = (self._angle(angle, name) for angle in angles)
        return self.without_rounding_errors((x, y, z), name), (roll, pitch, yaw)

    def _from_quaternion(self, origin: XmlNode, name: str) -> tuple[float, ...]:
        """Return roll, pitch and yaw of a unit quaternion, which URDF 1.2 also permits."""
        if "rpy" in origin.attributes:
            self.problem(origin, name, "has both rpy and quat_xyzw", "keep one of them")
        x, y, z, w = self.vector(origin, name, "quat_xyzw", (0.0, 0.0, 0.0, 1.0))
        length = math.sqrt(x * x + y * y + z * z + w * w)
        if math.isnan(length):
            return 0.0, 0.0, 0.0
        if not abs(length - 1.0) < _QUATERNION_LENGTH_TOLERANCE:
            self.problem(
                origin,
                name,
                f"the quaternion has length {length:.6g}",
                "give a unit quaternion x y z w",
            )
            return 0.0, 0.0, 0.0
        first, second, _ = quaternion_rotation(np.array([w, x, y, z])).T.tolist()
        rotations = turns_to_axes(first, second)
        angles = {
            rotation.axis: rotation.angle.value
            for rotation in rotations
            if isinstance(rotation.angle, Constant)
        }
        return angles.get("x", 0.0), angles.get("y", 0.0), angles.get("z", 0.0)

    def _angle(self, angle: float, name: str) -> float:
        """Return an angle, rounded if it is close to a multiple of a right angle."""
        right_angle = math.pi / 2
        nearest = right_angle * round(angle / right_angle) if math.isfinite(angle) else angle
        if angle == nearest or not abs(angle - nearest) < _RIGHT_ANGLE_TOLERANCE:
            return angle
        if abs(angle - nearest) > _ANGLE_ROUNDING:
            self._right_angles[name] = None
        return nearest

    def axis(self, node: XmlNode, name: str, tag: str = "axis") -> Triple:
        """Return the unit vector of an element's ``<axis>``; URDF's default is x."""
        element = node.first(tag)
        x, y, z = self.vector(element, name, "xyz", (1.0, 0.0, 0.0))
        length = float(np.linalg.norm((x, y, z)))
        if length == 0.0 and element is not None:
            self.problem(
                element, name, "the axis has length zero", "give a direction, such as 0 0 1"
            )
            return 0.0, 0.0, 1.0
        if abs(length - 1.0) > 1e-6:
            self.note(name, f"the axis has length {length:.7g} and is normalized")
        return (x, y, z) if length == 1.0 else (x / length, y / length, z / length)

    def end(
        self,
        node: XmlNode,
        name: str,
        tag: str,
        links: Mapping[str, XmlNode],
        *,
        attribute: str = "link",
    ) -> str:
        """Return the link that a child element names, as an identifier; "" after a problem."""
        element = node.first(tag)
        if element is None:
            self.problem(node, name, f"has no <{tag}>", f'add <{tag} {attribute}="..."/>')
            return ""
        return self.link(element, name, attribute, links)

    def link(
        self, element: XmlNode, name: str, attribute: str, links: Mapping[str, XmlNode]
    ) -> str:
        """Return the link that an attribute names, as an identifier; "" after a problem."""
        original = self.text(element, name, attribute)
        if not original:
            return ""
        link = identifier(original)
        link = self.renamed.get(link, link)
        what = f"the {element.tag} link {original!r} does not exist"
        remedy = "add the link or correct the name"
        return link if self.look_up(element, name, link, links, what, remedy) else ""


def identifier(name: str) -> str:
    """Return a name as an identifier: letters, digits and underscores in parts joined by dots.

    Each part starts with a letter. Other characters become underscores; the result is empty if the
    name has no letter.
    """
    text = re.sub(r"[^A-Za-z0-9_.]|(?<!\w)\.|\.(?![A-Za-z])", "_", name.strip(), flags=re.ASCII)
    if not re.search("[A-Za-z]", text):
        return ""
    return text if text[0].isalpha() else f"n{text}"
