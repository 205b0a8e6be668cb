"""Conversion of a `Mechanism` to SDF for Gazebo with a side file, at its nominal parameters.

The side file contains properties that SDF cannot represent. The pose of the file is the machine's
start, where all joints are at zero; ``offsets`` in the side file restore the coordinates. Loops are
native: a link can be the child of several joints. Passive joints have zero effort. SDF has
universal and ball joints. Other joints with several degrees of freedom become chains of links; a
free joint becomes an element that only Tauloop reads. SDF has no massless links and rejects
impossible moments. Therefore intermediate links are written with 1e-9 kg and marked as massless,
and zero moments are written as the smallest accepted value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree

import numpy as np

from tauloop.common.errors import DescriptionError
from tauloop.common.records import dataclass
from tauloop.formats.sdf.model import CUT_TAG, FREE_TAG, MASSLESS_TAG
from tauloop.formats.sdf.nested import WORLD
from tauloop.formats.urdf.parts import identifier
from tauloop.formats.writing.expression_writer import literal
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
from tauloop.mechanism.poses import IDENTITY, FramePose, rotation_matrix
from tauloop.mechanism.solids.primitives import Primitive
from tauloop.mechanism.solids.solid import Solid, color_of, rgba

_SDF_CLOSURE_KINDS = ("spherical", "revolute", "prismatic", "universal", "fixed")
_SDF_TYPES = {"hinge": "revolute", "slide": "prismatic", "ball": "ball", "spherical": "ball"}
#: Mass written for a massless link, kg.
LIGHT_LINK_MASS = 1e-9
#: Moment of inertia written for a massless link, kg m^2.
LIGHT_LINK_MOMENT = 1e-12
#: Smallest written moment of inertia as a fraction of the body's largest moment.
MIN_MOMENT_FRACTION = 1e-9
#: Largest gap at which a loop counts as closed, characteristic lengths or rad.
LOOP_CLOSURE_TOLERANCE = 1e-9


def to_sdf(mechanism: Mechanism, meshes: str = "meshes") -> WithSideFile:
    """Return the texts of an SDF file and of its side file.

    Args:
        mechanism: any mechanism.
        meshes: mesh folder, relative to the file.

    Raises:
        DescriptionError: rigid links and ideal joints cannot represent the mechanism (see
            `mechanism.links.rigid_tree`), or its loops are not closed at its start.
    """
    return _SdfWriter(
        mechanism, rigid_tree(mechanism, _SDF_CLOSURE_KINDS, DescriptionError), MeshCopies(meshes)
    ).write()


def write_sdf(mechanism: Mechanism, path: str | Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write an SDF file with ``NAME.sdf.side.yaml`` and meshes in ``NAME_meshes`` next to it.

    Each file gets its final name when it is complete.

    Returns:
        Paths of the side file and the meshes, and the differences from the mechanism.

    Raises:
        DescriptionError: as for `to_sdf`.
        InputError: a file cannot be written.
    """
    written = to_sdf(mechanism, f"{Path(path).stem}_meshes").write(Path(path))
    return written.files[1:], written.notes


@dataclass(slots=True)
class _SdfWriter(SideWriter):
    """Writer of one machine.

    Attributes:
        poses: poses of the written links in the model.
        side: sections of the side file.
        model: element of the model.
    """

    form: ClassVar[str] = "SDF"
    poses: dict[str, FramePose] = field(default_factory=lambda: {BASE: IDENTITY})
    side: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: ElementTree.Element = field(default_factory=lambda: ElementTree.Element("model"))

    def write(self) -> WithSideFile:
        mechanism = self.mechanism
        self.used_names.add(WORLD)
        root = ElementTree.Element(
            "sdf", {"version": "1.9", "xmlns:tauloop": "https://tauloop.invalid/sdf"}
        )
        world = ElementTree.SubElement(root, "world", name="default")
        _add_text_element(
            world, "gravity", in_line([mechanism.value(x) for x in mechanism.gravity])
        )
        world.append(self.model)
        self.model.set("name", identifier(mechanism.name.replace(".", "_")))
        self._base()
        for link in self.tree.links:
            self._link(link)
        for closure in self.tree.closures:
            self._closure(closure)
        for solid in mechanism.solids:
            self._solid(solid)
        for coupling in mechanism.couplings:
            self._add_to_side_file(
                "couplings", self.named(coupling.name), self.elements.coupling(coupling)
            )
        ElementTree.indent(root)
        text = '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
        return self.finished(text, dict(self.side))

    @property
    def referenced_coordinates(self) -> set[str]:
        """Coordinates to which motors, gears, losses, outputs and the platform refer."""
        m = self.mechanism
        driven = {name for actuator in m.actuators for name, _ in actuator.drives}
        return driven | m.combined | set(m.platform.independent)

    def _add_to_side_file(self, section: str, name: str, content: Any) -> None:
        if content:
            self.side.setdefault(section, {})[name] = content

    # Links and joints

    def _base(self) -> None:
        """Add the immovable base as a link, because joints and solids must be on links."""
        link = ElementTree.SubElement(self.model, "link", name=BASE)
        self.elements_of[BASE] = link
        joint = ElementTree.SubElement(
            self.model, "joint", name=self.named(f"{BASE}_to_world"), type="fixed"
        )
        _add_text_element(joint, "parent", WORLD)
        _add_text_element(joint, "child", BASE)

    def _link(self, link: Link) -> None:
        """Add a link with its joint; a chain of joints has light links in between."""
        pose, chain = link.at, list(link.chain)
        kinds = [primitive.kind for primitive in chain]
        if kinds == ["slide", "slide", "slide", "ball"]:
            is_plain = link.frame.is_identity
            name = link.name if is_plain else f"{link.name}.1"
            for primitive in chain:
                pose = pose @ primitive.pose()
            self._add_link(name, link.parent, pose, link.mass if is_plain else None)
            self._free_joint(link, name, chain[-1].name.removesuffix(".turn"))
            if not is_plain:
                self._add_link(link.name, name, link.frame, link.mass)
                self._joint(link, [], self.links[name], self.links[link.name], IDENTITY)
            return
        is_universal = kinds == ["hinge", "hinge"] and _is_ideal_universal_joint(chain)
        if is_universal and not self.referenced_coordinates.isdisjoint(
            primitive.name for primitive in chain
        ):
            is_universal = False  # separate hinges keep the names of their coordinates
        groups = [chain] if is_universal else [[primitive] for primitive in chain]
        parent = link.parent
        for index, group in enumerate(groups or [[]]):
            is_last = index == max(len(groups) - 1, 0)
            name = link.name if is_last else f"{link.name}.{index + 1}"
            for primitive in group:
                pose = pose @ primitive.pose()
            tail = link.frame if is_last else IDENTITY
            self._add_link(name, parent, pose @ tail, link.mass if is_last else None)
            self._joint(link, group, self.links[parent], self.links[name], tail.inverse())
            parent, pose = name, IDENTITY

    def _add_link(self, name: str, parent: str, pose: FramePose, mass: LinkInertia | None) -> None:
        element = ElementTree.SubElement(self.model, "link", name=self.named(name))
        self.links[name] = element.attrib["name"]
        self.elements_of[name], self.poses[name] = element, self.poses[parent] @ pose
        _add_pose(element, pose, self.links[parent])
        self._inertial(name, element, mass)

    def _inertial(self, name: str, element: ElementTree.Element, link: LinkInertia | None) -> None:
        if link is None:
            ElementTree.SubElement(element, MASSLESS_TAG)
            link = LinkInertia(
                mass=LIGHT_LINK_MASS, center=np.zeros(3), about_center=np.eye(3) * LIGHT_LINK_MOMENT
            )
        mass = link.mass
        if mass <= 0.0:
            mass = LIGHT_LINK_MASS
            self.notes.append(
                f"body {name}: SDF rejects zero mass; {LIGHT_LINK_MASS:g} kg is written"
            )
        moments, axes = np.linalg.eigh(link.about_center)
        smallest = max(LIGHT_LINK_MOMENT, MIN_MOMENT_FRACTION * float(moments[-1]))
        inertia = link.about_center
        if moments[0] < smallest or moments[0] + moments[1] < moments[2]:
            moments = np.maximum(moments, smallest)
            moments[1] = max(moments[1], moments[2] - moments[0] + smallest)
            inertia = axes @ np.diag(moments) @ axes.T
            change = float(np.abs(inertia - link.about_center).max())
            self.notes.append(
                f"body {name}: SDF rejects its inertia; {change:.2g} kg m^2 are added to a moment"
            )
        inertial = ElementTree.SubElement(element, "inertial")
        _add_pose(inertial, FramePose(np.eye(3), link.center))
        _add_text_element(inertial, "mass", signless(mass))
        tensor = ElementTree.SubElement(inertial, "inertia")
        for key, moment in moments_of(inertia).items():
            _add_text_element(tensor, key, moment)

    def _joint(
        self, link: Link, primitives: Sequence[Primitive], parent: str, child: str, frame: FramePose
    ) -> None:
        """Add a joint.

        Args:
            link: link to which the joint leads.
            primitives: primitive joints that the joint combines; empty for a fixed joint.
            parent: name of the parent in the file.
            child: name of the child in the file.
            frame: frame of the joint after the motion, relative to the child.
        """
        if not primitives:
            kind, name = "fixed", f"{link.name}.fixed"
        elif len(primitives) == 1:
            kind, name = _SDF_TYPES[primitives[0].kind], primitives[0].name
        else:
            kind, name = "universal", f"{link.name}.universal"
        if kind == "revolute" and not _is_limited(primitives[0].freedom):
            kind = "continuous"
        joint = ElementTree.SubElement(self.model, "joint", name=self.named(name), type=kind)
        _add_pose(joint, frame)
        _add_text_element(joint, "parent", parent)
        _add_text_element(joint, "child", child)
        if len(primitives) == 2:
            # the first axis, which is fixed to the parent, after both motions
            for tag, axis in (
                ("axis", primitives[1].pose().rotation.T @ primitives[0].axis),
                ("axis2", primitives[1].axis),
            ):
                _add_text_element(_add_axis(joint, axis, tag), "effort", "0", "limit")
        elif kind == "ball":
            self._add_to_side_file("balls", joint.attrib["name"], self.ball(primitives[0]))
            self.name_ball(primitives[0].velocities[0].rpartition(".")[0], joint.attrib["name"])
        elif primitives:
            self._freedom(joint, primitives[0])

    def _freedom(self, joint: ElementTree.Element, primitive: Primitive) -> None:
        """Add axis, limits and effort of a scalar joint; other properties go to the side file."""
        name_in_file, freedom, is_angular = (
            joint.attrib["name"],
            primitive.freedom,
            primitive.kind == "hinge",
        )
        self.names[primitive.name] = name_in_file
        offset = float(primitive.reference[0])
        if offset:
            self._add_to_side_file(
                "offsets",
                name_in_file,
                literal(-offset, units.ANGLE if is_angular else units.LENGTH),
            )
        axis = _add_axis(joint, primitive.axis)
        if _is_limited(freedom):
            _add_text_element(axis, "lower", signless(freedom.lower - offset), "limit")
            _add_text_element(axis, "upper", signless(freedom.upper - offset), "limit")
            freedom = replace(freedom, lower=-np.inf, upper=np.inf)
        effort = self.effort(primitive.name)
        _add_text_element(
            axis, "effort", signless(effort) if np.isfinite(effort) else "-1", "limit"
        )
        if np.isfinite(freedom.speed):
            _add_text_element(axis, "velocity", signless(freedom.speed), "limit")
            freedom = replace(freedom, speed=np.inf)
        if content := self.elements.freedom(freedom, is_angular):
            self._add_to_side_file("joints", name_in_file, content)

    def _free_joint(self, link: Link, child: str, name: str) -> None:
        """Add the element for a free joint, which only Tauloop reads."""
        name_in_file = self.named(name)
        attributes = {
            "name": name_in_file,
            "parent": self.links[link.parent],
            "child": self.links[child],
        }
        ElementTree.SubElement(self.model, FREE_TAG, attributes)
        self.side.setdefault("floating", {})[name_in_file] = self.floating(name, link.at)
        self.name_free(name, name_in_file)

    def _closure(self, closure: Closure) -> None:
        (first, first_frame), (second, second_frame) = closure.first, closure.second
        first_pose, second_pose = self.poses[first] @ first_frame, self.poses[second] @ second_frame
        gap = first_pose.position - second_pose.position
        if closure.kind == "prismatic":  # it slides along its axis
            axis = first_pose.rotation @ closure.axis
            gap = gap - (gap @ axis) * axis
        distance, angle = float(np.linalg.norm(gap)), 0.0
        if closure.kind == "universal":
            angle = abs(float(np.dot(*self._universal_axes(closure))))
        elif closure.kind != "spherical":
            angle = float(np.abs(self._axes_difference(closure, first_pose, second_pose)).max())
        if max(distance / self.mechanism.characteristic_length, angle) > LOOP_CLOSURE_TOLERANCE:
            gap_text = f"{distance:.3g} m and {angle:.3g} rad"
            what = (
                f"this loop is open by {gap_text} at the start, but SDF treats all loops as closed"
            )
            remedy = "give a reference pose that `tauloop check` reports as closed"
            raise DescriptionError.of(closure.name, what, remedy, file=self.mechanism.file)
        kind = {"spherical": "ball", "revolute": "continuous"}.get(closure.kind, closure.kind)
        joint = ElementTree.SubElement(
            self.model, "joint", name=self.named(closure.name), type=kind
        )
        # without this mark, a reader might cut another joint, which would lose its coordinate
        ElementTree.SubElement(joint, CUT_TAG)
        _add_pose(joint, second_frame)
        _add_text_element(joint, "parent", self.links[first])
        _add_text_element(joint, "child", self.links[second])
        axes: list[np.ndarray] = []
        if closure.kind == "universal":
            axes = self._universal_axes(closure)
        elif kind in _WITH_AXIS:
            axes = [closure.axis]
        for tag, axis in zip(("axis", "axis2"), axes, strict=False):
            _add_text_element(_add_axis(joint, axis, tag), "effort", "0", "limit")

    def _axes_difference(
        self, closure: Closure, first_pose: FramePose, second_pose: FramePose
    ) -> np.ndarray:
        """Return the difference of the axes of two loop frames.

        The result has the shape (3, 3), or (3,) for a hinge, which only has one axis.
        """
        if closure.kind == "revolute":
            return first_pose.rotation @ closure.axis - second_pose.rotation @ closure.axis
        return first_pose.rotation - second_pose.rotation

    def _universal_axes(self, closure: Closure) -> list[np.ndarray]:
        """Return the axes of a universal joint in its frame on the second link."""
        (first, first_frame), (second, second_frame) = closure.first, closure.second
        letters = [np.eye(3)["xyz".index(letter)] for letter in closure.axes]
        first_axis = (
            (self.poses[second] @ second_frame).rotation.T
            @ (self.poses[first] @ first_frame).rotation
            @ letters[0]
        )
        return [first_axis, letters[1]]

    def _solid(self, solid: Solid) -> None:
        """Add the solid of a link; SDF supports only mesh files."""
        if solid.body not in self.elements_of:
            self.notes.append(
                f"solid on {solid.body}: "
                "it is not written, because its link has no mass and is not a body"
            )
            return
        if isinstance(solid.mesh, Path) and not solid.mesh.is_file():
            self.notes.append(
                f"solid on {solid.body}: the file {solid.mesh.name} does not exist; it is not written"
            )
            return
        link = self.elements_of[solid.body]
        visual = ElementTree.SubElement(
            link, "visual", name=f"visual{len(link.findall('visual')) + 1}"
        )
        _add_pose(visual, FramePose(rotation_matrix(solid.turns), np.array(solid.position)))
        geometry = ElementTree.SubElement(visual, "geometry")
        shape = ElementTree.SubElement(geometry, solid.shape)
        numbers = [signless(float(x)) for x in solid.size]
        if solid.shape == "box":
            _add_text_element(shape, "size", " ".join(numbers))
        elif solid.shape == "mesh" and solid.mesh is not None:
            _add_text_element(shape, "uri", self.meshes.path(solid.mesh))
            _add_text_element(shape, "scale", " ".join(numbers))
        else:
            for key, text in zip(("radius", "length"), numbers, strict=False):
                _add_text_element(shape, key, text)
        material = ElementTree.SubElement(visual, "material")
        for key in ("ambient", "diffuse"):
            _add_text_element(material, key, rgba(color_of(solid)))


_WITH_AXIS = ("continuous", "revolute", "prismatic")


def _is_ideal_universal_joint(chain: Sequence[Primitive]) -> bool:
    """Return whether two hinges form a universal joint without losses, springs and limits."""
    has_no_loads = all(primitive.freedom == Freedom() for primitive in chain)
    first_axis = chain[1].pose().rotation.T @ chain[0].axis
    return has_no_loads and abs(float(first_axis @ chain[1].axis)) < LOOP_CLOSURE_TOLERANCE


def _is_limited(freedom: Freedom) -> bool:
    return freedom.limit == "stop" and bool(np.isfinite([freedom.lower, freedom.upper]).all())


def _add_axis(
    joint: ElementTree.Element, axis: np.ndarray, tag: str = "axis"
) -> ElementTree.Element:
    element = ElementTree.SubElement(joint, tag)
    _add_text_element(element, "xyz", in_line(axis))
    return element


def _add_text_element(parent: ElementTree.Element, tag: str, text: str, within: str = "") -> None:
    """Add an element with a text, inside the element `within` if given (created if missing)."""
    if within:
        inner = parent.find(within)
        parent = ElementTree.SubElement(parent, within) if inner is None else inner
    ElementTree.SubElement(parent, tag).text = text


def _add_pose(element: ElementTree.Element, pose: FramePose, relative_to: str = "") -> None:
    if pose.is_identity and not relative_to:
        return
    pose_element = ElementTree.SubElement(
        element, "pose", {"relative_to": relative_to} if relative_to else {}
    )
    pose_element.text = in_line([*pose.position.tolist(), *angles_of(pose)])
