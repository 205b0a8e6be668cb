"""The ``<constraint>`` element for loops in URDF: joints and links that were cut.

It is proposed for URDF (ros/urdfdom_headers pull request 108, ros/urdfdom pull request 264).

.. code-block:: xml

    <constraint name="loop1" type="revolute">      <!-- or prismatic, universal, spherical, link; also with _joint -->
      <parent link="link2"/> <parent_origin xyz="1 0 0" rpy="0 0 0"/> <parent_axis xyz="0 0 1"/>
      <child link="link3"/> <child_origin xyz="0.5 0 0"/> <child_axis xyz="0 1 0"/>
    </constraint>

Its semantics are those of the parser in this pull request and of its authors' solver
(HIT-Robotics/robot_model). The frames ``parent_origin`` on the parent and ``child_origin`` on the
child coincide except for the motion about or along ``parent_axis``, which is an axis of both
frames. ``link`` permits no motion: a link was cut. For a universal joint, ``parent_axis`` is fixed
to the parent's frame and ``child_axis`` to the child's; both remain perpendicular. The default axis
is x.
"""

from __future__ import annotations

from collections.abc import Mapping

from tauloop.formats.urdf.parts import LinkFrame, Triple, UrdfLoop, UrdfReader
from tauloop.formats.xml.nodes import XmlNode

CONSTRAINT_TAG = "constraint"
#: Child elements that are read.
CONSTRAINT_CHILDREN = (
    "parent",
    "child",
    "parent_origin",
    "child_origin",
    "parent_axis",
    "child_axis",
)
_KIND_OF_WORD = {kind: kind for kind in ("revolute", "prismatic", "universal", "spherical")} | {
    "link": "fixed"
}
#: The element's type for each kind of loop.
CONSTRAINT_TYPES = {kind: word for word, kind in _KIND_OF_WORD.items()}
_KIND_OF_CONSTRAINT_TYPE = _KIND_OF_WORD | {
    f"{word}_joint": kind for word, kind in _KIND_OF_WORD.items()
}


def read_cut(reader: UrdfReader, node: XmlNode, links: Mapping[str, XmlNode]) -> UrdfLoop:
    """Return the loop of one ``<constraint>``; problems are added to the reader."""
    name = reader.name(node)
    kind = reader.kind(node, name, _KIND_OF_CONSTRAINT_TYPE, "type of constraint")
    frames = []
    for side in ("parent", "child"):
        link = reader.end(node, name, side, links)
        xyz, rpy = reader.origin(node, name, f"{side}_origin")
        frames.append(LinkFrame(link=link, xyz=xyz, rpy=rpy))
    axis = other_axis = (0.0, 0.0, 1.0)
    if kind in ("revolute", "prismatic", "universal"):
        axis = _axis(reader, node, name, "parent_axis")
    if kind == "universal":
        other_axis = _axis(reader, node, name, "child_axis")
    return UrdfLoop(
        name=name,
        kind=kind,
        predecessor=frames[0],
        successor=frames[1],
        axis=axis,
        other_axis=other_axis,
    )


def _axis(reader: UrdfReader, node: XmlNode, name: str, tag: str) -> Triple:
    if node.first(tag) is None:
        reader.note(name, f"there is no <{tag}>, so the axis is x")
    return reader.axis(node, name, tag)
