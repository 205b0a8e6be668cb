"""Rejection of files that are not URDF, and of forms of elements that must not be ignored.

`xml.foreign_elements` lists the elements that are rejected by name.
"""

from __future__ import annotations

from tauloop.formats.urdf.constraints import LOOP_ELEMENTS
from tauloop.formats.urdf.parts import UrdfReader
from tauloop.formats.xml.nodes import XmlNode

#: Root elements of other formats, with the advice in messages.
_OTHER_FORMATS = {
    "sdf": "an SDF (Gazebo) file; name it NAME.sdf",
    "mujoco": "an MJCF file; name it NAME.xml",
    "COLLADA": "a COLLADA file, which only contains shapes; give the URDF that refers to it",
}
#: Elements that refer to links and joints without defining them. `urdf.gazebo.joints` reads the
#: joints in ``<gazebo>``.
_REFERRING_ELEMENTS = ("gazebo", "transmission", "ros2_control")
#: Children that an element may have only once.
_UNIQUE_CHILDREN = {
    "link": ("inertial",),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
    "inertial": ("origin", "mass", "inertia"),
}


def refuse_other_formats(reader: UrdfReader, root: XmlNode) -> bool:
    """Return whether a file is of another format; report it as a problem if so."""
    if root.tag == "robot":
        return False
    what = f"the root element is <{root.tag}>, not <robot>"
    reader.problem(
        root,
        root.tag,
        what,
        f"this is {_OTHER_FORMATS[root.tag]}" if root.tag in _OTHER_FORMATS else "give a URDF file",
    )
    return True


def refuse_parts(reader: UrdfReader, robot: XmlNode) -> None:
    """Reject links and joints inside other elements, and references to other files."""
    for node in robot.children:
        if node.tag in ("link", "joint", *LOOP_ELEMENTS, *_REFERRING_ELEMENTS):
            continue
        if node.tag.endswith("include"):
            remedy = "combine the files into one, or use a xacro"
            reader.problem(node, node.tag, f"<{node.tag}> is not supported", remedy)
        elif any(_is_part(inner) for inner in node.walk() if inner is not node):
            what = f"<{node.tag}> contains links or joints, which are only read at the top level"
            reader.problem(node, node.tag, what, "move them out of it")


def refuse_repeats(reader: UrdfReader, robot: XmlNode) -> None:
    """Reject repeated children of links and joints that may occur once."""
    for node in robot.children:
        for element in (node, *node.all("inertial")) if node.tag in ("link", "joint") else ():
            for tag in _UNIQUE_CHILDREN[element.tag]:
                if (count := sum(1 for _ in element.all(tag))) > 1:
                    name = node.attributes.get("name", node.tag)
                    reader.problem(
                        element, name, f"has {count} elements <{tag}>", "keep only the correct one"
                    )


def _is_part(node: XmlNode) -> bool:
    """Return whether an element defines a link or joint, rather than referring to one."""
    if node.tag == "joint":
        return node.first("parent") is not None and node.first("child") is not None
    return node.tag == "link" and "name" in node.attributes
