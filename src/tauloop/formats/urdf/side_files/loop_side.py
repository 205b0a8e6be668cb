"""Loop closures in a file next to a URDF: Gepetto's ``robot.yaml`` for Pinocchio.

.. code-block:: yaml

    closed_loop: [[frame_A, frame_B], ...]    # pairs of frames that coincide
    type: [3d, 6d, ...]                       # only their origins coincide, or also their axes
    name_mot: [joint_1, ...]                  # the joints with a motor; all others are passive
    joint_name: [joint_4, ...]                # joints of the URDF that are of another kind:
    joint_type: [SPHERICAL, ...]              # SPHERICAL, UJOINT_XY (about x, then y of its frame; CARDAN), or FIXED

A frame is named by a link or a joint; in Pinocchio, the frame of a joint is at its child link. The
same keys close loops in Tauloop's own side file, where ``type`` may also be a kind of joint about
or along z of both frames.

A joint of another kind has the frame of the URDF's joint, whose axis, limits, damping and friction
have no effect; FIXED holds it at zero. Gepetto's loader replaces joints in the same manner before
it closes the loops (`completeRobotLoader` of Gepetto/example-parallel-robots at 0d63a70, which
supports UJOINT_XY, YZ and ZX; files there also contain UJOINT_ZY).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from tauloop.common.counts import counted
from tauloop.formats.urdf.parts import LinkFrame, UrdfJoint, UrdfLoop, UrdfTree, identifier
from tauloop.formats.writing.side_grammar import GEPETTO_FILE
from tauloop.mechanism.description import yaml_nodes
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.model import AxisName
from tauloop.mechanism.suggestions import listing, suggestion

#: Names of universal joints, with the axes on the parent and on the child; CARDAN is an older name.
_UNIVERSAL_JOINT_TYPE = re.compile(r"UJOINT_([XYZ])([XYZ])|CARDAN")
#: Kinds of joints for the types of closures: only the origins coincide, or also the axes.
_COINCIDENCE_KINDS = {"3d": "spherical", "6d": "fixed"}
_CLOSURE_KINDS = ("revolute", "prismatic", "cylindrical", "spherical", "planar", "fixed")


def is_loop_side(node: yaml_nodes.Node) -> bool:
    """Return whether a side file has Gepetto's form: loops or motors, but no ``format``."""
    return (
        isinstance(node, yaml_nodes.Mapping)
        and node.get("format") is None
        and any(node.get(key.name) for key in GEPETTO_FILE.fields)
    )


def read_closures(root: Cursor, tree: UrdfTree) -> tuple[UrdfLoop, ...]:
    """Return the loops of a side file.

    Args:
        root: top level of the file, which may have the keys `CLOSURES`.
        tree: the URDF with the links and joints of the frames.
    """
    loops_cursor = root.get("closed_loop")
    types = root.get("type")
    if loops_cursor is None:
        if types is not None:
            types.problem("has no `closed_loop`", "add the pairs of frames")
        return ()
    pairs = loops_cursor.items()
    if types is None:
        remedy = "add `type: [6d, ...]`: 3d if only origins coincide, 6d if axes coincide too"
        root.problem(f"is missing for {counted(len(pairs), 'loop')}", remedy, "type")
        return ()
    if len(pairs) != len(types.items()):
        items = counted(len(types.items()), "item")
        what = f"has {items} for {counted(len(pairs), 'pair of frames')}"
        types.problem(what, "write one type for each pair")
    loops: list[UrdfLoop] = []
    for pair, kind_cursor in zip(pairs, types.items(), strict=False):
        names = [item.text for item in pair.items() if item.text]
        ends = [_frame(name, tree, pair) for name in names]
        kind = _kind(kind_cursor)
        if len(ends) != 2 or ends[0] is None or ends[1] is None or not kind:
            continue
        if ends[0].link == ends[1].link:
            pair.problem(f"both frames are on {ends[0].link!r}", "name frames of two links")
            continue
        name = f"{identifier(names[0])}_to_{identifier(names[1])}"
        if any(loop.name == name for loop in loops):
            pair.problem(
                f"{names[0]!r} and {names[1]!r} are already connected", "remove one of the pairs"
            )
            continue
        loops.append(UrdfLoop(name=name, kind=kind, predecessor=ends[0], successor=ends[1]))
    return tuple(loops)


def with_joint_types(root: Cursor, tree: UrdfTree) -> UrdfTree:
    """Return the tree with joints of other kinds from ``joint_name`` and ``joint_type``."""
    names = _items(root, "joint_name")
    types = _items(root, "joint_type")
    if len(names) != len(types):
        joint_names = counted(len(names), "joint name")
        what = f"the numbers differ: {joint_names}, {counted(len(types), 'joint type')}"
        key = "joint_type" if root.has("joint_type") else "joint_name"
        root.problem(what, "write one type for each joint", key)
        return tree
    joints = {joint.name: joint for joint in tree.joints}
    movable = [joint.name for joint in tree.joints if joint.kind != "fixed"]
    notes: dict[str, list[str]] = {}
    for name, type_item in zip(_joint_names(names, movable), types, strict=True):
        word = type_item.text or ""
        if name and (kind := _joint_kind(type_item, word)) is not None:
            joints[name] = _with_kind(joints[name], *kind)
            notes.setdefault(word, []).append(name)
    joint_notes = [
        f"{', '.join(changed)}: {word} by the side file" for word, changed in notes.items()
    ]
    return replace(tree, joints=tuple(joints.values()), notes=(*tree.notes, *joint_notes))


def _items(root: Cursor, key: str) -> Sequence[Cursor]:
    """Return the items of a list; empty if it is absent."""
    list_cursor = root.get(key)
    return list_cursor.items() if list_cursor else []


def _joint_names(items: Sequence[Cursor], movable: Sequence[str]) -> list[str]:
    """Return the joint names in the mechanism; "" after a problem for unknown or repeated ones."""
    known_names: list[str] = []
    for item in items:
        name = identifier(item.text or "")
        if item.text and name not in movable:
            remedy = suggestion(name, movable) or f"there are {listing(movable) or 'none'}"
            item.problem(f"there is no movable joint {item.text!r}", remedy)
            name = ""
        elif name and name in known_names:
            item.problem(f"{item.text!r} is listed twice", "remove one")
            name = ""
        known_names.append(name)
    return known_names


def _joint_kind(cursor: Cursor, word: str) -> tuple[str, tuple[AxisName, ...]] | None:
    """Return the kind of a joint and its axes, or None after adding a problem."""
    match = _UNIVERSAL_JOINT_TYPE.fullmatch(word)
    if match is not None:
        first, second = (match[1] or "X").lower(), (match[2] or "Y").lower()
        if first != second:
            return "universal", (cast(AxisName, first), cast(AxisName, second))
    if word in ("SPHERICAL", "FIXED"):
        return word.lower(), ()
    if word:
        what = f"{word!r} is not a type of joint"
        cursor.problem(what, "write SPHERICAL, FIXED, or UJOINT_ and two axes, such as UJOINT_XY")
    return None


def _with_kind(joint: UrdfJoint, kind: str, axes: tuple[AxisName, ...]) -> UrdfJoint:
    """Return a joint of another kind in the same frame, without losses and springs."""
    attributes = ("name", "parent", "child", "xyz", "rpy", "axis", "child_xyz", "child_rpy")
    values = {name: getattr(joint, name) for name in attributes}
    return UrdfJoint(kind=kind, axes=axes, **values)


def read_motors(root: Cursor, tree: UrdfTree) -> tuple[str, ...] | None:
    """Return the joints in ``name_mot``, in file order; None if the file has no such key."""
    motors_cursor = root.get("name_mot")
    if motors_cursor is None:
        return None
    movable = [joint.name for joint in tree.joints if joint.kind in ("revolute", "prismatic")]
    return tuple(name for name in _joint_names(motors_cursor.items(), movable) if name)


def _frame(name: str, tree: UrdfTree, cursor: Cursor) -> LinkFrame | None:
    """Return the frame of a link or joint (on its child link), or None after adding a problem."""
    identifier_name = identifier(name)
    links = {link.name: link.name for link in tree.links}
    joints = {joint.name: joint for joint in tree.joints}
    link = links.get(tree.link_name(name))
    if link is not None:
        return LinkFrame(link=link)
    joint = joints.get(identifier_name)
    if joint is None:
        remedy = suggestion(identifier_name, (*links, *joints)) or "name a link or a joint"
        cursor.problem(f"there is no frame {name!r}", remedy)
        return None
    return LinkFrame(link=joint.child, xyz=joint.child_xyz, rpy=joint.child_rpy)


def _kind(cursor: Cursor) -> str:
    """Return the kind of joint that closes a loop; "" after a problem."""
    text = cursor.text or ""
    kind = _COINCIDENCE_KINDS.get(text.lower(), text)
    if text and kind not in _CLOSURE_KINDS:
        cursor.problem(
            f"{text!r} is not a type of closure",
            f"write {listing((*_COINCIDENCE_KINDS, *_CLOSURE_KINDS), 20)}",
        )
        return ""
    return kind
