"""The grammar of side files: properties of the joints of one URDF, with the keys of machine files.

A side file is a companion of a URDF and contains properties that URDF cannot represent.
"""

from __future__ import annotations

from dataclasses import replace

from tauloop.formats.urdf.parts import UrdfTree
from tauloop.mechanism.description import units
from tauloop.mechanism.description.cursor import (
    Choice,
    Cursor,
    Kind,
    ListOf,
    MapOf,
    Shape,
    Text,
    field,
    need,
    value,
)
from tauloop.mechanism.description.grammar import (
    ACTUATOR,
    CONSTANT_TURN,
    COUPLING,
    FREEDOM,
    LOSS,
    OMISSIONS,
    PROVENANCE,
    SPRING,
    TOOL_SHAPE,
)
from tauloop.mechanism.description.structure import check_structure
from tauloop.mechanism.description.yaml_nodes import Mapping, Node, Sequence
from tauloop.mechanism.model import JOINT_KINDS

SIDE_FORMAT = "tauloop-urdf-side/1"
_TEXT = Text(is_needed=True)
_TEXT_LIST = ListOf(item=_TEXT, may_be_empty=True)
#: Keys that close loops, in Tauloop's and in Gepetto's side files.
CLOSURES = (
    field(
        "closed_loop",
        ListOf(item=ListOf(item=_TEXT, length=2), may_be_empty=True),
        "pairs of frames that coincide",
    ),
    field(
        "type",
        _TEXT_LIST,
        "3d if only origins coincide, 6d if axes coincide too, or a kind of joint",
    ),
)
#: Grammar of a file of Gepetto, which closes the loops of a URDF.
GEPETTO_FILE = Shape(
    name="robot.yaml",
    doc="Gepetto's robot.yaml next to a URDF.",
    fields=(
        *CLOSURES,
        field("name_mot", _TEXT_LIST, "joints with a motor"),
        field("joint_name", _TEXT_LIST, "joints of another kind than in the URDF"),
        field("joint_type", _TEXT_LIST, "kinds of the joints in `joint_name`"),
    ),
)
#: Provenance in a mapping with values; each key is optional.
OPTIONAL_PROVENANCE = replace(
    PROVENANCE, fields=tuple(replace(key, required=False) for key in PROVENANCE.fields)
)


def _mapping_of(names: list[str], kind: Kind, item: str) -> Shape:
    """Return the grammar of a mapping with these names as keys and values of one kind.

    Args:
        names: permitted keys, all optional.
        kind: kind of the values.
        item: name of an item, for messages.
    """
    return Shape(
        name=item, doc=f"{item} by name", fields=tuple(field(name, kind, item) for name in names)
    )


def side_shape(tree: UrdfTree) -> Shape:
    """Return the grammar of a side file for one URDF, with its joint names."""
    stiffness, rest = SPRING.fields
    not_negative = replace(stiffness, kind=value(units.STIFFNESSES, "spring", "not negative"))
    spring = replace(SPRING, fields=(not_negative, replace(rest, required=False)))
    freedom_fields = tuple(
        replace(key, kind=spring) if key.name == "spring" else key for key in FREEDOM.fields
    )
    joint_elements = Shape(
        name="joint of a side file",
        doc="Properties of a joint that URDF lacks.",
        fields=freedom_fields,
    )
    moving_joints = [joint for joint in tree.joints if joint.kind in ("revolute", "prismatic")]
    offsets = tuple(
        field(
            joint.name,
            value(units.ANGLE if joint.kind == "revolute" else units.LENGTH, "geometry"),
            "",
        )
        for joint in moving_joints
    )
    floating = Shape(
        name="floating joint",
        doc="Reference frame of a floating joint's coordinates, with friction, springs and limits.",
        fields=(
            *TOOL_SHAPE.fields,
            field(
                "freedoms",
                _mapping_of(list(JOINT_KINDS["free"].velocities), joint_elements, "freedom"),
                "friction, springs and limits of each degree of freedom",
            ),
        ),
    )
    ball = Shape(
        name="ball joint",
        doc="Reference rotation of a ball joint, with friction, springs and limits.",
        fields=(
            field(
                "start",
                ListOf(item=CONSTANT_TURN, may_be_empty=True),
                "rotation of the ball joint at the reference pose of the file",
            ),
            field(
                "reversed",
                Choice(options=("yes", "no")),
                "whether the joint's child is the link nearer to the base",
            ),
            field(
                "freedoms",
                _mapping_of(list(JOINT_KINDS["spherical"].velocities), joint_elements, "freedom"),
                "friction, springs and limits of each degree of freedom",
            ),
        ),
    )
    platform = Shape(
        name="platform",
        doc="The moving platform (end effector).",
        fields=(
            need("body", _TEXT, "link of the platform"),
            field("tool", TOOL_SHAPE, "frame of the tool on this link"),
            field(
                "payload",
                value(units.MASS, "", "positive"),
                "rated payload",
            ),
            field("independent", ListOf(item=_TEXT, may_be_empty=True), "independent coordinates"),
        ),
    )
    gravity = ListOf(item=value(units.ACCELERATION, "gravity"), length=3)
    floating_names = [joint.name for joint in tree.joints if joint.kind == "free"]
    ball_names = [joint.name for joint in tree.joints if joint.kind == "spherical"]
    return Shape(
        name="side file",
        doc="Properties that URDF cannot represent.",
        fields=(
            need("format", Choice(options=(SIDE_FORMAT,)), "format and version"),
            *OMISSIONS,
            field("gravity", gravity, "acceleration of gravity in the frame of the root link"),
            field("platform", platform, "the moving platform (end effector)"),
            field(
                "offsets",
                Shape(name="offsets", doc="By joint.", fields=offsets),
                "URDF's coordinate minus the measured coordinate",
            ),
            field(
                "joints",
                _mapping_of([joint.name for joint in moving_joints], joint_elements, "joint"),
                "friction, springs and limits of joints",
            ),
            field(
                "floating",
                _mapping_of(floating_names, floating, "floating joint"),
                "floating joints",
            ),
            field("balls", _mapping_of(ball_names, ball, "ball joint"), "ball joints"),
            field(
                "couplings",
                MapOf(item=COUPLING, key="coupling"),
                "linear couplings of joint coordinates",
            ),
            field(
                "losses",
                MapOf(item=LOSS, key="loss"),
                "friction that depends on combinations of joint velocities",
            ),
            field("actuators", MapOf(item=ACTUATOR, key="actuator"), "motors"),
            *CLOSURES,
        ),
    )


def without_provenance(
    root: Cursor, origin: tuple[str, str]
) -> tuple[Node, dict[int, tuple[str, str]], tuple[str, str]]:
    """Return the nodes without ``provenance`` (permitted in any mapping), and the removed values.

    Args:
        root: top level of the file.
        origin: status and source of values without provenance.

    Returns:
        The root node; a mapping from the `id` of each node to its (status, source); and the
        (status, source) of the root node.
    """
    origins: dict[int, tuple[str, str]] = {}

    def stripped(node: Node, origin: tuple[str, str], where: str) -> Node:
        if isinstance(node, Mapping):
            provenance = node.get("provenance")
            if provenance is not None:
                provenance_cursor = replace(
                    root,
                    node=provenance,
                    kind=OPTIONAL_PROVENANCE,
                    where=f"{where}.provenance".lstrip("."),
                )
                check_structure(provenance_cursor)
                origin = (
                    provenance_cursor.word("status") or origin[0],
                    provenance_cursor.word("source") or origin[1],
                )
            entries = (entry for entry in node.entries if entry.key != "provenance")
            node = Mapping(
                tuple(
                    replace(
                        entry,
                        value=stripped(entry.value, origin, f"{where}.{entry.key}".lstrip(".")),
                    )
                    for entry in entries
                ),
                node.line,
            )
        elif isinstance(node, Sequence):
            items = (stripped(item, origin, f"{where}[{i}]") for i, item in enumerate(node.items))
            node = Sequence(tuple(items), node.line)
        else:
            node = replace(node)
        origins[id(node)] = origin
        return node

    node = stripped(root.node, origin, "")
    return node, origins, origins[id(node)]
