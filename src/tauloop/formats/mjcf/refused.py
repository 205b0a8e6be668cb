"""Settings of an MJCF file that change the motion of the machine and are not supported.

Settings that change masses in MuJoCo's compiler or switch forces off are rejected, because ignoring
them would silently give another machine. The drag of a surrounding medium is omitted, which makes
results that need forces doubtful.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tauloop.formats.mjcf.settings import ACTUATORS, MUJOCO_BOUND, MjcfReader
from tauloop.formats.xml.foreign_elements import Treatment, row_of
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.suggestions import listing

#: Largest accepted lower bound of masses and moments, as a fraction of the heaviest mass and of its
#: moment of inertia at the machine's largest length.
_BOUND_FRACTION = 1e-4
#: Flags that switch forces off, with the attributes and elements that describe these forces.
_FORCE_FLAGS: dict[str, tuple[str, ...]] = {
    "constraint": ("frictionloss", "equality"),
    "equality": ("equality",),
    "frictionloss": ("frictionloss",),
    "spring": ("stiffness", "springdamper"),
    "damper": ("damping", "springdamper"),
}
_MEDIUM_OPTIONS = ("density", "viscosity", "wind")
#: Elements that contain the elements of a body.
_BODIES = ("worldbody", "body", "frame", "replicate")
#: Elements with the only parents in which MuJoCo reads them; elsewhere they would be ignored.
_PARENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("worldbody", "actuator", "keyframe", "compiler", "option"), ("mujoco",)),
    **dict.fromkeys(("body", "frame", "freejoint", "inertial"), _BODIES),
    **dict.fromkeys(("geom", "site"), (*_BODIES, "default", "spatial")),
    **dict.fromkeys(("connect", "weld"), ("equality",)),
    **dict.fromkeys(ACTUATORS, ("actuator", "default")),
    "joint": (*_BODIES, "default", "equality", "fixed"),
    "equality": ("mujoco", "default"),
    "tendon": ("mujoco", "default", "equality"),
    "fixed": ("tendon",),
}


def refuse_misplaced(reader: MjcfReader, node: XmlNode) -> None:
    """Add a problem for each element below `node` that MuJoCo does not read there."""
    for child in node.children:
        row = row_of("mjcf", node.tag, child.tag)
        if row is not None and row.treatment is Treatment.HARMLESS:
            continue
        parents = _PARENTS.get(child.tag)
        if parents is not None and node.tag not in parents:
            name = child.attributes.get("name", child.tag)
            what = f"<{child.tag}> is not permitted in <{node.tag}>"
            allowed = listing(f"<{parent}>" for parent in parents if parent != "replicate")
            reader.problem(child, name, what, f"move it into {allowed}")
        else:
            refuse_misplaced(reader, child)


def refuse_unsupported_forces(reader: MjcfReader, root: XmlNode) -> None:
    """Add problems for unsupported settings that change the machine; list omitted drag."""
    _refuse_masses(reader, root, {"settotalmass": 0.0})
    for option in root.all("option"):
        for flag in option.all("flag"):
            for key, sources in _FORCE_FLAGS.items():
                if reader.word(flag, key) == "disable" and _describes(root, sources):
                    what = f"{key}=disable switches off forces that the file describes"
                    reader.problem(
                        flag,
                        f"option.flag.{key}",
                        what,
                        "remove the flag, or the forces that it switches off",
                    )
        medium = {key: reader.numbers(option, "option", key) for key in _MEDIUM_OPTIONS}
        medium_texts: list[str] = []
        for key, numbers in medium.items():
            if any(numbers):
                text = " ".join(f"{number:g}" for number in numbers)
                medium_texts.append(f"{key} {text}")
        if any(medium["density"]) or any(medium["viscosity"]):
            reader.omitted.append(f"the drag of a medium ({', '.join(medium_texts)})")


def _describes(root: XmlNode, sources: Sequence[str]) -> bool:
    """Return whether a file has one of these elements, or one of these attributes other than 0."""
    for node in root.walk():
        if node.tag in sources and node.children:
            return True
        words = [word for key in sources for word in node.attributes.get(key, "").split()]
        if node.tag != "flag" and any(word.strip("+-0.") for word in words):
            return True
    return False


def refuse_bounds(reader: MjcfReader, root: XmlNode, heaviest: float, largest: float) -> None:
    """Add problems for lower bounds of masses and moments that would change the machine.

    Args:
        reader: collects the problems.
        root: the element ``<mujoco>``.
        heaviest: largest mass of a body, kg.
        largest: largest length of the file, m.
    """
    sizes = {"boundmass": heaviest, "boundinertia": heaviest * largest**2}
    limits = {
        key: min(MUJOCO_BOUND, _BOUND_FRACTION * size) if size else MUJOCO_BOUND
        for key, size in sizes.items()
    }
    _refuse_masses(reader, root, limits)


def _refuse_masses(reader: MjcfReader, root: XmlNode, limits: Mapping[str, float]) -> None:
    """Reject compiler settings above the values that do not change the masses of a file."""
    for node in root.all("compiler"):
        for key, limit in limits.items():
            if reader.number(node, "compiler", key, 0.0) > limit:
                what = f"{key}={node.attributes[key]} changes the masses of the file"
                reader.problem(
                    node, f"compiler.{key}", what, "save the compiled model: mj_saveLastXML"
                )
