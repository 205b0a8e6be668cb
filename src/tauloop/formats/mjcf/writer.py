"""Conversion of a `Mechanism` to MJCF for MuJoCo, at its nominal parameters.

All bodies are descendants of one fixed body ``base``. The pose of the file is the machine's start,
and ``ref`` preserves the values of the coordinates. ``connect`` and ``weld`` between sites close
loops independently of that pose: a ball joint is one ``connect``, and a hinge is two of them on its
axis. Cables and other massless rods are spatial tendons. Names are those of the mechanism.
Properties that MJCF lacks (the constant part of friction, maximum speeds, one-sided limits,
platform and independent coordinates) are stored in ``<custom>``, which MuJoCo ignores and
`load_mjcf` reads. MuJoCo rejects moving bodies without mass or inertia. Zeros are written
unchanged, and the bounds of MuJoCo's compiler raise them to nearly the smallest accepted value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from tauloop.common.errors import DescriptionError
from tauloop.common.files import write_text
from tauloop.common.records import dataclass
from tauloop.formats.mjcf.settings import CUSTOM_FRICTION_TERMS, CUSTOM_PREFIX
from tauloop.formats.mjcf.tendon_paths import TendonPath, TendonPaths, tendon_paths
from tauloop.formats.writing.side_writer import rigid_notes
from tauloop.formats.xml.meshes import MeshCopies, is_binary_stl
from tauloop.mechanism.curves import CurvePolynomial
from tauloop.mechanism.description.grammar import OMISSIONS
from tauloop.mechanism.links.rigid_tree import (
    Closure,
    Link,
    LinkInertia,
    Tree,
    constant_angles,
    rigid_tree,
)
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    Actuator,
    CombinedFriction,
    Coupling,
    Freedom,
    Friction,
    Mechanism,
    Placement,
    Rod,
    Tension,
)
from tauloop.mechanism.poses import FramePose, placement_pose, rotation_matrix, rotation_quaternion
from tauloop.mechanism.solids.primitives import Primitive
from tauloop.mechanism.solids.solid import Mesh, Solid, color_of, rgba
from tauloop.mechanism.suggestions import listing

#: Number of coefficients of a polynomial between joints in MuJoCo.
MAX_POLYCOEF = 5
#: Smallest mass (kg) and principal moment of inertia (kg m^2) written for MuJoCo, which requires
#: more than 1e-14. Relative changes of forces are about 1e-13 (2e-9 with chains of massless
#: bodies).
MUJOCO_MINIMUM = 1e-13
#: Margin for rounding errors of principal moments, relative to the largest moment, so that the
#: smallest moment does not become zero.
_MOMENT_ROUNDING = 1e-15
#: Rounding error of recombined principal moments, as a fraction of the largest moment.
_MOMENT_CHANGE_TOLERANCE = 1e-13
#: Distance along a hinge's axis between the two points that constrain it, relative to the machine's
#: characteristic length.
_HINGE_POINT_DISTANCE = 0.5
#: Attributes of a geom without contacts and mass.
_VISUAL_ONLY_ATTRIBUTES = {"contype": "0", "conaffinity": "0", "mass": "0"}
#: Friction terms of a motor that are written as terms of the joint if the motor drives one joint.
_JOINT_SIDE_FRICTION = ("viscous_asymmetry", "coulomb_asymmetry")
_MJCF_CLOSURE_KINDS = ("spherical", "revolute", "fixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class MjcfText:
    """Text of a machine in MJCF.

    Attributes:
        text: text of the file.
        meshes: the mesh files to which the text refers.
        notes: differences from the mechanism, each in one sentence.
    """

    text: str
    meshes: MeshCopies
    notes: tuple[str, ...]


def to_mjcf(mechanism: Mechanism, meshes: str = "meshes") -> MjcfText:
    """Return the text of an MJCF file.

    Args:
        mechanism: any mechanism.
        meshes: mesh folder, relative to the file. Triangles without a file are written into the
            text.

    Raises:
        DescriptionError: rigid links and ideal joints cannot represent the mechanism (see
            `mechanism.links.rigid_tree`).
    """
    paths = tendon_paths(mechanism)
    tree = rigid_tree(paths.mechanism, _MJCF_CLOSURE_KINDS, DescriptionError)
    return _MjcfWriter(mechanism, tree, paths, MeshCopies(meshes)).write()


def write_mjcf(mechanism: Mechanism, path: str | Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Write an MJCF file, with copies of meshes in ``NAME_meshes`` next to it.

    Each file gets its final name when it is complete.

    Returns:
        Paths of the meshes, and the differences from the mechanism.

    Raises:
        DescriptionError: as for `to_mjcf`.
        InputError: the file cannot be written.
    """
    written = to_mjcf(mechanism, f"{Path(path).stem}_meshes")
    meshes = written.meshes.write(Path(path).parent)
    write_text(path, written.text)
    return tuple(meshes), written.notes


def coordinate_names(mechanism: Mechanism) -> dict[str, str]:
    """Return the names in the file of coordinates and velocities, where they differ.

    They differ for free joints, which are written as three slides and a ball.
    """
    ball = JOINT_KINDS["spherical"]
    return {
        f"{joint.name}.{word}": f"{joint.name}.turn.{word}"
        for joint in mechanism.joints
        if joint.kind == "free"
        for word in (*ball.coordinates, *ball.velocities)
    }


@dataclass(slots=True)
class _MjcfWriter:
    """Writer of one machine.

    Attributes:
        mechanism: the machine.
        tree: the machine as a tree of links with primitive joints.
        paths: tendons that represent cables and massless rods.
        meshes: mesh files to which the text refers.
        notes: differences from the mechanism.
        motors: losses and inertia of motors, reflected to the joint that they drive.
        bodies: elements of the written bodies by name.
    """

    mechanism: Mechanism
    tree: Tree
    paths: TendonPaths
    meshes: MeshCopies
    notes: list[str] = field(default_factory=list)
    motors: dict[str, dict[str, float]] = field(default_factory=dict)
    bodies: dict[str, ElementTree.Element] = field(default_factory=dict)
    _points: dict[Placement, str] = field(default_factory=dict)
    _small_inertias: list[str] = field(default_factory=list)
    _extras: dict[str, float] = field(default_factory=dict)
    _asymmetries: dict[str, dict[str, float]] = field(default_factory=dict)
    _coulomb_of_tendons: dict[str, float] = field(default_factory=dict)

    def write(self) -> MjcfText:
        m = self.mechanism
        self.notes = ["parameters are written as numbers", *self.tree.notes]
        driven = [actuator.name for actuator in m.actuators if actuator.drive is not None]
        self.notes += [
            f"actuator {name}: its drive line cannot be represented in MJCF" for name in driven
        ]
        self.notes += rigid_notes(m, "MJCF")
        self._reflect_motors_to_joints()
        root = ElementTree.Element("mujoco", model=m.name)
        compiler = ElementTree.SubElement(
            root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false"
        )
        compiler.attrib |= {
            "boundmass": _number(MUJOCO_MINIMUM),
            "boundinertia": _number(MUJOCO_MINIMUM),
        }
        ElementTree.SubElement(root, "option", gravity=_numbers([m.value(x) for x in m.gravity]))
        world = ElementTree.SubElement(root, "worldbody")
        self.bodies = {BASE: ElementTree.SubElement(world, "body", name=BASE)}
        self.bodies[BASE].append(self._inertial(BASE, None))
        for link in self.tree.links:
            self._link(link)
        assets = ElementTree.Element("asset")
        for number, solid in enumerate(m.solids, 1):
            self._solid(assets, solid, f"solid{number}")
        listed = ", ".join(name for name in self._small_inertias if name != BASE)
        if listed:
            self.notes.append(
                "MuJoCo rejects zeros; smaller masses and moments are raised to "
                f"{MUJOCO_MINIMUM:g} kg or kg m^2: {listed}"
            )
        tool = placement_pose(m, m.platform.tool)
        self._site("tool", m.platform.body, tool)
        equality = ElementTree.Element("equality")
        for closure in self.tree.closures:
            self._closure(equality, closure)
        tendons, actuators = ElementTree.Element("tendon"), ElementTree.Element("actuator")
        for coupling in self.paths.mechanism.couplings:
            self._coupling(equality, tendons, coupling)
        for path in self.paths.paths.values():
            self._spatial(tendons, path)
        taut = [name for name, tension in m.cables.items() if tension.least]
        if taut:
            self.notes.append(f"MuJoCo does not enforce the least tensions of {listing(taut)}")
        for loss in m.losses:
            if loss.name not in self.paths.paths:
                self._combined_friction(tendons, loss)
        for actuator in m.actuators:
            self._actuator(tendons, actuators, actuator)
        root.extend(
            section
            for section in (assets, equality, tendons, actuators, self._custom())
            if len(section)
        )
        ElementTree.indent(root)
        text = ElementTree.tostring(root, encoding="unicode") + "\n"
        return MjcfText(text=text, meshes=self.meshes, notes=tuple(self.notes))

    def _link(self, link: Link) -> None:
        """Add a body with its joints and inertia."""
        element = ElementTree.SubElement(
            self.bodies[link.parent], "body", {"name": link.name} | _pose_attributes(link.pose())
        )
        self.bodies[link.name] = element
        tail = link.frame
        joints = []
        for primitive in reversed(link.chain):
            joints.append(self._joint(primitive, tail))
            tail = primitive.pose() @ tail
        element.extend(reversed(joints))
        element.append(self._inertial(link.name, link.mass))

    def _joint(self, primitive: Primitive, tail: FramePose) -> ElementTree.Element:
        """Return a joint in the axes of its body at the start.

        Args:
            primitive: the joint.
            tail: frame of the body relative to the frame after the joint.
        """
        attributes = {"name": primitive.name, "type": primitive.kind}
        origin = tail.inverse()
        if origin.position.any():
            attributes["pos"] = _numbers(origin.position)
        freedom = primitive.freedom
        if primitive.kind == "ball":
            self._ball(primitive, origin)
            joint = self.mechanism.joint(primitive.velocities[0].rpartition(".")[0])
            if not self._acts_equally_about_all_axes(joint.freedoms[-3:]):
                self.notes.append(
                    f"joint {joint.name}: its rotations have different losses and springs; "
                    "in MJCF, those of the first one act on all"
                )
            if (
                freedom.spring is not None
                or np.isfinite([freedom.lower, freedom.upper, freedom.speed]).any()
            ):
                self.notes.append(
                    f"ball {primitive.name}: "
                    "springs, limits and maximum speeds of its rotations are not written"
                )
        else:
            attributes["axis"] = _numbers(origin.rotation @ primitive.axis)
            if primitive.reference[0]:
                attributes["ref"] = _numbers(list(primitive.reference))
            attributes |= self._range(primitive.name, freedom)
            if freedom.spring is not None:
                attributes["stiffness"] = _number(self.mechanism.value(freedom.spring.stiffness))
                attributes["springref"] = _number(self.mechanism.value(freedom.spring.rest))
        self._store_friction(
            f"joint.{primitive.name}", self._joint_friction(primitive.name, freedom.friction)
        )
        attributes |= _nonzero(self._losses(freedom, others=self.motors.get(primitive.name)))
        return ElementTree.Element("joint", attributes)

    def _ball(self, primitive: Primitive, frame: FramePose) -> None:
        """Store the orientation at which a ball joint's quaternion is zero.

        MuJoCo measures the quaternion from the start pose, in the axes of the body.
        """
        for word, pose in (("frame", frame), ("start", primitive.pose())):
            angles = constant_angles(pose.rotation) if pose.is_turned else {}
            for axis, angle in angles.items():
                self._extra(f"joint.{primitive.name}.{word}.{axis}", angle)
        if primitive.is_reversed:
            self._extra(f"joint.{primitive.name}.reversed", 1.0)
        if any(primitive.reference[1:]):
            self.notes.append(
                f"ball {primitive.name}: MuJoCo measures its quaternion from the file's start pose"
            )

    def _range(self, name: str, freedom: Freedom) -> dict[str, str]:
        """Return the range of a joint as attributes, and store limits that MJCF lacks."""
        self._extra(f"joint.{name}.speed", freedom.speed)
        if freedom.limit == "stop" and np.isfinite([freedom.lower, freedom.upper]).all():
            return {"range": _numbers([freedom.lower, freedom.upper])}
        if freedom.limit == "drawing" and np.isfinite([freedom.lower, freedom.upper]).any():
            self._extra(f"joint.{name}.drawing", 1.0)
        self._extra(f"joint.{name}.lower", freedom.lower)
        self._extra(f"joint.{name}.upper", freedom.upper)
        return {}

    def _losses(
        self,
        element: Freedom | Actuator,
        ratio: float = 1.0,
        others: Mapping[str, float] | None = None,
    ) -> dict[str, float]:
        """Return friction and inertia reflected through a ratio, by MJCF name, plus `others`.

        Viscous friction and inertia are multiplied by ratio^2, Coulomb friction by |ratio|.
        """
        friction = element.friction or Friction()
        terms = {
            "damping": (ratio * ratio, friction.viscous),
            "frictionloss": (abs(ratio), friction.coulomb),
            "armature": (ratio * ratio, element.inertia),
        }
        numbers = {
            key: 0.0 if x is None else factor * self.mechanism.value(x)
            for key, (factor, x) in terms.items()
        }
        return {key: (others or {}).get(key, 0.0) + number for key, number in numbers.items()}

    def _acts_equally_about_all_axes(self, freedoms: Sequence[Freedom]) -> bool:
        """Return whether friction and inertia of all freedoms are equal."""
        terms = [
            (self._losses(freedom), self._stored_terms(freedom.friction)) for freedom in freedoms
        ]
        return all(item == terms[0] for item in terms)

    def _stored_terms(self, friction: Friction | None) -> dict[str, float]:
        """Return the nonzero friction terms that MuJoCo does not have, as numbers."""
        law, terms = friction or Friction(), dict[str, float]()
        for key in CUSTOM_FRICTION_TERMS:
            term = getattr(law, key)
            number = 0.0 if term is None else self.mechanism.value(term)
            if number:
                terms[key] = number
        return terms

    def _joint_friction(self, name: str, friction: Friction | None) -> dict[str, float]:
        """Return the terms of `_stored_terms` for a joint and its motors.

        Static friction is the total friction at the onset of motion.
        """
        terms = self._stored_terms(friction)
        for key, number in self._asymmetries.get(name, {}).items():
            terms[key] = terms.get(key, 0.0) + number
        if "static" in terms:
            terms["static"] += self.motors.get(name, {}).get("frictionloss", 0.0)
        return terms

    def _motor_friction(self, actuator: Actuator) -> dict[str, float]:
        """Return the terms of `_stored_terms` for a motor, without those written at its only joint.

        The losses of a spatial tendon are read as those of its motor.
        """
        terms = self._stored_terms(actuator.friction)
        if len(actuator.drives) > 1:
            return terms
        tendon, gear = self.paths.gears.get(actuator.name, ("", 1.0))
        if (
            "static" in terms
            and actuator.friction is not None
            and actuator.friction.coulomb is not None
        ):
            terms["static"] -= self.mechanism.value(actuator.friction.coulomb)
        if tendon:
            if "static" in terms:
                terms["static"] += self._coulomb_of_tendons[tendon] / abs(gear)
            return terms
        return {key: number for key, number in terms.items() if key not in _JOINT_SIDE_FRICTION}

    def _store_friction(self, where: str, terms: Mapping[str, float]) -> None:
        """Store friction terms that MuJoCo does not apply in ``<custom>``."""
        name = where.partition(".")[2]
        for key, number in terms.items():
            self._extra(f"{where}.friction.{key}", number)
            if CUSTOM_FRICTION_TERMS.get(key):
                self.notes.append(
                    f"{name}: "
                    f"MuJoCo does not apply the {CUSTOM_FRICTION_TERMS[key]} of its friction"
                )

    def _extra(self, name: str, value: float) -> None:
        """Store a finite number in ``<custom>``."""
        if np.isfinite(value):
            self._extras[f"{CUSTOM_PREFIX}{name}"] = value

    def _custom(self) -> ElementTree.Element:
        """Return the section of properties that MJCF lacks; only `load_mjcf` reads it."""
        section, platform = ElementTree.Element("custom"), self.mechanism.platform
        if platform.payload:
            self._extra("platform.payload", platform.payload)
        for name, value in self._extras.items():
            ElementTree.SubElement(section, "numeric", name=name, data=_number(value))
        ElementTree.SubElement(section, "text", name=f"{CUSTOM_PREFIX}platform", data="tool")
        names = coordinate_names(self.mechanism)
        if platform.independent:
            data = " ".join(names.get(name, name) for name in platform.independent)
            ElementTree.SubElement(section, "text", name=f"{CUSTOM_PREFIX}independent", data=data)
        if self.mechanism.unstated_motors:
            data = " ".join(names.get(name, name) for name in self.mechanism.unstated_motors)
            ElementTree.SubElement(
                section, "text", name=f"{CUSTOM_PREFIX}unstated_motors", data=data
            )
        for key in OMISSIONS:
            for k, text in enumerate(getattr(self.mechanism, key.name), 1):
                ElementTree.SubElement(
                    section, "text", name=f"{CUSTOM_PREFIX}{key.name}.{k}", data=text
                )
        return section

    def _inertial(self, name: str, link: LinkInertia | None) -> ElementTree.Element:
        """Return the inertia of a body; zeros for a massless body."""
        if link is None:
            link = LinkInertia(mass=0.0, center=np.zeros(3), about_center=np.zeros((3, 3)))
        inertia = _acceptable_inertia(link.about_center)
        if link.mass < MUJOCO_MINIMUM or np.linalg.eigvalsh(inertia)[0] < MUJOCO_MINIMUM:
            self._small_inertias.append(name)
        change = float(np.abs(inertia - link.about_center).max())
        if change > _MOMENT_CHANGE_TOLERANCE * float(np.abs(inertia).max()):
            what = f"its inertia is impossible; a moment was changed by {change:.2g} kg m^2"
            self.notes.append(f"body {name}: {what}")
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia
        return ElementTree.Element(
            "inertial",
            mass=_number(link.mass),
            pos=_numbers(link.center),
            fullinertia=_numbers([xx, yy, zz, xy, xz, yz]),
        )

    def _site(self, name: str, body: str, pose: FramePose) -> None:
        """Add a site on a body."""
        ElementTree.SubElement(self.bodies[body], "site", {"name": name} | _pose_attributes(pose))

    def _solid(self, assets: ElementTree.Element, solid: Solid, name: str) -> None:
        """Add a geom that is only drawn; omit a mesh file that MuJoCo cannot read."""
        if self.paths.is_replaced(solid.body):
            return  # MuJoCo draws tendons
        if solid.body not in self.bodies:
            self.notes.append(
                f"solid on {solid.body}: "
                "it is not written, because its link has no mass and is not a body"
            )
            return
        if isinstance(solid.mesh, Path) and (reason := _reason_unreadable(solid.mesh)):
            self.notes.append(
                f"solid on {solid.body}: {solid.mesh.name} {reason}; it is not written"
            )
            return
        pose = FramePose(rotation_matrix(solid.turns), np.array(solid.position))
        attributes = (
            {"name": name, "type": solid.shape}
            | _pose_attributes(pose)
            | _VISUAL_ONLY_ATTRIBUTES
            | {"rgba": rgba(color_of(solid))}
        )
        radius, *rest = solid.size
        if solid.shape == "mesh":
            attributes["mesh"] = name
            source = {"name": name, "scale": _numbers(list(solid.size)), "inertia": "shell"}
            if isinstance(solid.mesh, Mesh):
                vertices, faces = solid.mesh.vertices.ravel(), solid.mesh.faces.ravel()
                source |= {"vertex": _numbers(vertices), "face": " ".join(map(str, faces.tolist()))}
            elif solid.mesh is not None:
                source["file"] = self.meshes.path(solid.mesh)
            ElementTree.SubElement(assets, "mesh", source)
        else:
            attributes["size"] = _numbers(
                [0.5 * edge for edge in solid.size]
                if rest[1:]
                else [radius, *(0.5 * length for length in rest)]
            )
        ElementTree.SubElement(self.bodies[solid.body], "geom", attributes)

    def _closure(self, equality: ElementTree.Element, closure: Closure) -> None:
        """Add the constraints that close a loop: two points on the axis of a hinge, else one."""
        half = 0.5 * _HINGE_POINT_DISTANCE * self.mechanism.characteristic_length
        points = [-half, half] if closure.kind == "revolute" else [0.0]
        for k, distance in enumerate(points):
            name = closure.name + (f".{k + 1}" if len(points) > 1 else "")
            shift = FramePose(np.eye(3), distance * closure.axis)
            for end, (body, pose) in (("a", closure.first), ("b", closure.second)):
                self._site(f"{name}.{end}", body, pose @ shift)
            tag = "weld" if closure.kind == "fixed" else "connect"
            ElementTree.SubElement(equality, tag, name=name, site1=f"{name}.a", site2=f"{name}.b")

    # Couplings and motors

    def _coupling(
        self, equality: ElementTree.Element, tendons: ElementTree.Element, coupling: Coupling
    ) -> None:
        value = self.mechanism.value
        ratios = [(name, value(ratio)) for name, ratio in coupling.terms]
        start = {
            primitive.name: float(primitive.reference[0])
            for link in self.tree.links
            for primitive in link.chain
            if primitive.kind != "ball"
        }
        if coupling.curves:
            ElementTree.SubElement(equality, "joint", self._curve_attributes(coupling, start))
            return
        # MuJoCo couples the displacements from ref
        constant = value(coupling.offset) - sum(ratio * start[name] for name, ratio in ratios)
        attributes = {"name": coupling.name}
        slope = 0.0
        tag = "joint"
        if len(ratios) == 2:
            first, first_ratio = ratios[0]
            second, second_ratio = ratios[1]
            attributes |= {"joint1": first, "joint2": second}
            constant = constant / first_ratio
            slope = -second_ratio / first_ratio
        else:
            tag = "tendon"
            attributes["tendon1"] = coupling.name
            self._fixed_tendon(tendons, {"name": coupling.name}, ratios)
        polynomial = {"polycoef": _numbers([constant, slope, 0.0, 0.0, 0.0])}
        ElementTree.SubElement(equality, tag, attributes | polynomial)

    def _curve_attributes(self, coupling: Coupling, start: Mapping[str, float]) -> dict[str, str]:
        """Return the attributes of a coupling with a curve.

        Raises:
            DescriptionError: the curve is not a polynomial of one coordinate of degree 4 at most.
        """
        value = self.mechanism.value
        first, ratio = coupling.terms[0]
        second, curve = coupling.curves[0]
        is_supported = (
            len(coupling.terms) == len(coupling.curves) == 1
            and isinstance(curve, CurvePolynomial)
            and len(curve.coefficients) <= MAX_POLYCOEF
        )
        if not is_supported or not isinstance(curve, CurvePolynomial):
            raise DescriptionError.of(
                f"couplings.{coupling.name}",
                "MJCF only has polynomials of one coordinate up to degree 4, and no tables",
                "write the machine in another format, or fit a polynomial",
                file=self.mechanism.file,
            )
        powers = np.polynomial.Polynomial([value(c) for c in curve.coefficients])
        # MuJoCo's polynomial is a function of the displacement from ref
        displaced = np.polynomial.Polynomial([start[second] - value(curve.about), 1.0])
        shifted = np.asarray(powers(displaced).coef, dtype=float)
        shifted[0] += value(coupling.offset) - value(ratio) * start[first]
        numbers = np.zeros(MAX_POLYCOEF)
        numbers[: len(shifted)] = shifted / value(ratio)
        names = {"name": coupling.name, "joint1": first, "joint2": second}
        return names | {"polycoef": _numbers(numbers.tolist())}

    def _combined_friction(self, tendons: ElementTree.Element, loss: CombinedFriction) -> None:
        """Write the friction of a combination of hinges and slides as friction of a tendon."""
        value = self.mechanism.value
        ratios = [(name, value(ratio)) for name, ratio in loss.terms]
        self.notes += [
            f"loss {loss.name}: "
            f"the {CUSTOM_FRICTION_TERMS[key]} of its friction cannot be represented in MJCF"
            for key in self._stored_terms(loss.friction)
            if CUSTOM_FRICTION_TERMS[key]
        ]
        terms = {"damping": loss.friction.viscous, "frictionloss": loss.friction.coulomb}
        numbers = {key: 0.0 if term is None else value(term) for key, term in terms.items()}
        self._fixed_tendon(tendons, {"name": loss.name} | _nonzero(numbers), ratios)

    def _only_pulls(self, actuator: Actuator) -> bool:
        """Return whether a motor drives a tendon of cables, which can only pull."""
        if actuator.name not in self.paths.gears:
            return False
        path = self.paths.paths[self.paths.gears[actuator.name][0]]
        return all(rod.tension is not None for rod, _ in path.lines)

    def _spatial(self, tendons: ElementTree.Element, path: TendonPath) -> None:
        """Write the lines of a tendon between sites, with its losses, spring and limits.

        The losses of its motors are added after reflecting them through their ratios.
        """
        value = self.mechanism.value
        elements = path.elements
        losses: Mapping[str, float] = {}
        for actuator in self.mechanism.actuators:
            tendon, gear = self.paths.gears.get(actuator.name, ("", 0.0))
            if tendon == path.name:
                losses = self._losses(actuator, gear, losses)
        losses = self._losses(elements, others=losses)
        self._coulomb_of_tendons[path.name] = losses["frictionloss"]
        self.notes.extend(
            f"{path.name}: "
            f"the {CUSTOM_FRICTION_TERMS[key]} of its friction cannot be represented in MJCF"
            for key in self._stored_terms(elements.friction)
            if CUSTOM_FRICTION_TERMS[key]
        )
        attributes = {"name": path.name} | _nonzero(losses)
        if elements.spring is not None:
            rest = _number(value(elements.spring.rest))
            attributes |= {
                "stiffness": _number(value(elements.spring.stiffness)),
                "springlength": f"{rest} {rest}",
            }
        lower, upper = max(elements.lower, 0.0), elements.upper
        if elements.limit == "stop" and np.isfinite(upper):
            attributes["range"] = _numbers([lower, upper])
        rod, _ = path.lines[0]
        if rod.tension is not None:
            attributes |= self._cable(path.name, rod, rod.tension)
        element = ElementTree.SubElement(tendons, "spatial", attributes)
        for k, (rod, factor) in enumerate(path.lines):
            if k or factor != 1.0:
                ElementTree.SubElement(element, "pulley", divisor=_number(1.0 / factor))
            for end, placement in (("a", rod.start), ("b", rod.end)):
                ElementTree.SubElement(element, "site", site=self._point(rod, end, placement))

    def _point(self, rod: Rod, end: str, placement: Placement) -> str:
        """Return the name of the site at the end of a rod; rods with the same end share a site."""
        if placement not in self._points:
            name = f"{rod.name}.{end}"
            self._site(name, placement.body, placement_pose(self.mechanism, placement))
            self._points[placement] = name
        return self._points[placement]

    def _cable(self, name: str, rod: Rod, tension: Tension) -> dict[str, str]:
        """Store the tension bounds of a cable; return the attributes of a cable of fixed length."""
        value = self.mechanism.value
        stiffness = 0.0 if tension.stiffness is None else value(tension.stiffness)
        damping = 0.0 if tension.damping is None else value(tension.damping)
        self._extra(f"tendon.{name}.least", tension.least)
        self._extra(f"tendon.{name}.greatest", tension.greatest)
        for key, number in (("stiffness", stiffness), ("damping", damping)):
            if number:
                self._extra(f"tendon.{name}.{key}", number)
        if tension.restitution is not None:
            self._extra(f"tendon.{name}.restitution", tension.restitution)
        if rod.length is None:
            if stiffness:
                self.notes.append(f"cable {name}: its stretch cannot be represented in MJCF")
            return {}
        length = value(rod.length)
        self._extra(f"tendon.{name}.length", length)
        if not stiffness:
            return {"range": _numbers([0.0, length])}
        attributes = {"stiffness": _number(stiffness), "springlength": _numbers([0.0, length])}
        return attributes | _nonzero({"damping": damping})

    def _fixed_tendon(
        self,
        tendons: ElementTree.Element,
        attributes: dict[str, str],
        ratios: Sequence[tuple[str, float]],
    ) -> None:
        tendon = ElementTree.SubElement(tendons, "fixed", attributes)
        for name, ratio in ratios:
            ElementTree.SubElement(tendon, "joint", joint=name, coef=_number(ratio))

    def _reflect_motors_to_joints(self) -> None:
        """Reflect inertia and friction of motors to the joints that they drive.

        MJCF has no properties on the motor side.
        """
        for actuator in self.mechanism.actuators:
            if len(actuator.drives) == 1 and actuator.name not in self.paths.gears:
                name, ratio = actuator.drives[0]
                number = self.mechanism.value(ratio)
                self.motors[name] = self._losses(actuator, number, self.motors.get(name))
                factors = {"viscous_asymmetry": number * abs(number), "coulomb_asymmetry": number}
                asymmetries = self._asymmetries.setdefault(name, {})
                for key, term in self._stored_terms(actuator.friction).items():
                    if key in factors:
                        asymmetries[key] = asymmetries.get(key, 0.0) + factors[key] * term

    def _actuator(
        self, tendons: ElementTree.Element, actuators: ElementTree.Element, actuator: Actuator
    ) -> None:
        value = self.mechanism.value
        self._store_friction(f"actuator.{actuator.name}", self._motor_friction(actuator))
        self._extra(f"actuator.{actuator.name}.speed", actuator.speed)
        self._extra(f"actuator.{actuator.name}.rated_force", actuator.rated_force)
        if offset := value(actuator.offset):
            self._extra(f"actuator.{actuator.name}.offset", offset)
            self.notes.append(f"actuator {actuator.name}: MuJoCo does not apply its offset")
        attributes = {"name": actuator.name}
        if actuator.name in self.paths.gears:
            tendon, gear = self.paths.gears[actuator.name]
            attributes |= {"tendon": tendon, "gear": _number(gear)}
        elif len(actuator.drives) == 1:
            name, ratio = actuator.drives[0]
            attributes |= {"joint": name, "gear": _number(value(ratio))}
        else:
            ratios = [(name, value(ratio)) for name, ratio in actuator.drives]
            self._fixed_tendon(
                tendons,
                {"name": f"{actuator.name}.gear"} | _nonzero(self._losses(actuator)),
                ratios,
            )
            attributes |= {"tendon": f"{actuator.name}.gear"}
        if np.isfinite(actuator.force):
            lower, upper = -actuator.force, actuator.force
            if self._only_pulls(actuator):
                _, gear = self.paths.gears[actuator.name]
                if gear < 0.0:
                    lower = 0.0
                else:
                    upper = 0.0
            attributes["ctrlrange"] = _numbers([lower, upper])
        ElementTree.SubElement(actuators, "motor", attributes)


def _acceptable_inertia(inertia: np.ndarray) -> np.ndarray:
    """Return the nearest inertia (3, 3) that MuJoCo accepts after raising moments to its bound.

    MuJoCo requires c <= a + b for moments a <= b <= c.
    """
    (a, b, c), axes = np.linalg.eigh(inertia)
    if max(c, MUJOCO_MINIMUM) <= max(a, MUJOCO_MINIMUM) + max(b, MUJOCO_MINIMUM):
        return inertia
    b = max(b, 0.0)
    a = max(a, c - b + _MOMENT_ROUNDING * c)
    return np.asarray((axes * np.array([a, b, c])) @ axes.T)


def _nonzero(numbers: Mapping[str, float]) -> dict[str, str]:
    return {key: _number(number) for key, number in numbers.items() if number}


def _reason_unreadable(mesh: Path) -> str:
    """Return the reason why MuJoCo cannot read a mesh file; "" if it can."""
    extension = mesh.suffix.lower()
    if extension not in (".stl", ".obj"):
        return "is not an STL or OBJ file, the formats that MuJoCo reads"
    if not mesh.is_file():
        return "does not exist"
    if extension == ".stl" and not is_binary_stl(mesh):
        return "is a text STL file, which MuJoCo rejects"
    return ""


def _number(value: float) -> str:
    return repr(float(value))


def _numbers(values: np.ndarray | list[float]) -> str:
    return " ".join(_number(value) for value in values)


def _pose_attributes(pose: FramePose) -> dict[str, str]:
    """Return the attributes of a pose relative to its parent; empty for the identity."""
    attributes = {"pos": _numbers(pose.position)} if pose.position.any() else {}
    if pose.is_turned:
        attributes["quat"] = _numbers(rotation_quaternion(pose.rotation))
    return attributes
