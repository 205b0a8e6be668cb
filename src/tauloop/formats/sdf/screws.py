"""Conversion of SDF screw joints to a hinge and a slide that follows it.

A screw has one coordinate, its angle. It is replaced by a revolute joint with the same name to a
massless link, and by a prismatic joint from there, which follows the angle by `<mimic>`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

from tauloop.formats.sdf.nested import element, pose_element
from tauloop.formats.writing.expression_writer import number
from tauloop.formats.xml.nodes import XmlNode

SCREW = "screw"
#: Element for the lead of a screw, m per revolution (right-handed). Older files have the second
#: element instead: the inverse, in rad/m, with the opposite sign (left-handed).
SCREW_PITCH_TAG, OLD_PITCH_TAG = "screw_thread_pitch", "thread_pitch"
#: Elements of an axis for its direction.
_DIRECTION = ("xyz", "use_parent_model_frame")
#: Elements of a screw joint that are not copied to its hinge.
_OMITTED_TAGS = ("pose", "child", SCREW_PITCH_TAG, OLD_PITCH_TAG)


class ScrewReader(Protocol):
    """Reader of numbers that collects problems (`sdf.model.SdfReader`)."""

    def child_number(self, node: XmlNode, where: str, tag: str, default: float) -> float:
        """Return the number in a child element."""

    def problem(self, node: XmlNode, where: str, what: str, remedy: str = "") -> None:
        """Add a problem."""


def without_screws(reader: ScrewReader, model: XmlNode, massless_tag: str) -> XmlNode:
    """Return a flat model in which each screw joint is a hinge and a slide.

    Args:
        reader: collects the problems.
        model: SDF model with screw joints.
        massless_tag: tag of the element that marks a link without mass.
    """
    used_names = {child.attributes.get("name", "") for child in model.children}
    children: list[XmlNode] = []
    for child in model.children:
        is_screw = (
            child.tag == "joint" and child.attributes.get("type", "").strip().lower() == SCREW
        )
        children += _expanded(reader, child, used_names, massless_tag) if is_screw else [child]
    return replace(model, children=children)


def _expanded(
    reader: ScrewReader, screw: XmlNode, used_names: set[str], massless_tag: str
) -> list[XmlNode]:
    """Return the massless link, the hinge and the slide of a screw joint."""
    name = screw.attributes.get("name", "").strip() or f"joint on line {screw.line}"
    travel = _travel(reader, screw, name)
    child = screw.first("child")
    end = "" if child is None else child.content
    axis = screw.first("axis")
    pose = screw.first("pose") or pose_element(screw, end)
    if not (pose.attributes.get("relative_to") or pose.attributes.get("frame")):
        pose = replace(pose, attributes=pose.attributes | {"relative_to": end})
    link = _unused_name(f"{name}_nut", used_names)
    slide = _unused_name(f"{name}_slide", used_names)
    end_pose = pose_element(screw, end)
    nut = element(screw, "link", {"name": link}, [end_pose, element(screw, massless_tag, {}, [])])
    hinge_children = [node for node in screw.children if node.tag not in _OMITTED_TAGS]
    hinge = replace(
        screw,
        attributes=screw.attributes | {"type": "revolute"},
        children=[*hinge_children, pose, _text_element(screw, "child", link)],
    )
    direction = (
        [] if axis is None else list(axis.all("xyz")) + list(axis.all("use_parent_model_frame"))
    )
    multiplier = _text_element(screw, "multiplier", number(travel))
    mimic = element(screw, "mimic", {"joint": name}, [multiplier])
    slide_joint = element(
        screw,
        "joint",
        {"name": slide, "type": "prismatic"},
        [
            pose,
            _text_element(screw, "parent", link),
            *([] if child is None else [child]),
            element(screw, "axis", {}, [*direction, mimic]),
        ],
    )
    return [nut, hinge, slide_joint]


def _travel(reader: ScrewReader, screw: XmlNode, name: str) -> float:
    """Return the travel of a screw along its axis, m/rad."""
    if screw.first(SCREW_PITCH_TAG) is not None:
        return reader.child_number(screw, name, SCREW_PITCH_TAG, 1.0) / (2.0 * math.pi)
    old_pitch = reader.child_number(screw, name, OLD_PITCH_TAG, 0.0)
    if old_pitch == 0.0 or not math.isfinite(old_pitch):
        what = f"a screw has no <{SCREW_PITCH_TAG}>"
        remedy = f"add <{SCREW_PITCH_TAG}>, the travel in m per revolution"
        reader.problem(screw, name, what, remedy)
        return 1.0
    return -1.0 / old_pitch


def _text_element(source: XmlNode, tag: str, text: str) -> XmlNode:
    return replace(element(source, tag, {}, []), pieces=[text])


def _unused_name(name: str, used_names: set[str]) -> str:
    while name in used_names:
        name += "_"
    used_names.add(name)
    return name
