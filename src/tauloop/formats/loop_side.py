"""Loop closures beside a URDF: Gepetto's ``robot.yaml``, as read by its tools for Pinocchio.

.. code-block:: yaml

    closed_loop: [[frame_A, frame_B], ...]    # pairs of frames that coincide
    type: [3d, 6d, ...]                       # their origins only, or their axes too
    name_mot: [joint_1, ...]                  # the joints with a motor; all others are passive
    joint_name: [joint_4, ...]                # joints of the URDF that are of another kind:
    joint_type: [SPHERICAL, ...]              # SPHERICAL, UJOINT_XY (about x, then y of its frame; CARDAN), or FIXED

A frame is a link, or a joint: Pinocchio puts the frame of a joint where its child link is. The same keys close the
loops in Tauloop's own side file, where ``type`` may also be a kind of joint, about or along z of both frames.

A joint of another kind stands in the frame of the URDF's joint, whose axis, limits and losses play no part; FIXED holds
it at zero. The loader that reads these files replaces joints so before it closes the loops (`completeRobotLoader` of
Gepetto/example-parallel-robots at 0d63a70, which knows UJOINT_XY, YZ and ZX; files there have UJOINT_ZY too).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from tauloop.formats.side_values import SideValues
from tauloop.formats.urdf_parts import LinkFrame, UrdfJoint, UrdfLoop, UrdfTree, identifier
from tauloop.mechanism import yaml_nodes
from tauloop.mechanism.model import AxisName
from tauloop.mechanism.suggestions import listing, suggestion

CLOSURE_KEYS = ("closed_loop", "type")
JOINT_KEYS = ("joint_name", "joint_type")
KEYS = (*CLOSURE_KEYS, "name_mot", *JOINT_KEYS)
#: A universal joint by the letters of its axes, the first on the parent's side; CARDAN is its older name.
_UNIVERSAL = re.compile(r"UJOINT_([XYZ])([XYZ])|CARDAN")
#: What two frames that coincide make: a ball joint, or a weld.
_TYPES = {"3d": "spherical", "6d": "fixed"}
_KINDS = ("revolute", "prismatic", "cylindrical", "spherical", "planar", "fixed")


def is_loop_side(node: yaml_nodes.Node) -> bool:
    """Whether a side file is Gepetto's: it closes loops or names motors, and states no format of ours."""
    return isinstance(node, yaml_nodes.Mapping) and node.get("format") is None and any(map(node.get, KEYS))


def read_closures(found: Mapping[str, yaml_nodes.Node], tree: UrdfTree, values: SideValues) -> tuple[UrdfLoop, ...]:
    """The loops of a side file.

    Args:
        found: the nodes behind `CLOSURE_KEYS`.
        tree: the URDF, whose links and joints the frames are.
        values: reads texts and collects problems.
    """
    if "closed_loop" not in found:
        if "type" in found:
            values.problem(found["type"], "type", "stands without `closed_loop`", "add the pairs of frames")
        return ()
    node = found["closed_loop"]
    pairs = values.items(node, "closed_loop")
    if "type" not in found:
        remedy = "add `type: [6d, ...]`: 3d where origins coincide, 6d where axes do too"
        values.problem(node, "type", f"missing, and there are {len(pairs)} loops", remedy)
        return ()
    types = values.items(found["type"], "type")
    if len(pairs) != len(types):
        what = f"has {len(types)} items for {len(pairs)} pairs of frames"
        values.problem(found["type"], "type", what, "write one type for each pair")
    loops: list[UrdfLoop] = []
    for k, (pair, kind_node) in enumerate(zip(pairs, types, strict=False)):
        where = f"closed_loop[{k}]"
        names = [values.text(item, where) for item in values.items(pair, where, 2)]
        ends = [_frame(name, tree, values, pair, where) for name in names if name]
        kind = _kind(kind_node, f"type[{k}]", values)
        if len(ends) != 2 or ends[0] is None or ends[1] is None or not kind:
            continue
        if ends[0].link == ends[1].link:
            values.problem(pair, where, f"both frames are on {ends[0].link!r}", "name frames of two links")
            continue
        name = f"{identifier(names[0])}_to_{identifier(names[1])}"
        if any(loop.name == name for loop in loops):
            values.problem(pair, where, f"{names[0]!r} and {names[1]!r} are joined already", "remove one of the pairs")
            continue
        loops.append(UrdfLoop(name=name, kind=kind, predecessor=ends[0], successor=ends[1]))
    return tuple(loops)


def with_joint_types(found: Mapping[str, yaml_nodes.Node], tree: UrdfTree, values: SideValues) -> UrdfTree:
    """The tree with the joints of other kinds that ``joint_name`` and ``joint_type`` put in place of its own."""
    names, types = (values.items(found[key], key) if key in found else () for key in JOINT_KEYS)
    if len(names) != len(types):
        key = next(key for key in reversed(JOINT_KEYS) if key in found)
        what = f"there are {len(names)} joint names and {len(types)} joint types"
        values.problem(found[key], key, what, "write one type for each joint")
        return tree
    joints = {joint.name: joint for joint in tree.joints}
    movable = [joint.name for joint in tree.joints if joint.kind != "fixed"]
    notes: dict[str, list[str]] = {}
    seen: set[str] = set()
    for k, (item, type_item) in enumerate(zip(names, types, strict=True)):
        text, word = values.text(item, f"joint_name[{k}]"), values.text(type_item, f"joint_type[{k}]")
        name = identifier(text)
        if text and name not in movable:
            remedy = suggestion(name, movable) or f"there are {listing(movable) or 'none'}"
            values.problem(item, f"joint_name[{k}]", f"there is no movable joint {text!r}", remedy)
        elif name in seen:
            values.problem(item, f"joint_name[{k}]", f"{text!r} is listed twice", "remove one")
        elif text and (kind := _joint_kind(type_item, word, f"joint_type[{k}]", values)) is not None:
            joints[name] = _of_kind(joints[name], *kind)
            notes.setdefault(word, []).append(name)
        seen.add(name)
    found_notes = [f"{', '.join(made)}: {word} by the side file" for word, made in notes.items()]
    return replace(tree, joints=tuple(joints.values()), notes=(*tree.notes, *found_notes))


def _joint_kind(
    node: yaml_nodes.Node, word: str, where: str, values: SideValues
) -> tuple[str, tuple[AxisName, ...]] | None:
    """A kind of joint and its axes."""
    match = _UNIVERSAL.fullmatch(word)
    if match is not None:
        first, second = (match[1] or "X").lower(), (match[2] or "Y").lower()
        if first != second:
            return "universal", (cast(AxisName, first), cast(AxisName, second))
    if word in ("SPHERICAL", "FIXED"):
        return word.lower(), ()
    if word:
        what = f"{word!r} is not a type of joint"
        values.problem(node, where, what, "write SPHERICAL, FIXED, or UJOINT_ and two axes, such as UJOINT_XY")
    return None


def _of_kind(joint: UrdfJoint, kind: str, axes: tuple[AxisName, ...]) -> UrdfJoint:
    """A joint of another kind in the same frame; nothing of what acted on its axis is left."""
    return replace(
        joint,
        kind=kind,
        axes=axes,
        lower=-np.inf,
        upper=np.inf,
        effort=np.inf,
        velocity=np.inf,
        damping=0.0,
        friction=0.0,
    )


def read_motors(found: Mapping[str, yaml_nodes.Node], tree: UrdfTree, values: SideValues) -> tuple[str, ...] | None:
    """Names of the joints in ``name_mot``, in its order; None where the file does not say."""
    if "name_mot" not in found:
        return None
    movable = [joint.name for joint in tree.joints if joint.kind in ("revolute", "prismatic")]
    motors: list[str] = []
    for k, item in enumerate(values.items(found["name_mot"], "name_mot")):
        where = f"name_mot[{k}]"
        text = values.text(item, where)
        joint = identifier(text)
        if text and joint not in movable:
            remedy = suggestion(joint, movable) or f"there are {listing(movable) or 'none'}"
            values.problem(item, where, f"there is no movable joint {text!r}", remedy)
        elif joint in motors:
            values.problem(item, where, f"{text!r} is listed twice", "remove one")
        elif joint:
            motors.append(joint)
    return tuple(motors)


def _frame(name: str, tree: UrdfTree, values: SideValues, node: yaml_nodes.Node, where: str) -> LinkFrame | None:
    """The frame of that name: a link's, or that of a joint, which moves with its child link."""
    wanted = identifier(name)
    links = {link.name: link.name for link in tree.links}
    children = {joint.name: joint.child for joint in tree.joints}
    link = links.get(tree.link_name(name)) or children.get(wanted)
    if link is None:
        remedy = suggestion(wanted, (*links, *children)) or "name a link or a joint"
        values.problem(node, where, f"there is no frame {name!r}", remedy)
        return None
    return LinkFrame(link=link)


def _kind(node: yaml_nodes.Node, where: str, values: SideValues) -> str:
    text = values.text(node, where)
    kind = _TYPES.get(text.lower(), text)
    if text and kind not in _KINDS:
        values.problem(node, where, f"{text!r} is not a type of closure", f"write {listing((*_TYPES, *_KINDS), 20)}")
        return ""
    return kind
