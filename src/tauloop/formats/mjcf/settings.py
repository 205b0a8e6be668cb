"""What an MJCF file says once for many elements: compiler settings and default classes; and how poses are written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from tauloop.common.records import dataclass
from tauloop.formats.xml.nodes import XmlNode, XmlReader
from tauloop.mechanism.poses import FramePose, quaternion_rotation, rotation_about

#: The class of everything that names none.
MAIN = "main"
#: A position or velocity servo, or a muscle, is more than an ideal motor.
SERVOS = (
    "position",
    "velocity",
    "intvelocity",
    "damper",
    "cylinder",
    "muscle",
    "adhesion",
    "dcmotor",
)
#: Actuators share one set of defaults, whatever they are called.
ACTUATORS = ("general", "motor", *SERVOS)
#: Names in ``<custom>`` of what MJCF has no place for: ``tauloop.joint.NAME.friction.offset``,
#: ``tauloop.platform``.
CUSTOM = "tauloop."
#: Terms of friction that MuJoCo does not have, and what they are; they are in ``<custom>``.
KEPT_FRICTION = {
    "offset": "constant part",
    "viscous_asymmetry": "viscous asymmetry",
    "coulomb_asymmetry": "Coulomb asymmetry",
    "static": "static part",
    "stribeck": "",
}
#: Ways to write an orientation, with how many numbers each has.
_ORIENTATIONS = {"quat": 4, "axisangle": 4, "xyaxes": 6, "zaxis": 3, "euler": 3}
#: Axes must be longer than this to have a direction.
_NO_DIRECTION = 1e-12
#: Bounds of masses (kg) and moments (kg m^2) up to here only let zeros through MuJoCo, and are left
#: out.
FOR_MUJOCO = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class MjcfCompiler:
    """Settings that change what numbers mean.

    Attributes:
        angle: rad of one unit of an angle in the file.
        euler: sequence of Euler angles; small letters turn with the frame, capitals do not.
        has_autolimits: whether a range alone makes a limit.
        from_geoms: "auto" (mass from geoms where a body has no inertial), "true" or "false".
        groups: first and last group of geoms that have mass.
        meshes: folder that files of meshes are named from.
        has_bare_names: whether only the last part of these names counts.
    """

    angle: float = math.pi / 180
    euler: str = "xyz"
    has_autolimits: bool = True
    from_geoms: str = "auto"
    groups: tuple[int, int] = (0, 5)
    meshes: Path = Path()
    has_bare_names: bool = False


class MjcfReader(XmlReader):
    """Reads attributes with their defaults; remembers which were used, so that the others can be listed."""

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
        self._classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}}
        self.compiler = self._compiler(root)
        for node in root.all("default"):
            self._read_class(node, self._classes[MAIN], is_top=True)
        self._extras: dict[str, float] = {}
        self._lists: dict[str, tuple[str, ...]] = {}
        self._texts: dict[str, str] = {}
        for section in root.all("custom"):
            self._read_custom(section)

    # What MJCF has no place for

    def extra(self, kind: str, node: XmlNode, what: str, default: float = 0.0) -> float:
        """Return a figure of a joint or actuator, SI, that `mjcf_writer` put into ``<custom>``."""
        return self._extras.get(f"{CUSTOM}{kind}.{node.attributes.get('name', '')}.{what}", default)

    def kept_friction(self, kind: str, node: XmlNode) -> dict[str, float]:
        """Return the terms of the friction of a joint or actuator that `mjcf_writer` put there."""
        return {key: self.extra(kind, node, f"friction.{key}") for key in KEPT_FRICTION}

    @property
    def payload(self) -> float:
        """Return the rated payload, kg, that `mjcf_writer` put there."""
        return self._extras.get(f"{CUSTOM}platform.payload", 0.0)

    def listed(self, what: str) -> tuple[str, ...]:
        """Names that `mjcf_writer` put into ``<custom>``; empty where there are none."""
        return self._lists.get(f"{CUSTOM}{what}", ())

    def texts(self, what: str) -> tuple[str, ...]:
        """Return the texts that `mjcf_writer` put into ``<custom>``, with a number each; empty where there are none."""
        return tuple(
            text for name, text in self._texts.items() if name.startswith(f"{CUSTOM}{what}.")
        )

    def _read_custom(self, section: XmlNode) -> None:
        for node in section.children:
            name = node.attributes.get("name", "")
            if name.startswith(CUSTOM) and node.tag == "numeric":
                self._extras[name] = self.number(node, name, "data")
            elif name.startswith(CUSTOM) and node.tag == "text":
                self._texts[name] = self.text(node, name, "data")
                self._lists[name] = tuple(self._texts[name].split())

    # Defaults

    def resolved(self, node: XmlNode, childclass: str) -> XmlNode:
        """Return an element with the attributes that it takes from its class."""
        self.use(node, "class")
        name = node.attributes.get("class", "") or childclass or MAIN
        what, remedy = f"there is no default class {name!r}", "define it under <default>"
        defaults = (
            self.look_up(node, name, name, self._classes, what, remedy) or self._classes[MAIN]
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
        name = node.attributes.get("class", MAIN if is_top else "")
        if not name:
            self.problem(
                node, "default", "a nested default has no class", 'write <default class="...">'
            )
            return
        if is_top:
            name = MAIN
        mine = {tag: dict(attributes) for tag, attributes in inherited.items()}
        for child in node.children:
            if child.tag != "default":
                tag = "general" if child.tag in ACTUATORS else child.tag
                mine.setdefault(tag, {}).update(child.attributes)
        self._classes[name] = mine
        for child in node.all("default"):
            self._read_class(child, mine, is_top=False)

    def _compiler(self, root: XmlNode) -> MjcfCompiler:
        settings: dict[str, str] = {}
        last = None
        for node in root.all("compiler"):
            settings.update(node.attributes)
            last = node
            self.use(
                node, "angle", "eulerseq", "autolimits", "inertiafromgeom", "inertiagrouprange"
            )
            self.use(node, "meshdir", "texturedir", "assetdir", "coordinate", "strippath")
            for key in ("boundmass", "boundinertia"):
                if self.number(node, "compiler", key, 0.0) <= FOR_MUJOCO:
                    self.use(node, key)
        if last is None:
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
                    last,
                    f"compiler.{key}",
                    f"{value!r} is not known here",
                    "see MuJoCo's XML reference",
                )
        node = replace(last, attributes=settings)
        low, high = self.vector(node, "compiler", "inertiagrouprange", (0.0, 5.0))
        is_whole = math.isfinite(low + high)
        return MjcfCompiler(
            angle=1.0 if angle == "radian" else math.pi / 180,
            euler=euler if len(euler) == 3 and set(euler) <= set("xyzXYZ") else "xyz",
            has_autolimits=settings.get("autolimits", "true") != "false",
            from_geoms=from_geoms,
            groups=(int(low), int(high)) if is_whole else (0, 5),
            meshes=Path(self.file).parent / settings.get("meshdir", settings.get("assetdir", "")),
            has_bare_names=settings.get("strippath") == "true",
        )

    # Values

    def use(self, node: XmlNode, *attributes: str) -> None:
        """Remember that attributes of an element were read."""
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
        """Return a number; where several are allowed (polynomials), the first, and the others are listed if not zero."""
        self.use(node, attribute)
        words = node.attributes.get(attribute, "").split()
        if len(words) > 1 and all(map(_is_zero, words[1:])):
            node = replace(node, attributes={**node.attributes, attribute: words[0]})
        return self.number(node, where, attribute, default)

    def numbers(self, node: XmlNode, where: str, attribute: str) -> tuple[float, ...]:
        """As many finite numbers as there are; none where the attribute is missing."""
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
        """Return the position and orientation of an element, in any of the five ways to say it."""
        return FramePose(
            position=self.triple(node, where, "pos"), rotation=self.orientation(node, where)
        )

    def orientation(self, node: XmlNode, where: str) -> np.ndarray:
        """Return the axes (3, 3) of an element."""
        keys = [key for key in _ORIENTATIONS if key in node.attributes]
        self.use(node, *keys)
        if len(keys) > 1:
            self.problem(
                node,
                where,
                f"says its orientation {len(keys)} times: {', '.join(keys)}",
                "keep one",
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
                "correct it",
            )
            return np.eye(3)
        return rotation

    def _rotation(self, kind: str, x: np.ndarray) -> np.ndarray | None:
        """Return the axes (3, 3) by one of MuJoCo's five conventions; None where a direction has length zero."""
        if kind == "euler":
            R = np.eye(3)
            for letter, angle in zip(self.compiler.euler, x * self.compiler.angle, strict=True):
                turn = Rotation.from_euler(letter.lower(), angle).as_matrix()
                R = R @ turn if letter.islower() else turn @ R
            return R
        if np.linalg.norm(x[:3] if kind != "quat" else x) < _NO_DIRECTION:
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
        if np.linalg.norm(e_y) < _NO_DIRECTION:
            return None
        e_y /= np.linalg.norm(e_y)
        return np.column_stack([e_x, e_y, np.cross(e_x, e_y)])


def shortest_turn(direction: np.ndarray) -> np.ndarray:
    """Return the axes (3, 3) whose z points along a direction, turned there by the shortest way."""
    z = direction / np.linalg.norm(direction)
    axis = np.cross([0.0, 0.0, 1.0], z)
    sine = float(np.linalg.norm(axis))
    angle = math.atan2(sine, float(z[2]))
    axis = axis / sine if sine > _NO_DIRECTION else np.array([1.0, 0.0, 0.0])
    return rotation_about(axis, np.array(angle))


def _is_zero(word: str) -> bool:
    try:
        return float(word) == 0.0
    except ValueError:
        return False
