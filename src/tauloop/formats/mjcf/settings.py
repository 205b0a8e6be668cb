"""Compiler settings and default classes of an MJCF file, and its notations for poses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.records import dataclass
from tauloop.formats.xml.nodes import XmlNode, XmlReader
from tauloop.mechanism.poses import (
    UNIT_VECTORS,
    FramePose,
    quaternion_rotation,
    rotation_about,
    shortest_turn,
)

#: Default class of elements without a class.
DEFAULT_CLASS = "main"
#: Actuators that are more than an ideal motor: servos, muscles and plugins with a control law.
SERVOS = (
    "position",
    "velocity",
    "intvelocity",
    "damper",
    "cylinder",
    "muscle",
    "adhesion",
    "dcmotor",
    "pid",
    "orientation",
    "plugin",
)
#: All kinds of actuators share one set of defaults.
ACTUATORS = ("general", "motor", *SERVOS)
#: Prefix of names in ``<custom>`` for properties that MJCF lacks:
#: ``tauloop.joint.NAME.friction.offset``, ``tauloop.platform``.
CUSTOM_PREFIX = "tauloop."
#: Friction terms that MuJoCo lacks, with their names in messages; they are stored in ``<custom>``.
CUSTOM_FRICTION_TERMS = {
    "offset": "constant part",
    "viscous_asymmetry": "viscous asymmetry",
    "coulomb_asymmetry": "Coulomb asymmetry",
    "static": "static part",
    "stribeck": "",
}
#: Range of the sum of the forces of all actuators on a joint or tendon, and its switch.
FORCE_RANGE, FORCE_SWITCH = "actuatorfrcrange", "actuatorfrclimited"
#: Attributes that may have coefficients of higher order.
_POLYNOMIALS = ("stiffness", "damping")
#: Attributes for an orientation, each with its number of components.
_ORIENTATIONS = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}
#: Smallest length of a vector that defines a direction.
_MIN_AXIS_LENGTH = 1e-12
#: Lower bounds of masses (kg) and moments (kg m^2) up to this value are ignored. They only make
#: MuJoCo accept zeros.
MUJOCO_BOUND = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class MjcfCompiler:
    """Settings that change the meaning of numbers.

    Attributes:
        angle: factor from the file's unit of angles to rad.
        euler: sequence of Euler angles: intrinsic rotations for lower-case letters, extrinsic ones
            for upper-case letters.
        has_autolimits: whether a range without a switch is a limit.
        from_geoms: whether masses follow from geoms: "true", "false", or "auto" (for bodies without
            ``<inertial>``).
        groups: first and last group of geoms with mass.
        meshes: folder to which mesh files are relative.
        strips_paths: whether the folders in the names of mesh files are ignored.
        is_balancing: whether impossible moments of inertia are replaced by their mean.
        drops_inertials: whether the inertia of welded bodies follows from the geoms of all of them.
            MuJoCo moves these geoms to one body (fusestatic) before it derives masses from geoms,
            and drops the ``<inertial>`` of the other bodies.
    """

    angle: float = math.pi / 180
    euler: str = "xyz"
    has_autolimits: bool = True
    from_geoms: str = "auto"
    groups: tuple[int, int] = (0, 5)
    meshes: Path = Path()
    strips_paths: bool = False
    is_balancing: bool = False
    drops_inertials: bool = False


class MjcfReader(XmlReader):
    """Reader of attributes with their defaults. It records which attributes were read."""

    def __init__(self, file: str, root: XmlNode) -> None:
        """Read compiler settings and default classes.

        Args:
            file: name of the file for messages.
            root: the element ``<mujoco>``.
        """
        super().__init__(file)
        self.notes: list[str] = []
        self.omitted: list[str] = []
        self.solids: list[str] = []
        self.massless: list[str] = []
        self._used: set[tuple[str, int, str]] = set()
        self._classes: dict[str, dict[str, dict[str, str]]] = {DEFAULT_CLASS: {}}
        self.compiler = self._compiler(root)
        for node in root.all("default"):
            self._read_class(node, self._classes[DEFAULT_CLASS], is_top=True)
        self._extras: dict[str, float] = {}
        self._lists: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, str] = {}
        for section in root.all("custom"):
            self._read_custom(section)

    # Properties that MJCF lacks

    def extra(self, kind: str, node: XmlNode, what: str, default: float = 0.0) -> float:
        """Return a number of a joint or actuator, SI, that `mjcf.writer` stored in ``<custom>``."""
        name = node.attributes.get("name", "")
        return self._extras.get(f"{CUSTOM_PREFIX}{kind}.{name}.{what}", default)

    def stored_friction(self, kind: str, node: XmlNode) -> dict[str, float]:
        """Return friction terms of a joint or actuator that `mjcf.writer` stored."""
        return {key: self.extra(kind, node, f"friction.{key}") for key in CUSTOM_FRICTION_TERMS}

    @property
    def payload(self) -> float:
        """Rated payload, kg, that `mjcf.writer` stored in ``<custom>``; 0 if there is none."""
        return self._extras.get(f"{CUSTOM_PREFIX}platform.payload", 0.0)

    def listed(self, what: str) -> tuple[str, ...]:
        """Return names that `mjcf.writer` stored in ``<custom>``; empty if there are none."""
        return self._lists.get(f"{CUSTOM_PREFIX}{what}", ())

    def texts(self, what: str) -> tuple[str, ...]:
        """Return numbered texts that `mjcf.writer` stored; empty if there are none."""
        return tuple(
            text for name, text in self._texts.items() if name.startswith(f"{CUSTOM_PREFIX}{what}.")
        )

    def _read_custom(self, section: XmlNode) -> None:
        for node in section.children:
            name = node.attributes.get("name", "")
            if name.startswith(CUSTOM_PREFIX) and node.tag == "numeric":
                self._extras[name] = self.number(node, name, "data")
            elif name.startswith(CUSTOM_PREFIX) and node.tag == "text":
                self._texts[name] = self.text(node, name, "data")
                self._lists[name] = tuple(self._texts[name].split())

    # Defaults

    def resolved(self, node: XmlNode, childclass: str) -> XmlNode:
        """Return an element with the attributes that it inherits from its class."""
        self.use(node, "class")
        name = node.attributes.get("class", "") or childclass or DEFAULT_CLASS
        what, remedy = f"there is no default class {name!r}", "define it under <default>"
        defaults = (
            self.look_up(node, name, name, self._classes, what, remedy)
            or self._classes[DEFAULT_CLASS]
        )
        tag = "general" if node.tag in ACTUATORS else node.tag
        return replace(node, attributes={**defaults.get(tag, {}), **node.attributes})

    def childclass(self, node: XmlNode, inherited: str) -> str:
        """Return the class of the elements below a body or frame."""
        self.use(node, "childclass")
        return node.attributes.get("childclass", inherited)

    def _read_class(
        self, node: XmlNode, inherited: Mapping[str, dict[str, str]], is_top: bool
    ) -> None:
        name = node.attributes.get("class", DEFAULT_CLASS if is_top else "")
        if not name:
            self.problem(
                node, "default", "a nested default has no class", 'write <default class="...">'
            )
            return
        if is_top:
            name = DEFAULT_CLASS
        attributes_by_tag = {tag: dict(attributes) for tag, attributes in inherited.items()}
        for child in node.children:
            if child.tag != "default":
                tag = "general" if child.tag in ACTUATORS else child.tag
                attributes_by_tag.setdefault(tag, {}).update(child.attributes)
        self._classes[name] = attributes_by_tag
        for child in node.all("default"):
            self._read_class(child, attributes_by_tag, is_top=False)

    def _compiler(self, root: XmlNode) -> MjcfCompiler:
        settings: dict[str, str] = {}
        last_node = None
        for node in root.all("compiler"):
            settings.update(node.attributes)
            last_node = node
            self.use(
                node, "angle", "eulerseq", "autolimits", "inertiafromgeom", "inertiagrouprange"
            )
            self.use(node, "meshdir", "texturedir", "assetdir", "coordinate", "strippath")
            self.use(node, "balanceinertia", "fusestatic")
            for key in ("boundmass", "boundinertia"):
                if self.number(node, "compiler", key, 0.0) <= MUJOCO_BOUND:
                    self.use(node, key)
        if last_node is None:
            return MjcfCompiler(meshes=Path(self.file).parent)
        angle = settings.get("angle", "degree")
        euler = settings.get("eulerseq", "xyz")
        from_geoms = settings.get("inertiafromgeom", "auto")
        for key, value, is_known in (
            ("angle", angle, angle in ("degree", "radian")),
            ("eulerseq", euler, len(euler) == 3 and set(euler) <= set("xyzXYZ")),
            ("inertiafromgeom", from_geoms, from_geoms in ("auto", "true", "false")),
            (
                "coordinate",
                settings.get("coordinate", "local"),
                settings.get("coordinate", "local") == "local",
            ),
        ):
            if not is_known:
                self.problem(
                    last_node,
                    f"compiler.{key}",
                    f"{value!r} is not supported",
                    "see MuJoCo's XML reference",
                )
        node = replace(last_node, attributes=settings)
        first_group, last_group = self.vector(node, "compiler", "inertiagrouprange", (0.0, 5.0))
        is_finite = math.isfinite(first_group + last_group)
        return MjcfCompiler(
            angle=1.0 if angle == "radian" else math.pi / 180,
            euler=euler if len(euler) == 3 and set(euler) <= set("xyzXYZ") else "xyz",
            has_autolimits=settings.get("autolimits", "true") != "false",
            from_geoms=from_geoms,
            groups=(int(first_group), int(last_group)) if is_finite else (0, 5),
            meshes=Path(self.file).parent / settings.get("meshdir", settings.get("assetdir", "")),
            strips_paths=settings.get("strippath") == "true",
            is_balancing=settings.get("balanceinertia") == "true",
            drops_inertials=from_geoms == "true" and settings.get("fusestatic") == "true",
        )

    # Values

    def use(self, node: XmlNode, *attributes: str) -> None:
        """Record that attributes of an element were read."""
        self._used.update(
            (node.file, node.line, f"{node.tag} {attribute}") for attribute in attributes
        )

    def is_used(self, node: XmlNode, attribute: str) -> bool:
        """Return whether an attribute of an element was read."""
        return (node.file, node.line, f"{node.tag} {attribute}") in self._used

    def word(self, node: XmlNode, attribute: str, default: str = "") -> str:
        """Return an attribute that is a word."""
        self.use(node, attribute)
        return node.attributes.get(attribute, default).strip()

    def value(self, node: XmlNode, where: str, attribute: str, default: float = 0.0) -> float:
        """Return a number, or the first of several coefficients of a polynomial.

        Other coefficients of stiffness and damping are listed as omitted if they are not zero.
        """
        self.use(node, attribute)
        words = node.attributes.get(attribute, "").split()
        other_words = words[1:]
        if other_words and (attribute in _POLYNOMIALS or all(map(_is_zero, other_words))):
            if not all(map(_is_zero, other_words)):
                self.vector(node, where, attribute, (0.0,) * len(words))
                self.omitted.append(
                    f"the nonlinear {attribute} ({' '.join(words)}) of {node.tag} {where}"
                )
            node = replace(node, attributes={**node.attributes, attribute: words[0]})
        return self.number(node, where, attribute, default)

    def limits(
        self, node: XmlNode, where: str, attribute: str, switch: str
    ) -> tuple[float, float] | None:
        """Return the bounds of a range that is a limit; None if the range is not a limit.

        Without a switch, a range is a limit if its lower bound is below its upper bound. "0 0"
        cancels the range of a class.
        """
        bounds = self.numbers(node, where, attribute)
        word = self.word(node, switch, "auto")
        is_limited = word == "true"
        if word == "false" or not (is_limited or (bounds and self.compiler.has_autolimits)):
            return None
        if len(bounds) != 2:
            what = f"{attribute} has {counted(len(bounds), 'number')}, not 2"
            self.problem(node, where, what, "give a lower and an upper bound")
            return None
        if bounds[0] >= bounds[1]:
            text = f"{attribute} {bounds[0]:g} to {bounds[1]:g}"
            if is_limited:
                self.problem(node, where, f"{text} is empty", "swap or correct its bounds")
            elif any(bounds):
                self.notes.append(f"{where}: {text} is empty, which MuJoCo reads as no limit")
            return None
        return bounds[0], bounds[1]

    def numbers(self, node: XmlNode, where: str, attribute: str) -> tuple[float, ...]:
        """Return all numbers of an attribute, which must be finite; empty if it is missing."""
        self.use(node, attribute)
        words = node.attributes.get(attribute, "").split()
        return self.vector(node, where, attribute, (0.0,) * len(words)) if words else ()

    def triple(
        self,
        node: XmlNode,
        where: str,
        attribute: str,
        default: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> np.ndarray:
        """Return three numbers (3,)."""
        self.use(node, attribute)
        return np.array(self.vector(node, where, attribute, default))

    def pose(self, node: XmlNode, where: str) -> FramePose:
        """Return the pose of an element; its orientation may be in any of MuJoCo's five forms."""
        return FramePose(
            position=self.triple(node, where, "pos"), rotation=self.orientation(node, where)
        )

    def orientation(self, node: XmlNode, where: str) -> np.ndarray:
        """Return the rotation (3, 3) of an element; the columns are its axes."""
        keys = [key for key in _ORIENTATIONS if key in node.attributes]
        self.use(node, *keys)
        if len(keys) > 1:
            self.problem(
                node,
                where,
                f"its orientation is given {len(keys)} times: {', '.join(keys)}",
                "keep one of them",
            )
        if not keys:
            return np.eye(3)
        x = np.array(self.vector(node, where, keys[0], (0.0,) * _ORIENTATIONS[keys[0]]))
        if not np.isfinite(x).all():
            return np.eye(3)
        rotation = self._rotation(keys[0], x)
        if rotation is None:
            self.problem(
                node,
                where,
                f"{keys[0]}={node.attributes[keys[0]]!r} has no direction",
                "give nonzero vectors; those of xyaxes must not be parallel",
            )
            return np.eye(3)
        return rotation

    def _rotation(self, kind: str, x: np.ndarray) -> np.ndarray | None:
        """Return the rotation (3, 3) in one of MuJoCo's five forms; None for a zero direction."""
        if kind == "euler":
            R = np.eye(3)
            for letter, angle in zip(self.compiler.euler, x * self.compiler.angle, strict=True):
                axis = np.array(UNIT_VECTORS[letter.lower()])
                elemental_rotation = rotation_about(axis, np.array(angle))
                R = R @ elemental_rotation if letter.islower() else elemental_rotation @ R
            return R
        if np.linalg.norm(x[:3] if kind != "quat" else x) < _MIN_AXIS_LENGTH:
            return None
        if kind == "quat":
            return quaternion_rotation(x)
        if kind == "axisangle":
            axis = x[:3] / np.linalg.norm(x[:3])
            return rotation_about(axis, np.array(x[3] * self.compiler.angle))
        if kind == "zaxis":
            return shortest_turn(x)
        e_x = x[:3] / np.linalg.norm(x[:3])
        e_y = x[3:] - (x[3:] @ e_x) * e_x
        if np.linalg.norm(e_y) < _MIN_AXIS_LENGTH:
            return None
        e_y /= np.linalg.norm(e_y)
        return np.column_stack([e_x, e_y, np.cross(e_x, e_y)])


def _is_zero(word: str) -> bool:
    try:
        return float(word) == 0.0
    except ValueError:
        return False
