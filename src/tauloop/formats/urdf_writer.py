"""A `Mechanism` as a URDF tree with a side file for all that URDF cannot say, at its nominal parameters.

Zero of all joints in the URDF is the machine's start; ``offsets`` in the side file restore the coordinates. Names stay,
with their dots, where URDF lets them: a joint and a link have two names, and the side file's motors a third. The side
file is that of `tauloop.formats.urdf_side`; its ``closed_loop`` and ``type`` are those of Gepetto's
robot.yaml, with kinds of joints beside ``3d`` and ``6d``. The same loops stand in the URDF as ``<constraint>``, the
element that is proposed for it, where that has their kind; whoever reads both files takes them once. Joints with
several freedoms become chains of massless links.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml
from scipy.spatial.transform import Rotation

from tauloop.errors import DescriptionError
from tauloop.files import write_text
from tauloop.formats.element_writer import ElementWriter
from tauloop.formats.expression_writer import literal, number
from tauloop.formats.meshes import MeshCopies
from tauloop.formats.side_grammar import FORMAT
from tauloop.formats.urdf_cut_elements import CUT, CUT_TYPES
from tauloop.formats.urdf_parts import identifier
from tauloop.mechanism import units
from tauloop.mechanism.model import BASE, JOINT_KINDS, Actuator, Freedom, Mechanism
from tauloop.mechanism.poses import IDENTITY, FramePose, rotation_matrix
from tauloop.mechanism.primitives import Primitive
from tauloop.mechanism.rigid_tree import Closure, Link, LinkInertia, Tree, constant_angles, rigid_tree
from tauloop.mechanism.solid import Solid, colour, rgba
from tauloop.records import dataclass

_CLOSABLE = ("spherical", "revolute", "prismatic", "cylindrical", "planar", "fixed")
_TYPES = {"spherical": "3d", "fixed": "6d"}
_HINGES = (("x", np.eye(3)[0]), ("y", np.eye(3)[1]), ("z", np.eye(3)[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenUrdf:
    """A URDF and its side file.

    Attributes:
        urdf, side: texts of the two files.
        names: names in the URDF by those of the mechanism: bodies, scalar coordinates, rods' parts, actuators.
        meshes: the files of meshes that the URDF names.
        notes: what is not as in the mechanism, one sentence each.
    """

    urdf: str
    side: str
    names: dict[str, str]
    meshes: MeshCopies
    notes: tuple[str, ...]


def to_urdf(mechanism: Mechanism, meshes: str = "meshes") -> WrittenUrdf:
    """Texts of a URDF and of its side file.

    Args:
        mechanism: any mechanism.
        meshes: folder, beside the URDF, of the meshes that it names.

    Raises:
        DescriptionError: rigid links and ideal joints do not represent it (see `mechanism.rigid_tree`).
    """
    return _UrdfWriter(mechanism, rigid_tree(mechanism, _CLOSABLE, DescriptionError), MeshCopies(meshes)).write()


def write_urdf(mechanism: Mechanism, path: str | Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write a URDF and, beside it, ``NAME.side.yaml`` and meshes in ``NAME_meshes``, each renamed when it is complete.

    Returns:
        Paths of the side file and the meshes, and what is not as in the mechanism.

    Raises:
        DescriptionError: as `to_urdf`.
        InputError: a file cannot be written.
    """
    written = to_urdf(mechanism, f"{Path(path).stem}_meshes")
    side = Path(path).with_suffix(".side.yaml")
    meshes = written.meshes.write(Path(path).parent)
    write_text(side, written.side)
    write_text(path, written.urdf)
    return (side, *meshes), written.notes


@dataclass(slots=True)
class _UrdfWriter:
    mechanism: Mechanism
    tree: Tree
    meshes: MeshCopies
    notes: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=lambda: {BASE: BASE})
    names: dict[str, str] = field(default_factory=dict)
    motors: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=lambda: {BASE})
    offsets: dict[str, str] = field(default_factory=dict)
    joints: dict[str, Any] = field(default_factory=dict)
    floating: dict[str, Any] = field(default_factory=dict)
    couplings: dict[str, Any] = field(default_factory=dict)
    elements_of: dict[str, ElementTree.Element] = field(default_factory=dict)
    robot: ElementTree.Element = field(default_factory=lambda: ElementTree.Element("robot"))

    def write(self) -> WrittenUrdf:
        m = self.mechanism
        write = self.elements
        self.notes = ["parameters are written as numbers", *self.tree.notes]
        driven = [actuator.name for actuator in m.actuators if actuator.drive is not None]
        self.notes += [f"actuator {name}: its drive line has no place in URDF" for name in driven]
        self.robot.set("name", identifier(m.name.replace(".", "_")))
        self.elements_of[BASE] = ElementTree.SubElement(self.robot, "link", name=BASE)
        coupled = {name for coupling in m.couplings for name, _ in coupling.terms}
        for link in self.tree.links:
            self._link(link, coupled)
        for solid in m.solids:
            self._solid(solid)
        self._mimics()
        side: dict[str, Any] = {
            "format": FORMAT,
            "provenance": {"status": "given", "source": f"written from the machine {m.name}"},
            "gravity": write.vector(m.gravity, units.ACCELERATION),
            "platform": self._platform(),
        }
        loops = [self._closure(closure) for closure in self.tree.closures]
        if loops:
            side |= {"closed_loop": [list(frames) for frames, _ in loops], "type": [kind for _, kind in loops]}
        sections = {"joints": self.joints, "floating": self.floating, "couplings": self.couplings}
        for key, section in ({"offsets": self.offsets} | sections).items():
            if section:
                side[key] = section
        if m.losses:
            side["losses"] = {self._named(loss.name): write.loss(loss) for loss in m.losses}
        self.motors = {actuator.name: self._motor(actuator) for actuator in m.actuators}
        side["actuators"] = {self.motors[actuator.name]: write.actuator(actuator) for actuator in m.actuators}
        self._note_renamed()
        ElementTree.indent(self.robot)
        return WrittenUrdf(
            urdf=ElementTree.tostring(self.robot, encoding="unicode") + "\n",
            side=yaml.safe_dump(side, sort_keys=False, default_flow_style=None, width=120),
            names=self.motors | self.names | self.links,
            meshes=self.meshes,
            notes=tuple(self.notes),
        )

    @property
    def elements(self) -> ElementWriter:
        """Writes elements of the side file, at nominal values."""
        value = self.mechanism.value
        return ElementWriter(
            mechanism=self.mechanism,
            text=lambda expression, dimension: literal(value(expression), dimension),
            names=self.names,
        )

    def _motor(self, actuator: Actuator) -> str:
        """The name of an actuator; that of the joint which it alone drives stays its own."""
        is_joints = [self.names[joint] for joint, _ in actuator.drives] == [actuator.name]
        return actuator.name if is_joints else self._named(actuator.name)

    def _note_renamed(self) -> None:
        """Channels of logs are called after motors and coordinates: whoever maps them needs the pairs."""
        kinds = {"body": self.links, "coordinate": self.names, "actuator": self.motors}
        pairs = [f"{kind} {a} to {b}" for kind, names in kinds.items() for a, b in names.items() if a != b]
        if pairs:
            self.notes.append(f"renamed, here and in the channels of logs: {', '.join(pairs)}")

    def _named(self, name: str) -> str:
        """A new name for a name of the mechanism, which it is unless that is taken or has characters of its own."""
        word = identifier(name)
        while word in self.taken:
            word += "_"
        self.taken.add(word)
        return word

    # Links and joints

    def _link(self, link: Link, coupled: set[str]) -> None:
        """A link with its chain; what stands between two joints, or before a turned frame, is a massless link."""
        parent, at, chain, frame = self.links[link.parent], link.at, list(link.chain), link.at
        self._note_unwritten(link)
        steps: list[tuple[FramePose, str, str, Primitive | None, np.ndarray]] = []
        if [p.kind for p in chain] == ["slide", "slide", "slide", "ball"]:
            joint = chain[-1].name.removesuffix(".turn")
            for primitive in chain:
                at = at @ primitive.pose()
            steps.append((at, joint, "floating", None, np.zeros(3)))
            chain, at = [], IDENTITY
        for primitive in chain:
            if primitive.kind == "ball":
                self.notes.append(
                    f"joint {primitive.name}: URDF has no ball; three hinges about x, y and z stand for it"
                )
                at = at @ primitive.pose()
                for word, across in _HINGES:
                    steps.append((at, f"{primitive.name}.{word}", "revolute", None, across))
                    at = IDENTITY
                continue
            kind = "revolute" if primitive.kind == "hinge" else "prismatic"
            start = at if primitive.name in coupled else at @ primitive.pose()
            steps.append((start, primitive.name, kind, primitive, primitive.axis))
            at = IDENTITY
        if not steps or not link.frame.is_identity:
            steps.append((at @ link.frame, f"{link.name}.fixed", "fixed", None, np.zeros(3)))
        for k, (start, name, kind, moving, axis) in enumerate(steps):
            last = k == len(steps) - 1
            child = self._named(link.name if last else f"{link.name}.{k + 1}")
            if last:
                self.links[link.name] = child
            element = ElementTree.SubElement(self.robot, "link", name=child)
            if last:
                self.elements_of[link.name] = element
            if last and link.mass is not None:
                _add_inertial(element, link.mass)
            word = self._joint(name, kind, parent, child, start, axis, moving, moving is not None and name in coupled)
            if kind == "floating":
                self.floating[word] = self._floating(name, frame)
                self.names |= {f"{name}.{freedom}": f"{word}.{freedom}" for freedom in JOINT_KINDS["free"].velocities}
            parent = child

    def _solid(self, solid: Solid) -> None:
        """What is seen of a link; URDF has no capsules, and meshes as files alone."""
        if isinstance(solid.mesh, Path) and not solid.mesh.is_file():
            self.notes.append(f"solid on {solid.body}: {solid.mesh.name} is not there; it is not written")
            return
        visual = ElementTree.SubElement(self.elements_of[solid.body], "visual")
        _add_origin(visual, FramePose(rotation_matrix(solid.turns), np.array(solid.position)))
        geometry = ElementTree.SubElement(visual, "geometry")
        numbers = [number(float(x)) for x in solid.size]
        if solid.shape == "box":
            ElementTree.SubElement(geometry, "box", size=" ".join(numbers))
        elif solid.shape == "sphere":
            ElementTree.SubElement(geometry, "sphere", radius=numbers[0])
        elif solid.shape in ("cylinder", "capsule"):
            ElementTree.SubElement(geometry, "cylinder", radius=numbers[0], length=numbers[1])
        elif solid.mesh is not None:
            file = self.meshes.path(solid.mesh)
            ElementTree.SubElement(geometry, "mesh", filename=file, scale=" ".join(numbers))
        material = ElementTree.SubElement(visual, "material", name=colour(solid))
        ElementTree.SubElement(material, "color", rgba=rgba(colour(solid)))

    def _note_unwritten(self, link: Link) -> None:
        """What acts on a ball is not written: on its three hinges it would be something else."""
        if [p.kind for p in link.chain] == ["ball"] and link.chain[0].freedom != Freedom():
            self.notes.append(f"joint {link.chain[0].name}: limits, and what acts on it, have no place in URDF")

    def _floating(self, name: str, frame: FramePose) -> dict[str, Any]:
        """Where the coordinates of a floating joint are counted from, and what acts on them."""
        kind, content = JOINT_KINDS["free"], dict[str, Any]()
        if frame.position.any():
            content["at"] = [literal(x, units.LENGTH) for x in frame.position]
        if frame.is_turned:
            angles = constant_angles(frame.rotation)
            content["turn"] = [{axis: literal(angle, units.ANGLE)} for axis, angle in angles.items()]
        freedoms = self.mechanism.joint(name).freedoms
        if written := self.elements.freedoms(kind.velocities, kind.angular, freedoms):
            content["freedoms"] = written
        return content

    def _joint(
        self,
        name: str,
        kind: str,
        parent: str,
        child: str,
        start: FramePose,
        axis: np.ndarray,
        primitive: Primitive | None,
        is_coupled: bool,
    ) -> str:
        """Append a joint; its name in the URDF."""
        word = self._named(name)
        if kind in ("revolute", "prismatic"):
            self.names[name] = word
        freedom = Freedom() if primitive is None else primitive.freedom
        ends = np.isfinite([freedom.lower, freedom.upper])
        has_limits = kind in ("revolute", "prismatic") and freedom.limit == "stop" and bool(ends.all())
        joint = ElementTree.SubElement(
            self.robot, "joint", name=word, type="continuous" if kind == "revolute" and not has_limits else kind
        )
        _add_origin(joint, start)
        ElementTree.SubElement(joint, "parent", link=parent)
        ElementTree.SubElement(joint, "child", link=child)
        if kind in ("revolute", "prismatic"):
            ElementTree.SubElement(joint, "axis", xyz=_numbers(axis))
        if primitive is None:
            return word  # floating, or one of three hinges for a ball: nothing can act on it
        offset = 0.0 if is_coupled else float(primitive.reference[0])
        turns = primitive.kind == "hinge"
        if offset:
            self.offsets[word] = literal(-offset, units.ANGLE if turns else units.LENGTH)
        limits = {"effort": "0", "velocity": _number(freedom.speed if np.isfinite(freedom.speed) else 0.0)}
        if has_limits:
            limits |= {"lower": _number(freedom.lower - offset), "upper": _number(freedom.upper - offset)}
        if has_limits or np.isfinite(freedom.speed) or kind == "prismatic":
            ElementTree.SubElement(joint, "limit", limits)
        beside = replace(freedom, speed=np.inf)  # URDF says it
        if has_limits:
            beside = replace(beside, lower=-np.inf, upper=np.inf)
        if content := self.elements.freedom(beside, turns):
            self.joints[word] = content
        return word

    def _mimics(self) -> None:
        """Couplings of two coordinates as ``<mimic>``, those of more in the side file."""
        value = self.mechanism.value
        elements = {element.get("name"): element for element in self.robot.findall("joint")}
        for coupling in self.mechanism.couplings:
            if len(coupling.terms) != 2:
                self.couplings[self._named(coupling.name)] = self.elements.coupling(coupling)
                continue
            (first, a), (second, b) = ((name, value(ratio)) for name, ratio in coupling.terms)
            ElementTree.SubElement(
                elements[self.names[first]],
                "mimic",
                joint=self.names[second],
                multiplier=_number(-b / a),
                offset=_number(value(coupling.offset) / a),
            )

    # Side file

    def _closure(self, closure: Closure) -> tuple[tuple[str, str], str]:
        """The two frames of a loop, each a massless link with z along the axis, and the type of the loop."""
        along, _ = Rotation.align_vectors([closure.axis], [[0.0, 0.0, 1.0]])
        turn = FramePose(np.round(along.as_matrix(), 15) + 0.0, np.zeros(3))
        frames = []
        for end, (link, pose) in (("A", closure.first), ("B", closure.second)):
            frame = self._named(f"{closure.name}.{end}")
            ElementTree.SubElement(self.robot, "link", name=frame)
            joint = ElementTree.SubElement(
                self.robot, "joint", name=self._named(f"{closure.name}.{end}.fixed"), type="fixed"
            )
            _add_origin(joint, pose @ turn)
            ElementTree.SubElement(joint, "parent", link=self.links[link])
            ElementTree.SubElement(joint, "child", link=frame)
            frames.append(frame)
        self._cut(closure.kind, *frames)
        return (frames[0], frames[1]), _TYPES.get(closure.kind, closure.kind)

    def _cut(self, kind: str, parent: str, child: str) -> None:
        """The same loop as the element that is proposed for URDF (`urdf_cut_elements`), which others skip."""
        if kind not in CUT_TYPES:
            return
        name = f"{identifier(parent)}_to_{identifier(child)}"
        element = ElementTree.SubElement(self.robot, CUT, name=name, type=CUT_TYPES[kind])
        for side, link in (("parent", parent), ("child", child)):
            ElementTree.SubElement(element, side, link=link)
            ElementTree.SubElement(element, f"{side}_origin", xyz="0 0 0", rpy="0 0 0")
            ElementTree.SubElement(element, f"{side}_axis", xyz="0 0 1")

    def _platform(self) -> dict[str, Any]:
        platform = self.mechanism.platform
        tool = self.elements.pose(platform.tool)
        content: dict[str, Any] = {"body": self.links[platform.body]}
        if tool:
            content["tool"] = tool
        known = [self.names.get(name) for name in platform.independent]
        independent = [name for name in known if name is not None]
        if len(independent) < len(known):
            self.notes.append("the independent coordinates are not written: some have no counterpart in URDF")
        elif independent:
            content["independent"] = independent
        return content


def _add_origin(element: ElementTree.Element, pose: FramePose) -> None:
    """URDF's origin: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    if pose.is_identity:
        return
    angles = constant_angles(pose.rotation)
    rpy = [angles.get("x", 0.0), angles.get("y", 0.0), angles.get("z", 0.0)]
    ElementTree.SubElement(element, "origin", xyz=_numbers(pose.position), rpy=_numbers(rpy))


def _add_inertial(link: ElementTree.Element, mass: LinkInertia) -> None:
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_numbers(mass.center), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=_number(mass.mass))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = mass.about_center
    moments = {"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}
    ElementTree.SubElement(inertial, "inertia", {name: _number(moment) for name, moment in moments.items()})


def _number(value: float) -> str:
    return number(value + 0.0)


def _numbers(values: np.ndarray | Sequence[float]) -> str:
    return " ".join(_number(value) for value in values)
