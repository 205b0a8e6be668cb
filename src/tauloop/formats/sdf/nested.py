"""Models nested in an SDF model: their elements with names such as ``gripper::finger``.

The frame of a nested model becomes a frame with the model's name, attached to its canonical link.
Names of a merged model (``<include merge="true">``) are not changed, and its frame has
libsdformat's name ``_merged__NAME__model__``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tauloop.formats.imported.motor_elements import ROS2_CONTROL, TRANSMISSION
from tauloop.formats.sdf.include import MERGE
from tauloop.formats.urdf.parts import roll_pitch_yaw
from tauloop.formats.writing.expression_writer import number
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.poses import FramePose

WORLD, MODEL = "world", "__model__"
#: Elements of a model that have a name.
_NAMED_ELEMENTS = ("link", "joint", "frame", "tauloop:free")
#: Elements whose text is the name of a link or frame, and attributes whose value is one.
_NAMING_TEXTS = ("parent", "child", "drake:ball_constraint_body_A", "drake:ball_constraint_body_B")
_NAMING_ATTRIBUTES = {
    "pose": ("relative_to", "frame"),
    "xyz": ("expressed_in",),
    "frame": ("attached_to",),
    "mimic": ("joint",),
    "drake:mimic": ("joint",),
    "tauloop:free": ("parent", "child"),
}
#: Elements of a model that are not copied; the pose becomes that of the frame.
_MODEL_SETTINGS = ("pose", "static", "self_collide", "allow_auto_disable", "enable_wind")


class ModelReader(Protocol):
    """Reader of poses that collects problems (`sdf.model.SdfReader`)."""

    def pose(self, node: XmlNode, where: str) -> FramePose:
        """Return the pose in an element."""

    def flag(self, node: XmlNode | None, where: str) -> bool:
        """Return whether the text of an element is true."""

    def frame_in(self, model: XmlNode, name: str) -> FramePose:
        """Return the pose of a frame in the frame of its model."""

    def problem(self, node: XmlNode, where: str, what: str, remedy: str = "") -> None:
        """Add a problem."""


def has_joint(model: XmlNode) -> bool:
    """Return whether a model or a nested model has a joint."""
    return model.first("joint") is not None or any(has_joint(inner) for inner in model.all("model"))


def flattened(reader: ModelReader, model: XmlNode) -> XmlNode:
    """Return a model without nested models; it contains their elements instead."""
    if model.first("model") is None:
        return model
    children: list[XmlNode] = []
    for child in model.children:
        children += [child] if child.tag != "model" else _inlined(reader, child)
    return replace(model, children=children)


def _inlined(reader: ModelReader, nested: XmlNode) -> list[XmlNode]:
    """Return the elements of a nested model for the enclosing model."""
    name = nested.attributes.get("name", "").strip() or f"model on line {nested.line}"
    is_merged = nested.attributes.get(MERGE) == "true"
    if reader.flag(nested.first("static"), name) and not is_merged:
        what = "a static model in the model does not move"
        reader.problem(nested, name, what, "remove <static>, and add a fixed joint to the world")
    canonical = nested.attributes.get("canonical_link", "").strip() or _first_link(nested)
    nested = flattened(reader, nested)
    canonical = canonical or _first_link(nested)
    names = _Renamer(
        f"_merged__{name}__model__" if is_merged else name, "" if is_merged else f"{name}::"
    )
    own_elements = [child for child in nested.children if child.tag not in _MODEL_SETTINGS]
    children = [names.renamed(child) for child in own_elements]
    frames = [_model_frame(reader, nested, names.frame, names.reference(canonical))]
    if not is_merged:
        frames.append(_frame(nested, f"{name}::{MODEL}", names.frame, []))
    return [*frames, *children]


def _first_link(model: XmlNode) -> str:
    link = model.first("link")
    return "" if link is None else link.attributes.get("name", "").strip()


def _model_frame(reader: ModelReader, model: XmlNode, name: str, link: str) -> XmlNode:
    """Return the frame of a nested model, placed by its pose or its placement frame."""
    pose = model.first("pose")
    attributes = {} if pose is None else dict(pose.attributes)
    relative_to = attributes.get("relative_to", attributes.get("frame", "")).strip() or MODEL
    placement = model.attributes.get("placement_frame", "").strip()
    if pose is not None and not placement:
        return _frame(
            model, name, link, [replace(pose, attributes=attributes | {"relative_to": relative_to})]
        )
    frame_pose = FramePose()
    if placement:
        frame_pose = reader.pose(model, name) @ reader.frame_in(model, placement).inverse()
    text = " ".join(
        number(float(x) + 0.0) for x in (*frame_pose.position.tolist(), *roll_pitch_yaw(frame_pose))
    )
    return _frame(model, name, link, [replace(pose_element(model, relative_to), pieces=[text])])


def element(
    source: XmlNode, tag: str, attributes: dict[str, str], children: list[XmlNode]
) -> XmlNode:
    """Return a new element with the file and line of another one."""
    return XmlNode(
        tag=tag, attributes=attributes, line=source.line, file=source.file, children=children
    )


def _frame(source: XmlNode, name: str, attached_to: str, children: list[XmlNode]) -> XmlNode:
    return element(source, "frame", {"name": name, "attached_to": attached_to}, children)


def pose_element(source: XmlNode, relative_to: str) -> XmlNode:
    """Return the pose of a frame that coincides with another one."""
    return element(source, "pose", {"relative_to": relative_to}, [])


class _Renamer:
    """Renames the elements of a nested model for the enclosing model."""

    def __init__(self, frame: str, prefix: str) -> None:
        """Store the name of the model's frame, and the prefix of other names."""
        self.frame = frame
        self._prefix = prefix

    def reference(self, name: str) -> str:
        """Return the new name of a link, joint or frame, of the model's frame or of the world."""
        name = name.strip()
        if name == MODEL:
            return self.frame
        return name if name in ("", WORLD) else f"{self._prefix}{name}"

    def renamed(self, node: XmlNode) -> XmlNode:
        """Return a renamed copy of an element of the model."""
        node = self._with_references(node, is_motor=node.tag in (TRANSMISSION, ROS2_CONTROL))
        attributes = dict(node.attributes)
        if node.tag in _NAMED_ELEMENTS:
            attributes["name"] = self.reference(attributes.get("name", ""))
        if node.tag == "frame" and not attributes.get("attached_to"):
            attributes["attached_to"] = self.frame
        children = list(node.children)
        if node.tag == "link":
            pose = node.first("pose") or pose_element(node, "")
            if not (pose.attributes.get("relative_to") or pose.attributes.get("frame")):
                pose = replace(pose, attributes=pose.attributes | {"relative_to": self.frame})
            children = [pose, *(child for child in children if child.tag != "pose")]
        return replace(node, attributes=attributes, children=children)

    def _with_references(self, node: XmlNode, *, is_motor: bool) -> XmlNode:
        """Return an element with renamed references; contents of plugins are not changed."""
        if node.tag == "plugin":
            return node
        keys = _NAMING_ATTRIBUTES.get(node.tag, ())
        if is_motor and node.tag == "joint":
            keys = ("name",)
        attributes = {
            key: self.reference(text) if key in keys else text
            for key, text in node.attributes.items()
        }
        pieces = (
            [self.reference(node.content)]
            if node.tag in _NAMING_TEXTS and node.content
            else node.pieces
        )
        children = [self._with_references(child, is_motor=is_motor) for child in node.children]
        return _in_own_frame(
            replace(node, attributes=attributes, pieces=pieces, children=children), self.frame
        )


def _in_own_frame(axis: XmlNode, frame: str) -> XmlNode:
    """Return an axis that names its frame; the old form is ``use_parent_model_frame``."""
    flag = axis.first("use_parent_model_frame")
    if flag is None or flag.content.lower() not in ("true", "1"):
        return axis
    children = [child for child in axis.children if child is not flag]
    children = [
        replace(child, attributes=child.attributes | {"expressed_in": frame})
        if child.tag == "xyz"
        else child
        for child in children
    ]
    return replace(axis, children=children)
