"""Keyframes of an MJCF file: named poses, one of which may be the start of the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tauloop.common.counts import counted
from tauloop.formats.mjcf.settings import MjcfReader
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.model import JOINT_KINDS, Joint


def keyframe_names(root: XmlNode) -> tuple[str, ...]:
    """Return the names of the keyframes in file order; unnamed ones cannot be chosen."""
    names = (key.attributes.get("name", "") for key in _keys(root))
    return tuple(name for name in names if name)


def started_at(
    reader: MjcfReader, root: XmlNode, joints: Sequence[Joint], kinds: Mapping[str, str], name: str
) -> tuple[Joint, ...]:
    """Return the joints with the start values of a keyframe.

    ``qpos`` is in rad and m, regardless of the compiler's unit of angles.

    Args:
        reader: collects problems.
        root: the element ``<mujoco>``.
        joints: all joints of the machine, in any order.
        kinds: kinds of the file's joints by name, in the order of ``qpos``.
        name: name of the keyframe; an empty name changes nothing.
    """
    if not name:
        return tuple(joints)
    known = {
        key.attributes["name"]: key for key in reversed(_keys(root)) if key.attributes.get("name")
    }
    remedy = (
        f"use one of {', '.join(keyframe_names(root))}"
        if known
        else "omit the keyframe option; the file has no keyframes"
    )
    key = reader.look_up(root, "keyframe", name, known, f"there is no keyframe {name!r}", remedy)
    if key is None:
        return tuple(joints)
    reader.use(key, "qpos")
    if "qpos" not in key.attributes:
        return tuple(joints)  # MuJoCo's default: the pose of the file itself
    _refuse_aligned_bodies(reader, root)
    values = reader.numbers(key, name, "qpos")
    counts = [len(JOINT_KINDS[kind].coordinates) for kind in kinds.values()]
    if len(values) != sum(counts):
        numbers = counted(len(values), "number")
        coordinates = counted(sum(counts), "coordinate")
        what = f"qpos has {numbers}, but the joints have {coordinates}"
        reader.problem(key, name, what, "let MuJoCo save the compiled model: mj_saveLastXML")
        return tuple(joints)
    starts: dict[str, tuple[float, ...]] = {}
    for (joint, kind), count in zip(kinds.items(), counts, strict=True):
        start = list(values[:count])
        values = values[count:]
        if kind in ("spherical", "free"):
            norm = math.hypot(*start[-4:])
            if not norm > 0:
                reader.problem(
                    key,
                    name,
                    f"the quaternion of {joint} is zero",
                    "give a unit quaternion w x y z",
                )
                norm = 1.0
            start[-4:] = [x / norm for x in start[-4:]]
        starts[joint] = tuple(start)
    return tuple(replace(j, reference=starts[j.name]) if j.name in starts else j for j in joints)


def _keys(root: XmlNode) -> list[XmlNode]:
    return [key for section in root.all("keyframe") for key in section.all("key")]


def _refuse_aligned_bodies(reader: MjcfReader, root: XmlNode) -> None:
    """Add a problem for each free body that MuJoCo aligns with its inertia.

    Its coordinates in a keyframe are then the pose of its principal axes, not of the body's frame.
    """
    compilers = root.all("compiler")
    is_default = any(node.attributes.get("alignfree") == "true" for node in compilers)
    for body in root.walk():
        joint = body.first("freejoint") or body.first("joint")
        if body.tag != "body" or joint is None or body.first("body") is not None:
            continue
        align = joint.attributes.get("align", "auto")
        is_free = joint.tag == "freejoint" or joint.attributes.get("type") == "free"
        if is_free and (align == "true" or (align == "auto" and is_default)):
            what = "MuJoCo aligns this body with its inertia, so the keyframe has other axes"
            remedy = 'write align="false" and the pose of the body itself, or omit the keyframe'
            reader.problem(joint, body.attributes.get("name", "body"), what, remedy)
