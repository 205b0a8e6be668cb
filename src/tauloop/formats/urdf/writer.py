"""Conversion of a `Mechanism` to a URDF tree with a side file, at its nominal parameters.

The side file contains properties that URDF lacks (`formats.urdf.side_files`). All joints of the
URDF are at zero at the machine's start; ``offsets`` in the side file restore the coordinates. Names
are preserved, including dots, if they are unique among links, joints and motors. The keys
``closed_loop`` and ``type`` have the form of Gepetto's robot.yaml, with further kinds of joints in
addition to ``3d`` and ``6d``. The URDF contains the same loops as ``<constraint>``, an element that
is proposed for URDF, if this element supports their kind; a reader of both files uses each loop
once. Motors are in the URDF as ``<ros2_control>`` with transmissions, if these support them. Joints
with several degrees of freedom become chains of massless links.
"""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from tauloop.common.errors import DescriptionError
from tauloop.common.records import dataclass
from tauloop.formats.urdf.cut_elements import CONSTRAINT_TAG, CONSTRAINT_TYPES
from tauloop.formats.urdf.parts import UNLIMITED, StatedMotor, identifier
from tauloop.formats.urdf.transmission_writer import add_ros2_control
from tauloop.formats.writing.expression_writer import literal, number
from tauloop.formats.writing.side_writer import (
    SideWriter,
    WithSideFile,
    angles_of,
    in_line,
    moments_of,
    signless,
)
from tauloop.formats.xml.meshes import MeshCopies
from tauloop.mechanism.description import units
from tauloop.mechanism.links.rigid_tree import Closure, Link, LinkInertia, rigid_tree
from tauloop.mechanism.model import BASE, Freedom, Mechanism
from tauloop.mechanism.poses import IDENTITY, FramePose, rotation_matrix, shortest_turn
from tauloop.mechanism.solids.primitives import Primitive
from tauloop.mechanism.solids.solid import Solid, color_of, rgba

_URDF_CLOSURE_KINDS = ("spherical", "revolute", "prismatic", "cylindrical", "planar", "fixed")
_CLOSURE_TYPES = {"spherical": "3d", "fixed": "6d"}
_BALL_HINGES = (("x", np.eye(3)[0]), ("y", np.eye(3)[1]), ("z", np.eye(3)[2]))


def to_urdf(mechanism: Mechanism, meshes: str = "meshes") -> WithSideFile:
    """Return the texts of a URDF and of its side file.

    Args:
        mechanism: any mechanism.
        meshes: mesh folder, relative to the URDF.

    Raises:
        DescriptionError: rigid links and ideal joints cannot represent the mechanism (see
            `mechanism.links.rigid_tree`).
    """
    return _UrdfWriter(
        mechanism, rigid_tree(mechanism, _URDF_CLOSURE_KINDS, DescriptionError), MeshCopies(meshes)
    ).write()


def write_urdf(mechanism: Mechanism, path: str | Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write a URDF with ``NAME.urdf.side.yaml`` and meshes in ``NAME_meshes`` next to it.

    Each file gets its final name when it is complete.

    Returns:
        Paths of the side file and the meshes, and the differences from the mechanism.

    Raises:
        DescriptionError: as for `to_urdf`.
        InputError: a file cannot be written.
    """
    written = to_urdf(mechanism, f"{Path(path).stem}_meshes").write(Path(path))
    return written.files[1:], written.notes


@dataclass(slots=True)
class _UrdfWriter(SideWriter):
    """Writer of one machine.

    Attributes:
        offsets: offsets of the joints' coordinates, as text for the side file.
        joint_offsets: the same offsets as numbers, SI.
        joints, floats, couplings: sections of the side file.
        robot: root element of the URDF.
    """

    form: ClassVar[str] = "URDF"
    offsets: dict[str, str] = field(default_factory=dict)
    joint_offsets: dict[str, float] = field(default_factory=dict)
    joints: dict[str, Any] = field(default_factory=dict)
    floats: dict[str, Any] = field(default_factory=dict)
    couplings: dict[str, Any] = field(default_factory=dict)
    robot: ElementTree.Element = field(default_factory=lambda: ElementTree.Element("robot"))

    def write(self) -> WithSideFile:
        mechanism = self.mechanism
        self.robot.set("name", identifier(mechanism.name.replace(".", "_")))
        self.elements_of[BASE] = ElementTree.SubElement(self.robot, "link", name=BASE)
        coupled = {name for coupling in mechanism.couplings for name in coupling.coordinates}
        for link in self.tree.links:
            self._link(link, coupled)
        for solid in mechanism.solids:
            self._solid(solid)
        self._mimics()
        loops = [self._closure(closure) for closure in self.tree.closures]
        self._add_motors()
        sections = {
            "closed_loop": [list(frames) for frames, _ in loops],
            "type": [kind for _, kind in loops],
        }
        sections |= {"offsets": self.offsets, "joints": self.joints}
        sections |= {"floating": self.floats, "couplings": self.couplings}
        ElementTree.indent(self.robot)
        return self.finished(ElementTree.tostring(self.robot, encoding="unicode") + "\n", sections)

    # Links and joints

    def _link(self, link: Link, coupled: set[str]) -> None:
        """Add a link with its chain of joints.

        A massless link is added between two joints and before a rotated frame.
        """
        parent, pose, chain, frame = self.links[link.parent], link.at, list(link.chain), link.at
        self._note_omitted_ball_loads(link)
        steps: list[tuple[FramePose, str, str, Primitive | None, np.ndarray]] = []
        if [primitive.kind for primitive in chain] == ["slide", "slide", "slide", "ball"]:
            joint = chain[-1].name.removesuffix(".turn")
            for primitive in chain:
                pose = pose @ primitive.pose()
            steps.append((pose, joint, "floating", None, np.zeros(3)))
            chain, pose = [], IDENTITY
        for primitive in chain:
            if primitive.kind == "ball":
                self.notes.append(
                    f"joint {primitive.name}: "
                    "URDF has no ball joint; three hinges about x, y and z replace it"
                )
                pose = pose @ primitive.pose()
                for suffix, hinge_axis in _BALL_HINGES:
                    steps.append((pose, f"{primitive.name}.{suffix}", "revolute", None, hinge_axis))
                    pose = IDENTITY
                continue
            kind = "revolute" if primitive.kind == "hinge" else "prismatic"
            start = pose if primitive.name in coupled else pose @ primitive.pose()
            steps.append((start, primitive.name, kind, primitive, primitive.axis))
            pose = IDENTITY
        if not steps or not link.frame.is_identity:
            steps.append((pose @ link.frame, f"{link.name}.fixed", "fixed", None, np.zeros(3)))
        for index, (start, name, kind, primitive_or_none, axis) in enumerate(steps):
            is_last = index == len(steps) - 1
            child = self.named(link.name if is_last else f"{link.name}.{index + 1}")
            if is_last:
                self.links[link.name] = child
            element = ElementTree.SubElement(self.robot, "link", name=child)
            if is_last:
                self.elements_of[link.name] = element
            if is_last and link.mass is not None:
                _add_inertial(element, link.mass)
            suffix = self._joint(
                name,
                kind,
                parent,
                child,
                start,
                axis,
                primitive_or_none,
                primitive_or_none is not None and name in coupled,
            )
            if kind == "floating":
                self.floats[suffix] = self.floating(name, frame)
                self.name_free(name, suffix)
            parent = child

    def _solid(self, solid: Solid) -> None:
        """Add the solid of a link; URDF has no capsules and supports only mesh files."""
        if solid.body not in self.elements_of:
            self.notes.append(
                f"solid on {solid.body}: "
                "it is not written, since its link has no mass and is not a body"
            )
            return
        if isinstance(solid.mesh, Path) and not solid.mesh.is_file():
            self.notes.append(
                f"solid on {solid.body}: {solid.mesh.name} does not exist; it is not written"
            )
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
        material = ElementTree.SubElement(visual, "material", name=color_of(solid))
        ElementTree.SubElement(material, "color", rgba=rgba(color_of(solid)))

    def _note_omitted_ball_loads(self, link: Link) -> None:
        """Add a note if limits, losses or springs of a ball joint are omitted.

        They would act differently on the hinges that replace the ball joint.
        """
        if [primitive.kind for primitive in link.chain] != ["ball"]:
            return
        ball = link.chain[0]
        if any(freedom != Freedom() for freedom in self._ball_freedoms(ball)):
            self.notes.append(
                f"joint {ball.name}: its limits, losses and springs cannot be represented in URDF"
            )

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
        """Add a joint and return its name in the URDF."""
        name_in_file = self.named(name)
        if kind in ("revolute", "prismatic"):
            self.names[name] = name_in_file
        freedom = Freedom() if primitive is None else primitive.freedom
        is_bounded = np.isfinite([freedom.lower, freedom.upper])
        has_limits = (
            kind in ("revolute", "prismatic") and freedom.limit == "stop" and bool(is_bounded.all())
        )
        joint = ElementTree.SubElement(
            self.robot,
            "joint",
            name=name_in_file,
            type="continuous" if kind == "revolute" and not has_limits else kind,
        )
        _add_origin(joint, start)
        ElementTree.SubElement(joint, "parent", link=parent)
        ElementTree.SubElement(joint, "child", link=child)
        if kind in ("revolute", "prismatic"):
            ElementTree.SubElement(joint, "axis", xyz=in_line(axis))
        if primitive is None:
            return (
                name_in_file  # floating, or one of a ball's hinges, which have no limits and losses
            )
        offset = 0.0 if is_coupled else float(primitive.reference[0])
        is_angular = primitive.kind == "hinge"
        if offset:
            self.offsets[name_in_file] = literal(
                -offset, units.ANGLE if is_angular else units.LENGTH
            )
            self.joint_offsets[name_in_file] = -offset
        effort = self.effort(primitive.name)
        limits = {
            "effort": signless(min(effort, UNLIMITED)),
            # a zero limit would prevent motion of the joint
            "velocity": signless(min(freedom.speed, UNLIMITED)),
        }
        if has_limits:
            limits |= {
                "lower": signless(freedom.lower - offset),
                "upper": signless(freedom.upper - offset),
            }
        if has_limits or np.isfinite(freedom.speed) or kind == "prismatic" or 0.0 < effort < np.inf:
            ElementTree.SubElement(joint, "limit", limits)
        in_side_file = replace(freedom, speed=np.inf)  # the speed is in the URDF
        if has_limits:
            in_side_file = replace(in_side_file, lower=-np.inf, upper=np.inf)
        if content := self.elements.freedom(in_side_file, is_angular):
            self.joints[name_in_file] = content
        return name_in_file

    def _mimics(self) -> None:
        """Write couplings of two joints as ``<mimic>``, and all others into the side file."""
        value = self.mechanism.value
        elements = {element.get("name"): element for element in self.robot.findall("joint")}
        for coupling in self.mechanism.couplings:
            is_gear = len(coupling.terms) == 2 and not coupling.curves
            if not is_gear or any(self.names[name] not in elements for name, _ in coupling.terms):
                self.couplings[self.named(coupling.name)] = self.elements.coupling(coupling)
                continue
            first, second = (name for name, _ in coupling.terms)
            first_ratio, second_ratio = (value(ratio) for _, ratio in coupling.terms)
            ElementTree.SubElement(
                elements[self.names[first]],
                "mimic",
                joint=self.names[second],
                multiplier=signless(-second_ratio / first_ratio),
                offset=signless(value(coupling.offset) / first_ratio),
            )

    def _add_motors(self) -> None:
        """Add motors as ``<ros2_control>``; other motors are only in the side file."""
        self.name_motors()
        value = self.mechanism.value
        joints = {element.get("name") for element in self.robot.findall("joint")}
        motors: list[StatedMotor] = []
        positions: dict[str, float] = {}
        only_in_side_file: list[str] = []
        for actuator in self.mechanism.actuators:
            drives = tuple(
                (self.names.get(name, ""), value(ratio)) for name, ratio in actuator.drives
            )
            if all(name in joints for name, _ in drives):
                motors.append(StatedMotor(name=self.motors[actuator.name], drives=drives))
                positions[self.motors[actuator.name]] = value(actuator.offset)
            else:
                only_in_side_file.append(self.motors[actuator.name])
        only_in_side_file += add_ros2_control(self.robot, motors, self.joint_offsets, positions)
        if only_in_side_file:
            self.notes.append(
                f"motors that are only in the side file: {', '.join(only_in_side_file)}"
            )

    # Side file

    def _closure(self, closure: Closure) -> tuple[tuple[str, str], str]:
        """Add massless links as the two frames of a loop, with z along its axis.

        Returns:
            The names of the two links, and the type of the loop.
        """
        rotation = shortest_turn(np.asarray(closure.axis, dtype=float))
        alignment = FramePose(np.round(rotation, 15) + 0.0, np.zeros(3))
        frames = []
        for suffix, (link, pose) in (("A", closure.first), ("B", closure.second)):
            frame = self.named(f"{closure.name}.{suffix}")
            ElementTree.SubElement(self.robot, "link", name=frame)
            joint = ElementTree.SubElement(
                self.robot, "joint", name=self.named(f"{closure.name}.{suffix}.fixed"), type="fixed"
            )
            _add_origin(joint, pose @ alignment)
            ElementTree.SubElement(joint, "parent", link=self.links[link])
            ElementTree.SubElement(joint, "child", link=frame)
            frames.append(frame)
        self._add_constraint(closure.kind, *frames)
        return (frames[0], frames[1]), _CLOSURE_TYPES.get(closure.kind, closure.kind)

    def _add_constraint(self, kind: str, parent: str, child: str) -> None:
        """Write the loop as the element proposed for URDF (`urdf.cut_elements`)."""
        if kind not in CONSTRAINT_TYPES:
            return
        name = f"{identifier(parent)}_to_{identifier(child)}"
        word = CONSTRAINT_TYPES[kind]
        element = ElementTree.SubElement(self.robot, CONSTRAINT_TAG, name=name, type=word)
        for side, link in (("parent", parent), ("child", child)):
            ElementTree.SubElement(element, side, link=link)
            ElementTree.SubElement(element, f"{side}_origin", xyz="0 0 0", rpy="0 0 0")
            ElementTree.SubElement(element, f"{side}_axis", xyz="0 0 1")


def _add_origin(element: ElementTree.Element, pose: FramePose) -> None:
    """Add URDF's origin: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    if pose.is_identity:
        return
    ElementTree.SubElement(
        element, "origin", xyz=in_line(pose.position), rpy=in_line(angles_of(pose))
    )


def _add_inertial(link: ElementTree.Element, mass: LinkInertia) -> None:
    """Add the inertia of a link."""
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=in_line(mass.center), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=signless(mass.mass))
    ElementTree.SubElement(inertial, "inertia", moments_of(mass.about_center))
