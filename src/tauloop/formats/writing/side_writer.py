"""Base of writers for formats that need a side file: names, and the side file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np
import yaml

from tauloop.common.files import write_text
from tauloop.common.records import dataclass
from tauloop.formats.format import Written
from tauloop.formats.urdf.parts import identifier, roll_pitch_yaw
from tauloop.formats.writing.element_writer import ElementWriter
from tauloop.formats.writing.expression_writer import literal, number
from tauloop.formats.writing.side_grammar import SIDE_FORMAT
from tauloop.formats.xml.meshes import MeshCopies
from tauloop.mechanism.description import units
from tauloop.mechanism.description.grammar import OMISSIONS
from tauloop.mechanism.links.rigid_tree import Tree, constant_angles
from tauloop.mechanism.model import BASE, JOINT_KINDS, Actuator, Freedom, Mechanism
from tauloop.mechanism.poses import FramePose
from tauloop.mechanism.solids.primitives import Primitive


@dataclass(frozen=True, slots=True, kw_only=True)
class WithSideFile:
    """A file in a format of another tool, and its side file.

    Attributes:
        text, side: texts of the two files.
        names: names in the file by the mechanism's names (bodies, scalar coordinates, parts of
            rods, actuators).
        meshes: the mesh files to which the file refers.
        notes: differences from the mechanism, each in one sentence.
    """

    text: str
    side: str
    names: dict[str, str]
    meshes: MeshCopies
    notes: tuple[str, ...]

    def write(self, path: Path) -> Written:
        """Write the file, its side file and its meshes; each gets its final name when complete.

        Returns:
            The written files, with notes.

        Raises:
            InputError: a file cannot be written.
        """
        meshes = self.meshes.write(path.parent)
        side = side_path(path)
        write_text(side, self.side)
        write_text(path, self.text)
        return Written(files=(path, side, *meshes), notes=self.notes, side=side, names=self.names)


def side_path(path: Path) -> Path:
    """Return the path of the side file of a file: ``arm.urdf.side.yaml`` next to ``arm.urdf``."""
    return path.with_name(f"{path.name}.side.yaml")


def rigid_notes(mechanism: Mechanism, form: str) -> list[str]:
    """Return a note that elastic data is not written; empty if the machine has no elastic data.

    Args:
        mechanism: the machine.
        form: name of the format.
    """
    if not mechanism.has_elastic_data:
        return []
    return [
        f"elastic data (sections, materials, stiffnesses, damping) are not written, because {form} "
        f"describes a rigid machine"
    ]


@dataclass(slots=True)
class SideWriter:
    """Base class of writers with a side file; subclasses write links and joints.

    Attributes:
        form: name of the format in notes.
        mechanism, tree, meshes: the machine, its tree of rigid links, and its mesh files.
        notes: differences from the mechanism.
        links, names, motors: names in the file of bodies, coordinates and actuators.
        used_names: names that are used in the file.
        elements_of: XML elements of the bodies.
    """

    form: ClassVar[str]
    mechanism: Mechanism
    tree: Tree
    meshes: MeshCopies
    notes: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=lambda: {BASE: BASE})
    names: dict[str, str] = field(default_factory=dict)
    motors: dict[str, str] = field(default_factory=dict)
    used_names: set[str] = field(default_factory=lambda: {BASE})
    elements_of: dict[str, ElementTree.Element] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Add the notes that apply to all such formats."""
        self.notes += ["parameters are written as numbers", *self.tree.notes]
        driven = [
            actuator.name for actuator in self.mechanism.actuators if actuator.drive is not None
        ]
        self.notes += [
            f"actuator {name}: its drive line cannot be represented in {self.form}"
            for name in driven
        ]
        self.notes += rigid_notes(self.mechanism, self.form)

    @property
    def elements(self) -> ElementWriter:
        """Writer of side-file elements at nominal values."""
        value = self.mechanism.value
        return ElementWriter(
            mechanism=self.mechanism,
            text=lambda expression, dimension: literal(value(expression), dimension),
            names=self.names,
        )

    def named(self, name: str) -> str:
        """Return a name in the file for a name of the mechanism; unchanged if possible."""
        name_in_file = identifier(name)
        while name_in_file in self.used_names:
            name_in_file += "_"
        self.used_names.add(name_in_file)
        return name_in_file

    def name_free(self, name: str, word: str) -> None:
        """Register the names of a free joint's coordinates and velocities by the joint's name."""
        kind = JOINT_KINDS["free"]
        self.names |= {
            f"{name}.{part}": f"{word}.{part}" for part in (*kind.coordinates, *kind.velocities)
        }

    def name_ball(self, name: str, word: str) -> None:
        """Register the names of a ball joint's coordinates and velocities by the joint's name."""
        kind = JOINT_KINDS["spherical"]
        self.names |= {
            f"{name}.{part}": f"{word}.{part}" for part in (*kind.coordinates, *kind.velocities)
        }

    def ball(self, primitive: Primitive) -> dict[str, Any]:
        """Return a ball joint's orientation at the file's pose, losses, springs and limits."""
        kind = JOINT_KINDS["spherical"]
        content = dict[str, Any]()
        start = primitive.pose()
        if start.is_turned:
            content["start"] = _rotations(start)
        if primitive.is_reversed:
            content["reversed"] = "yes"
        if written := self.elements.freedoms(
            kind.velocities, kind.angular, self._ball_freedoms(primitive)
        ):
            content["freedoms"] = written
        return content

    def _ball_freedoms(self, primitive: Primitive) -> tuple[Freedom, ...]:
        """Return the `Freedom` of each of the three velocities of a ball."""
        joint = self.mechanism.joint(primitive.velocities[0].rpartition(".")[0])
        return joint.freedoms[-3:]

    def floating(self, name: str, frame: FramePose) -> dict[str, Any]:
        """Return the reference frame of a floating joint's coordinates, with its freedoms."""
        kind = JOINT_KINDS["free"]
        content = dict[str, Any]()
        if frame.position.any():
            content["at"] = [literal(x, units.LENGTH) for x in frame.position]
        if frame.is_turned:
            content["turn"] = _rotations(frame)
        if written := self.elements.freedoms(
            kind.velocities, kind.angular, self.mechanism.joint(name).freedoms
        ):
            content["freedoms"] = written
        return content

    def finished(self, text: str, sections: dict[str, Any]) -> WithSideFile:
        """Return both texts; `sections` follow the first sections of the side file."""
        mechanism = self.mechanism
        elements = self.elements
        omissions = {key.name: getattr(mechanism, key.name) for key in OMISSIONS}
        source = f"written from the machine {mechanism.name}"
        side: dict[str, Any] = {
            "format": SIDE_FORMAT,
            "provenance": {"status": "given", "source": source},
            **{key: list(texts) for key, texts in omissions.items() if texts},
            "gravity": elements.vector(mechanism.gravity, units.ACCELERATION),
            "platform": self._platform(),
        }
        side |= {key: section for key, section in sections.items() if section}
        if mechanism.losses:
            losses = mechanism.losses
            side["losses"] = {self.named(loss.name): elements.loss(loss) for loss in losses}
        self.name_motors()
        if not mechanism.unstated_motors:  # an empty section would state that there are no motors
            side["actuators"] = {
                self.motors[actuator.name]: elements.actuator(replace(actuator, stiffness=None))
                for actuator in mechanism.actuators
            }
        self._note_renamed()
        return WithSideFile(
            text=text,
            side=yaml.safe_dump(side, sort_keys=False, default_flow_style=None, width=120),
            names=self.motors | self.names | self.links,
            meshes=self.meshes,
            notes=tuple(self.notes),
        )

    def name_motors(self) -> None:
        """Name the actuators in the file after the joints have their names."""
        if not self.motors:
            self.motors = {
                actuator.name: self._motor(actuator) for actuator in self.mechanism.actuators
            }

    def effort(self, coordinate: str) -> float:
        """Return the largest force of the motors on a joint: zero without motors.

        The force is infinite if a motor has no limit or also drives other joints.
        """
        total = 0.0
        for actuator in self.mechanism.actuators:
            ratio = dict(actuator.drives).get(coordinate)
            if ratio is None:
                continue
            if len(actuator.drives) == 1:
                total += actuator.force * abs(self.mechanism.value(ratio))
            else:
                total = np.inf
        return total

    def _motor(self, actuator: Actuator) -> str:
        """Return the name of an actuator; it may be the name of a coordinate that it drives."""
        is_joints = actuator.name in dict(actuator.drives) and actuator.name in self.names
        return self.names[actuator.name] if is_joints else self.named(actuator.name)

    def _note_renamed(self) -> None:
        """Add a note on renamed elements; channels of logs have the names in the file."""
        kinds = {"body": self.links, "coordinate": self.names, "actuator": self.motors}
        pairs = [
            f"{kind} {name} to {name_in_file}"
            for kind, names in kinds.items()
            for name, name_in_file in names.items()
            if name != name_in_file
        ]
        if pairs:
            self.notes.append(f"renamed, which also affects channels of logs: {', '.join(pairs)}")

    def _platform(self) -> dict[str, Any]:
        """Return the keys of the platform.

        Independent coordinates that cannot be written are noted.
        """
        platform = self.mechanism.platform
        content: dict[str, Any] = {"body": self.links[platform.body]}
        if tool := self.elements.pose(platform.tool):
            content["tool"] = tool
        if platform.payload:
            content["payload"] = f"{platform.payload!r} kg"
        known = [self.names.get(name) for name in platform.independent]
        if None in known:
            self.notes.append(
                "the independent coordinates are not written: "
                f"some have no counterpart in {self.form}"
            )
        elif known:
            content["independent"] = known
        return content


def _rotations(pose: FramePose) -> list[dict[str, str]]:
    """Return the rotations of a pose in side-file form."""
    return [
        {axis: literal(angle, units.ANGLE)}
        for axis, angle in constant_angles(pose.rotation).items()
    ]


def angles_of(pose: FramePose) -> list[float]:
    """Return roll, pitch and yaw of a pose, R = Rz(yaw) Ry(pitch) Rx(roll)."""
    return [*roll_pitch_yaw(pose)]


def moments_of(tensor: np.ndarray) -> dict[str, str]:
    """Return the entries of an inertia (3, 3) by name; URDF and SDF have the same names."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = tensor
    moments = {"ixx": xx, "ixy": xy, "ixz": xz, "iyy": yy, "iyz": yz, "izz": zz}
    return {name: signless(moment) for name, moment in moments.items()}


def signless(value: float) -> str:
    """Return a number as text; zero is written without a sign."""
    return number(value + 0.0)


def in_line(values: np.ndarray | Sequence[float]) -> str:
    """Return numbers as text, separated by spaces."""
    return " ".join(signless(value) for value in values)
