"""A model of an SDF file as plain parts: links and joints with their frames, at the pose that the file describes.

SDF (Gazebo) says where each link is by poses relative to one another; every joint is at zero there. A joint stands in a
frame of its child, and the same frame is that of its parent at this pose. So loops close natively: a link may be the
child of several joints. What is written here follows http://sdformat.org/spec (1.5 to 1.12).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from tauloop.formats.urdf_parts import rotation
from tauloop.formats.xml_nodes import XmlNode, XmlReader
from tauloop.mechanism.poses import IDENTITY, FramePose, quaternion_rotation
from tauloop.mechanism.suggestions import listing
from tauloop.records import dataclass

WORLD, _MODEL = "world", "__model__"
#: Types of joints in SDF and what they are here; a joint that Tauloop wrote may leave everything free.
KINDS = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "ball": "spherical",
    "universal": "universal",
    "revolute2": "universal",
}
#: The element for a joint of six freedoms, which SDF has by having none, and the mark of a link without mass.
FREE, MASSLESS = "tauloop:free", "tauloop:massless"
#: Gravity of a world that says none, m/s^2.
GRAVITY = (0.0, 0.0, -9.8)
#: Two axes are at right angles up to this cosine.
_ACROSS = 1e-9
#: Figures from which on a limit is none.
_NO_LIMIT = 1e15
_OLDEST, _NO_POSE = (1, 5), (0.0,) * 6
#: What a model holds that ties links together and is not read.
_TYING = ("model", "include", "gripper")


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfJoint:
    """A joint between two links.

    Attributes:
        name, kind: kind as in `KINDS`, or "free".
        node: where it stands in the file.
        parent, child: links.
        frames: of the joint, in the parent's link and in the child's.
        axes: unit vectors (3,) in these frames.
    """

    name: str
    kind: str
    node: XmlNode
    parent: str
    child: str
    frames: tuple[FramePose, FramePose]
    axes: tuple[np.ndarray, ...] = ()

    def limit(self, tag: str) -> str | None:
        """A figure of its limits; None where there is none, or what stands for none."""
        node = descend(self.node, "axis", "limit", tag)
        if node is None:
            return None
        try:
            value = float(node.content)
        except ValueError:
            return node.content  # whoever reads it says what is wrong with it
        is_open = abs(value) >= _NO_LIMIT or (tag in ("effort", "velocity") and value < 0.0)
        return None if is_open else node.content


@dataclass(frozen=True, slots=True, kw_only=True)
class SdfModel:
    """A model, checked.

    Attributes:
        name: of the model.
        node: its element.
        links: elements by name.
        poses: of the links in the model's frame.
        joints: in the order of the file.
        gravity: (3,) m/s^2 in the model's frame.
        notes: what whoever reads it should know.
    """

    name: str
    node: XmlNode
    links: Mapping[str, XmlNode]
    poses: Mapping[str, FramePose]
    joints: tuple[SdfJoint, ...]
    gravity: tuple[float, float, float]
    notes: tuple[str, ...]


def descend(node: XmlNode | None, *tags: str) -> XmlNode | None:
    """The element that a path of tags leads to."""
    for tag in tags:
        node = None if node is None else node.first(tag)
    return node


class SdfReader(XmlReader):
    """Reads one model; keeps notes besides problems."""

    def __init__(self, file: str) -> None:
        """Start without notes and problems.

        Args:
            file: name of the file for messages.
        """
        super().__init__(file)
        self.notes: list[str] = []
        self._frames: dict[str, _Frame] = {}
        self._poses: dict[str, FramePose] = {}

    def model(self, root: XmlNode) -> SdfModel | None:
        """The model of a file; None where something is wrong that leaves none."""
        if root.tag != "sdf":
            self.problem(root, root.tag, f"the root element is <{root.tag}>, not <sdf>", "give an SDF file")
            return None
        world, model = root.first("world"), self._only_model(root)
        if model is None:
            return None
        words = root.attributes.get("version", "").split(".")
        version = tuple(int(word) for word in words if word.isdecimal())
        if len(version) != len(words) or version < _OLDEST:
            what = f"version {root.attributes.get('version', '')!r} is older than 1.5, or none"
            self.problem(root, "sdf", what, "convert it with `gz sdf --print FILE`")
            return None
        for tag in _TYING:
            for node in model.all(tag):
                remedy = "put its links and joints into one model: `gz sdf --print FILE`"
                self.problem(node, node.attributes.get("name", tag), f"<{tag}> in a model is not read", remedy)
        if self.flag(model.first("static"), "static"):
            self.problem(
                model, model.attributes.get("name", "model"), "a static model does not move", "remove <static>"
            )
        links = self._named(model, "link")
        for tag in ("link", "joint", "frame"):
            for name, node in self._named(model, tag).items():
                if name in self._frames or name in (WORLD, _MODEL):
                    self.problem(node, name, "this name is taken", "rename one of them")
                self._frames[name] = self._frame(tag, node)
        joints = [self._joint(name, node, links) for name, node in self._named(model, "joint").items()]
        joints += [self._free(node, links) for node in model.all(FREE)]
        if not links:
            self.problem(model, "model", "there is no <link>", "give a model with links and joints")
        self._note_unread(model)
        field_: tuple[float, ...] = GRAVITY
        gravity = None if world is None else world.first("gravity")
        if gravity is None:
            self.notes.append("gravity is SDF's own, 9.8 m/s^2 along -z: the file does not say it")
        else:
            field_ = self.numbers(gravity, "gravity", GRAVITY)
        at = self.pose(model, "model")
        x, y, z = (float(component) + 0.0 for component in at.rotation.T @ np.array(field_))
        return SdfModel(
            name=model.attributes.get("name", ""),
            node=model,
            links=links,
            poses={name: self.resolved(name, node) for name, node in links.items()},
            joints=tuple(joint for joint in joints if joint is not None),
            gravity=(x, y, z),
            notes=tuple(self.notes),
        )

    def _only_model(self, root: XmlNode) -> XmlNode | None:
        worlds = [*root.all("world")]
        models = [*root.all("model"), *(model for world in worlds for model in world.all("model"))]
        if len(models) == 1:
            return models[0]
        what = f"there are {len(models)} models" if models else "there is no <model>"
        names = listing([model.attributes.get("name", "?") for model in models])
        self.problem(root, "sdf", what + (f": {names}" if models else ""), "give a file with one model, the machine")
        return None

    def _named(self, model: XmlNode, tag: str) -> dict[str, XmlNode]:
        named: dict[str, XmlNode] = {}
        for node in model.all(tag):
            named.setdefault(node.attributes.get("name", "").strip() or f"{tag} on line {node.line}", node)
        return named

    # Poses

    def numbers(self, node: XmlNode, where: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """The numbers in an element, as many as the default has."""
        text = node.content
        return self._numbers(node, where, "the text", text, len(default)) if text else default

    def flag(self, node: XmlNode | None, where: str) -> bool:
        """Whether an element says true."""
        return node is not None and node.content.lower() in ("true", "1")

    def pose(self, node: XmlNode, where: str) -> FramePose:
        """The pose in an element, as it is written: relative to whatever it names."""
        pose = node.first("pose")
        if pose is None or not pose.content:
            return IDENTITY
        if pose.attributes.get("rotation_format", "euler_rpy") == "quat_xyzw":
            x, y, z, *turn = self.numbers(pose, where, (*_NO_POSE[:3], 0.0, 0.0, 0.0, 1.0))
            length = float(np.linalg.norm(turn))
            if not 0.999 < length < 1.001:
                self.problem(pose, where, f"the quaternion has length {length:.6g}", "give one of length 1: x y z w")
                return IDENTITY
            R = quaternion_rotation(np.array([turn[3], *turn[:3]]) / length)
        else:
            x, y, z, roll, pitch, yaw = self.numbers(pose, where, _NO_POSE)
            if self._is_in_degrees(pose):
                roll, pitch, yaw = map(math.radians, (roll, pitch, yaw))
            R = np.eye(3) if roll == pitch == yaw == 0.0 else rotation((roll, pitch, yaw))
        return IDENTITY if not np.isfinite([x, y, z, *R.ravel()]).all() else FramePose(R, np.array([x, y, z]))

    def _is_in_degrees(self, pose: XmlNode) -> bool:
        return pose.attributes.get("degrees", "false").lower() in ("true", "1")

    def _frame(self, tag: str, node: XmlNode) -> _Frame:
        """Where a pose is counted from: a joint's from its child, others' from the model, where they do not say it."""
        pose = node.first("pose")
        words = {} if pose is None else pose.attributes
        relative = words.get("relative_to", words.get("frame", "")).strip()
        child = node.first("child")
        attached = node.attributes.get("attached_to", "").strip() if tag == "frame" else ""
        if not relative and tag == "joint" and child is not None:
            relative = child.content
        return _Frame(node=node, relative=relative or attached or _MODEL, attached=attached)

    def resolved(self, name: str, where: XmlNode, seen: tuple[str, ...] = ()) -> FramePose:
        """The pose of a frame in the model's frame; what is unknown or goes in a circle is noted."""
        if name in (_MODEL, WORLD):
            return IDENTITY
        if name in self._poses:
            return self._poses[name]
        frame = self._frames.get(name)
        if frame is None or name in seen:
            what = "poses are relative to one another in a circle" if frame else f"there is no frame {name!r}"
            self.problem(where, name, what, "correct `relative_to`" if "::" not in name else "put all in one model")
            return IDENTITY
        pose = self.resolved(frame.relative, frame.node, (*seen, name)) @ self.pose(frame.node, name)
        self._poses[name] = pose
        return pose

    def _link_of(self, name: str, node: XmlNode, links: Mapping[str, XmlNode]) -> str:
        """The link that a name of a link or frame stands for; empty where there is none, which is noted."""
        seen: list[str] = []
        start = name
        while name in self._frames and name not in links and name not in seen:
            seen.append(name)
            frame = self._frames[name]
            child = frame.node.first("child")
            name = child.content if frame.node.tag == "joint" and child is not None else frame.attached
        if name in links or name == WORLD:
            return name
        self.problem(node, node.attributes.get("name", node.tag), f"{start!r} is no link, and on none", "name a link")
        return ""

    # Joints

    def _joint(self, name: str, node: XmlNode, links: Mapping[str, XmlNode]) -> SdfJoint | None:
        word = self.text(node, name, "type")
        remedy = f"use one of {listing(KINDS, 10)}; gears go into a side file"
        kind = self.look_up(node, name, word, KINDS, f"a joint of type {word!r} is not read", remedy) if word else None
        ends = []
        for tag in ("parent", "child"):
            element = node.first(tag)
            if element is None or not element.content:
                self.problem(node, name, f"has no <{tag}>", f"add <{tag}>LINK</{tag}>")
                ends.append("")
            else:
                ends.append(self._link_of(element.content, node, links))
        parent, child = ends
        if child == WORLD or (parent and parent == child):
            self.problem(node, name, f"joins {parent!r} and {child!r}", "the child is another link than the parent")
            return None
        if kind is None or not parent or not child:
            return None
        at = self.resolved(name, node)
        frames = (self.resolved(parent, node).inverse() @ at, self.resolved(child, node).inverse() @ at)
        pose, element = node.first("pose"), node.first("child")
        if element is not None and element.content == child and self._frames[name].relative == child:
            frames = (frames[0], self.pose(node, name) if pose is not None else IDENTITY)
        count = {"revolute": 1, "prismatic": 1, "universal": 2}.get(kind, 0)
        axes = tuple(self._axis(node, name, tag, at) for tag in ("axis", "axis2")[:count])
        if count == 2 and abs(axes[0] @ axes[1]) > _ACROSS:
            what = "its two axes are not at right angles"
            self.problem(node, name, what, "write two revolute joints with a link between them")
        if any(node.first(axis) is not None and descend(node, axis, "mimic") is not None for axis in ("axis", "axis2")):
            self.problem(node, name, "<mimic> is not read", "couple the joints in a side file: `couplings`")
        return SdfJoint(name=name, kind=kind, node=node, parent=parent, child=child, frames=frames, axes=axes)

    def _free(self, node: XmlNode, links: Mapping[str, XmlNode]) -> SdfJoint | None:
        """A joint of six freedoms as Tauloop writes it, from the frame of one link to that of another."""
        name, parent, child = (self.text(node, FREE, key) for key in ("name", "parent", "child"))
        if child not in links or parent not in (*links, WORLD) or child == parent:
            self.problem(node, name or FREE, f"{parent!r} and {child!r} are no two links", "correct them")
            return None
        start = self.resolved(parent, node).inverse() @ self.resolved(child, node)
        return SdfJoint(name=name, kind="free", node=node, parent=parent, child=child, frames=(start, IDENTITY))

    def _axis(self, node: XmlNode, name: str, tag: str, at: FramePose) -> np.ndarray:
        """A joint's axis (3,) in its own frame."""
        xyz = descend(node, tag, "xyz")
        axis = np.array([0.0, 0.0, 1.0] if xyz is None else self.numbers(xyz, name, (0.0, 0.0, 1.0)))
        length = float(np.linalg.norm(axis))
        if not length > 0.0:
            self.problem(xyz or node, name, "the axis has length zero", "give a direction, such as 0 0 1")
            return np.array([0.0, 0.0, 1.0])
        named = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
        if self.flag(descend(node, tag, "use_parent_model_frame"), name):
            named = _MODEL
        axis = axis if length == 1.0 else axis / length
        return at.rotation.T @ self.resolved(named, node).rotation @ axis if named else axis

    def _note_unread(self, model: XmlNode) -> None:
        read = {"link", "joint", "frame", "pose", "static", FREE, *_TYING}
        counts: dict[str, int] = {}
        for node in model.children:
            if node.tag not in read:
                counts[node.tag] = counts.get(node.tag, 0) + 1
        for link in model.all("link"):
            for node in link.children:
                if node.tag not in ("pose", "inertial", "visual", "collision", MASSLESS):
                    counts[f"{node.tag} of link"] = counts.get(f"{node.tag} of link", 0) + 1
        springs = [
            node.attributes.get("name", "")
            for node in model.all("joint")
            if (spring := descend(node, "axis", "dynamics", "spring_stiffness")) is not None
            and spring.content.strip("0.") not in ("", "e")
        ]
        if springs:
            self.notes.append(f"springs are not read; put them into a side file: {listing(springs)}")
        if counts:
            self.notes.append("not used: " + ", ".join(f"{tag} ({count})" for tag, count in sorted(counts.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """A frame by name: its element, what its pose is relative to, and what it moves with."""

    node: XmlNode
    relative: str
    attached: str = field(default="")
