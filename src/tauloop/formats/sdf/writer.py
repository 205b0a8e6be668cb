"""Conversion of a `Mechanism` to SDF for Gazebo with a side file, at its nominal parameters.

The side file contains properties that SDF cannot represent. The pose of the file is the machine's
start, where all joints are at zero; ``offsets`` in the side file restore the coordinates. Loops are
native: the child of a loop-closing joint already has another parent. Passive joints have zero
effort. SDF has universal and ball joints. A joint of another kind becomes a chain of links; a free
joint becomes an element that only Tauloop reads. SDF has no massless links and rejects impossible
moments. Therefore intermediate links are written with 1e-9 kg and marked as massless, and zero
moments are written as the smallest accepted value.
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
#: Mass (kg) and moment (kg m^2) written for a massless link; smallest written moment as a fraction
#: of the body's largest one.
LIGHT_LINK_MASS, LIGHT_LINK_MOMENT, MIN_MOMENT_SHARE = 1e-9, 1e-12, 1e-9
#: Largest gap of a loop that counts as closed, characteristic lengths or rad.
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
    form: ClassVar[str] = "SDF"
    poses: dict[str, FramePose] = field(default_factory=lambda: {BASE: IDENTITY})
    side: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: ElementTree.Element = field(default_factory=lambda: ElementTree.Element("model"))

    def write(self) -> WithSideFile:
        m = self.mechanism
        self.taken.add(WORLD)
        root = ElementTree.Element(
            "sdf", {"version": "1.9", "xmlns:tauloop": "https://tauloop.invalid/sdf"}
        )
        world = ElementTree.SubElement(root, "world", name="default")
        _leaf(world, "gravity", in_line([m.value(x) for x in m.gravity]))
        world.append(self.model)
        self.model.set("name", identifier(m.name.replace(".", "_")))
        self._base()
        for link in self.tree.links:
            self._link(link)
        for closure in self.tree.closures:
            self._closure(closure)
        for solid in m.solids:
            self._solid(solid)
        for coupling in m.couplings:
            self._state_in_side_file(
                "couplings", self.named(coupling.name), self.elements.coupling(coupling)
            )
        ElementTree.indent(root)
        text = '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"
        return self.finished(text, dict(self.side))

    @property
    def needed(self) -> set[str]:
        """Return the coordinates that motors, gears, losses and the platform refer to."""
        m = self.mechanism
        driven = {name for actuator in m.actuators for name, _ in actuator.drives}
        return driven | m.combined | set(m.platform.independent)

    def _state_in_side_file(self, section: str, name: str, content: Any) -> None:
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
        _leaf(joint, "parent", WORLD)
        _leaf(joint, "child", BASE)

    def _link(self, link: Link) -> None:
        """Add a link with its joint; a chain of joints has light links in between."""
        at, chain = link.at, list(link.chain)
        kinds = [primitive.kind for primitive in chain]
        if kinds == ["slide", "slide", "slide", "ball"]:
            is_plain = link.frame.is_identity
            name = link.name if is_plain else f"{link.name}.1"
            for primitive in chain:
                at = at @ primitive.pose()
            self._place(name, link.parent, at, link.mass if is_plain else None)
            self._free(link, name, chain[-1].name.removesuffix(".turn"))
            if not is_plain:
                self._place(link.name, name, link.frame, link.mass)
                self._joint(link, [], self.links[name], self.links[link.name], IDENTITY)
            return
        is_universal = kinds == ["hinge", "hinge"] and _are_across(chain)
        if is_universal and not self.needed.isdisjoint(primitive.name for primitive in chain):
            is_universal = False  # separate hinges keep the names of their coordinates
        parts = [chain] if is_universal else [[primitive] for primitive in chain]
        parent = link.parent
        for k, part in enumerate(parts or [[]]):
            is_last = k == max(len(parts) - 1, 0)
            name = link.name if is_last else f"{link.name}.{k + 1}"
            for primitive in part:
                at = at @ primitive.pose()
            tail = link.frame if is_last else IDENTITY
            self._place(name, parent, at @ tail, link.mass if is_last else None)
            self._joint(link, part, self.links[parent], self.links[name], tail.inverse())
            parent, at = name, IDENTITY

    def _place(self, name: str, parent: str, pose: FramePose, mass: LinkInertia | None) -> None:
        element = ElementTree.SubElement(self.model, "link", name=self.named(name))
        self.links[name] = element.attrib["name"]
        self.elements_of[name], self.poses[name] = element, self.poses[parent] @ pose
        _pose(element, pose, self.links[parent])
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
        least = max(LIGHT_LINK_MOMENT, MIN_MOMENT_SHARE * float(moments[-1]))
        inertia = link.about_center
        if moments[0] < least or moments[0] + moments[1] < moments[2]:
            moments = np.maximum(moments, least)
            moments[1] = max(moments[1], moments[2] - moments[0] + least)
            inertia = axes @ np.diag(moments) @ axes.T
            change = float(np.abs(inertia - link.about_center).max())
            self.notes.append(
                f"body {name}: SDF rejects its inertia; {change:.2g} kg m^2 are added to a moment"
            )
        inertial = ElementTree.SubElement(element, "inertial")
        _pose(inertial, FramePose(np.eye(3), link.center))
        _leaf(inertial, "mass", signless(mass))
        tensor = ElementTree.SubElement(inertial, "inertia")
        for key, moment in moments_of(inertia).items():
            _leaf(tensor, key, moment)

    def _joint(
        self, link: Link, part: Sequence[Primitive], parent: str, child: str, frame: FramePose
    ) -> None:
        """Add a joint; its frame after the motion is relative to the child."""
        if not part:
            kind, name = "fixed", f"{link.name}.fixed"
        elif len(part) == 1:
            kind, name = _SDF_TYPES[part[0].kind], part[0].name
        else:
            kind, name = "universal", f"{link.name}.universal"
        if kind == "revolute" and not _is_limited(part[0].freedom):
            kind = "continuous"
        joint = ElementTree.SubElement(self.model, "joint", name=self.named(name), type=kind)
        _pose(joint, frame)
        _leaf(joint, "parent", parent)
        _leaf(joint, "child", child)
        if len(part) == 2:
            # the first axis, which is fixed to the parent, after both motions
            for tag, axis in (
                ("axis", part[1].pose().rotation.T @ part[0].axis),
                ("axis2", part[1].axis),
            ):
                _leaf(_axis(joint, axis, tag), "effort", "0", "limit")
        elif kind == "ball":
            self._state_in_side_file("balls", joint.attrib["name"], self.ball(part[0]))
            self.name_ball(part[0].velocities[0].rpartition(".")[0], joint.attrib["name"])
        elif part:
            self._freedom(joint, part[0])

    def _freedom(self, joint: ElementTree.Element, primitive: Primitive) -> None:
        """Add axis, limits and effort of a scalar joint; other properties go to the side file."""
        word, freedom, turns = joint.attrib["name"], primitive.freedom, primitive.kind == "hinge"
        self.names[primitive.name] = word
        offset = float(primitive.reference[0])
        if offset:
            self._state_in_side_file(
                "offsets", word, literal(-offset, units.ANGLE if turns else units.LENGTH)
            )
        axis = _axis(joint, primitive.axis)
        if _is_limited(freedom):
            _leaf(axis, "lower", signless(freedom.lower - offset), "limit")
            _leaf(axis, "upper", signless(freedom.upper - offset), "limit")
            freedom = replace(freedom, lower=-np.inf, upper=np.inf)
        effort = self.effort(primitive.name)
        _leaf(axis, "effort", signless(effort) if np.isfinite(effort) else "-1", "limit")
        if np.isfinite(freedom.speed):
            _leaf(axis, "velocity", signless(freedom.speed), "limit")
            freedom = replace(freedom, speed=np.inf)
        if content := self.elements.freedom(freedom, turns):
            self._state_in_side_file("joints", word, content)

    def _free(self, link: Link, child: str, name: str) -> None:
        """Add the element for a free joint, which only Tauloop reads."""
        word = self.named(name)
        attributes = {"name": word, "parent": self.links[link.parent], "child": self.links[child]}
        ElementTree.SubElement(self.model, FREE_TAG, attributes)
        self.side.setdefault("floating", {})[word] = self.floating(name, link.at)
        self.name_free(name, word)

    def _closure(self, closure: Closure) -> None:
        (first, near), (second, far) = closure.first, closure.second
        here, there = self.poses[first] @ near, self.poses[second] @ far
        gap = here.position - there.position
        if closure.kind == "prismatic":  # it slides along its axis
            axis = here.rotation @ closure.axis
            gap = gap - (gap @ axis) * axis
        apart, turned = float(np.linalg.norm(gap)), 0.0
        if closure.kind == "universal":
            turned = abs(float(np.dot(*self._universal(closure))))
        elif closure.kind != "spherical":
            turned = float(np.abs(self._turned(closure, here, there)).max())
        if max(apart / self.mechanism.characteristic_length, turned) > LOOP_CLOSURE_TOLERANCE:
            missed = f"{apart:.3g} m and {turned:.3g} rad"
            what = f"this loop is open by {missed} at the start, but SDF treats all loops as closed"
            remedy = "give a reference pose that `tauloop check` reports as closed"
            raise DescriptionError.of(closure.name, what, remedy, file=self.mechanism.file)
        kind = {"spherical": "ball", "revolute": "continuous"}.get(closure.kind, closure.kind)
        joint = ElementTree.SubElement(
            self.model, "joint", name=self.named(closure.name), type=kind
        )
        # without this mark, a reader might cut another joint, which would lose its coordinate
        ElementTree.SubElement(joint, CUT_TAG)
        _pose(joint, far)
        _leaf(joint, "parent", self.links[first])
        _leaf(joint, "child", self.links[second])
        axes = (
            self._universal(closure)
            if closure.kind == "universal"
            else [closure.axis] * (kind in _WITH_AXIS)
        )
        for tag, axis in zip(("axis", "axis2"), axes, strict=False):
            _leaf(_axis(joint, axis, tag), "effort", "0", "limit")

    def _turned(self, closure: Closure, here: FramePose, there: FramePose) -> np.ndarray:
        """Return the difference of two loop frames' axes (3, 3); for a hinge, of its axis (3,)."""
        if closure.kind == "revolute":
            return here.rotation @ closure.axis - there.rotation @ closure.axis
        return here.rotation - there.rotation

    def _universal(self, closure: Closure) -> list[np.ndarray]:
        """Return the axes of a universal joint in its frame on the second link."""
        (first, near), (second, far) = closure.first, closure.second
        letters = [np.eye(3)["xyz".index(letter)] for letter in closure.axes]
        across = (
            (self.poses[second] @ far).rotation.T @ (self.poses[first] @ near).rotation @ letters[0]
        )
        return [across, letters[1]]

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
        _pose(visual, FramePose(rotation_matrix(solid.turns), np.array(solid.position)))
        geometry = ElementTree.SubElement(visual, "geometry")
        shape = ElementTree.SubElement(geometry, solid.shape)
        numbers = [signless(float(x)) for x in solid.size]
        if solid.shape == "box":
            _leaf(shape, "size", " ".join(numbers))
        elif solid.shape == "mesh" and solid.mesh is not None:
            _leaf(shape, "uri", self.meshes.path(solid.mesh))
            _leaf(shape, "scale", " ".join(numbers))
        else:
            for key, text in zip(("radius", "length"), numbers, strict=False):
                _leaf(shape, key, text)
        material = ElementTree.SubElement(visual, "material")
        for key in ("ambient", "diffuse"):
            _leaf(material, key, rgba(color_of(solid)))


_WITH_AXIS = ("continuous", "revolute", "prismatic")


def _are_across(chain: Sequence[Primitive]) -> bool:
    """Return whether two hinges form a universal joint without losses and springs."""
    free = all(primitive.freedom == Freedom() for primitive in chain)
    first_axis = chain[1].pose().rotation.T @ chain[0].axis
    return free and abs(float(first_axis @ chain[1].axis)) < LOOP_CLOSURE_TOLERANCE


def _is_limited(freedom: Freedom) -> bool:
    return freedom.limit == "stop" and bool(np.isfinite([freedom.lower, freedom.upper]).all())


def _axis(joint: ElementTree.Element, axis: np.ndarray, tag: str = "axis") -> ElementTree.Element:
    element = ElementTree.SubElement(joint, tag)
    _leaf(element, "xyz", in_line(axis))
    return element


def _leaf(parent: ElementTree.Element, tag: str, text: str, within: str = "") -> None:
    """Add an element with a text, inside the element `within` if given (created if missing)."""
    if within:
        inner = parent.find(within)
        parent = ElementTree.SubElement(parent, within) if inner is None else inner
    ElementTree.SubElement(parent, tag).text = text


def _pose(element: ElementTree.Element, pose: FramePose, relative_to: str = "") -> None:
    if pose.is_identity and not relative_to:
        return
    place = ElementTree.SubElement(
        element, "pose", {"relative_to": relative_to} if relative_to else {}
    )
    place.text = in_line([*pose.position.tolist(), *angles_of(pose)])
