"""SDF joints in ``<gazebo>`` of a URDF that close loops, as in Gazebo's tutorial.

.. code-block:: xml

    <gazebo>
      <joint name="joint_D" type="revolute">
        <parent>link_CD</parent> <child>base_link</child>
        <pose>0 0 0 0 0 0</pose> <axis><xyz>0 0 1</xyz></axis>
      </joint>
    </gazebo>

Gazebo converts the URDF to an SDF model with all joints at zero and adds these joints. The pose of
such a joint is given on its child. Its position on the parent is the same while all joints are at
zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tauloop.common.records import dataclass
from tauloop.formats.sdf.model import SdfJoint, SdfReader
from tauloop.formats.sdf.nested import WORLD
from tauloop.formats.urdf.parts import (
    LinkFrame,
    UrdfJoint,
    UrdfLoop,
    UrdfReader,
    identifier,
    pose_of,
    roll_pitch_yaw,
)
from tauloop.formats.xml.foreign_elements import inventory, refuse
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.expression import triple
from tauloop.mechanism.poses import IDENTITY, FramePose

#: Elements of gears.
_GEAR_ELEMENTS = ("mimic", "drake:mimic")


@dataclass(frozen=True, slots=True, kw_only=True)
class GazeboLoops:
    """Loops that are closed by joints in ``<gazebo>``.

    Attributes:
        loops: the joints that close loops.
        omitted_forces, unknown_elements: as in `Mechanism`.
    """

    loops: tuple[UrdfLoop, ...] = ()
    omitted_forces: tuple[str, ...] = ()
    unknown_elements: tuple[str, ...] = ()


def read_gazebo_joints(
    reader: UrdfReader,
    robot: XmlNode,
    links: Mapping[str, XmlNode],
    joints: Sequence[UrdfJoint],
    root: str,
) -> GazeboLoops:
    """Return the loops that are closed by joints in ``<gazebo>``; add problems to the reader.

    Args:
        reader: reader of the URDF.
        robot: the root element.
        links: link elements by their names in the mechanism.
        joints: joints of the tree.
        root: the link that is the base.
    """
    nodes = [inner for node in robot.all("gazebo") for inner in node.walk() if _is_joint(inner)]
    if not nodes:
        return GazeboLoops()
    element_inventory = inventory("sdf", *nodes)
    refuse(reader, element_inventory.refused, "replace it by a <joint> of the URDF")
    names = {node.attributes["name"].strip(): name for name, node in links.items()}
    names.setdefault(WORLD, root)
    zero_poses = _poses_at_zero(joints, root)
    poses = {original: zero_poses[name] for original, name in names.items() if name in zero_poses}
    sdf = SdfReader(reader.file)
    sdf.problems = reader.problems
    loops: list[UrdfLoop] = []
    omitted_forces: list[str] = []
    for node in nodes:
        joint = sdf.joint_between(node, poses)
        if joint is None:
            continue
        ends = (names[joint.parent], names[joint.child])
        if ends[0] == ends[1]:
            if joint.kind != "fixed":
                what = f"it moves {ends[0]!r}, the root link, which is the fixed base in Tauloop"
                reader.problem(node, joint.name, what, "replace it by a <joint> of the URDF")
            continue
        if any(inner.tag in _GEAR_ELEMENTS for inner in node.walk()):
            what = "it closes a loop, so it has no coordinate, but a gear needs one"
            reader.problem(
                node, joint.name, what, "replace the gear by <mimic> in a <joint> of the URDF"
            )
        if joint.is_loaded:
            omitted_forces.append(
                f"the losses, springs and rotor of joint {joint.name}, which closes a loop"
            )
        if joint.limit("lower"):
            reader.note(joint.name, "its limits are omitted, because it closes a loop")
        _note_merged(reader, joint.name, ends, joints)
        loops.append(_loop(joint, ends))
    return GazeboLoops(
        loops=tuple(loops),
        omitted_forces=tuple(omitted_forces),
        unknown_elements=element_inventory.unknown_texts(),
    )


def _is_joint(node: XmlNode) -> bool:
    return (
        node.tag == "joint" and node.first("parent") is not None and node.first("child") is not None
    )


def _poses_at_zero(joints: Sequence[UrdfJoint], root: str) -> dict[str, FramePose]:
    """Return the poses of the links relative to the root, with all joints at zero."""
    poses = {root: IDENTITY}
    remaining = list(joints)
    while attached := [joint for joint in remaining if joint.parent in poses]:
        for joint in attached:
            poses[joint.child] = poses[joint.parent] @ pose_of(joint.xyz, joint.rpy)
        remaining = [joint for joint in remaining if joint not in attached]
    return poses


def _note_merged(
    reader: UrdfReader, name: str, ends: tuple[str, str], joints: Sequence[UrdfJoint]
) -> None:
    """Add a note if an end is on a link that Gazebo merges into another, which moves the joint."""
    for joint in joints:
        if joint.kind == "fixed" and joint.child in ends and any((*joint.xyz, *joint.rpy)):
            what = (
                f"Gazebo merges its link {joint.child!r} with {joint.parent!r} by default and then "
                f"measures the pose from the latter; Tauloop measures it from {joint.child!r}"
            )
            reader.note(name, what)


def _loop(joint: SdfJoint, ends: tuple[str, str]) -> UrdfLoop:
    frames = [
        LinkFrame(link=link, xyz=triple(frame.position.tolist()), rpy=roll_pitch_yaw(frame))
        for link, frame in zip(ends, joint.frames, strict=True)
    ]
    axes = [triple((axis + 0.0).tolist()) for axis in joint.axes]
    axis = axes[0] if axes else (0.0, 0.0, 1.0)
    return UrdfLoop(
        name=identifier(joint.name),
        kind=joint.kind,
        predecessor=frames[0],
        successor=frames[1],
        axis=axis,
        other_axis=axes[-1] if axes else axis,
    )
