"""The worldbody of an MJCF file: bodies with inertia, and the joints between them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field

import numpy as np

from tauloop.common.errors import Problems
from tauloop.common.records import dataclass
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.imported.starts import ball_joint, free_joint
from tauloop.formats.lengths import largest_length, without_rounding
from tauloop.formats.mjcf.geoms import GeomReader
from tauloop.formats.mjcf.inertia import body_inertia
from tauloop.formats.mjcf.settings import FORCE_RANGE, FORCE_SWITCH, MjcfReader
from tauloop.formats.urdf.parts import identifier
from tauloop.formats.xml.nodes import XmlNode
from tauloop.mechanism.description.placements import (
    placed,
    turns_to_axes,
    turns_to_axis,
    with_turns,
)
from tauloop.mechanism.expression import ZERO, Constant, Expression, negate
from tauloop.mechanism.model import (
    BASE,
    JOINT_KINDS,
    AxisName,
    Body,
    Freedom,
    Friction,
    Joint,
    Placement,
    Spring,
    Turn,
)
from tauloop.mechanism.poses import FramePose

#: Kind of joint in Tauloop by MuJoCo's type.
_KIND_OF_JOINT_TYPE = {
    "hinge": "revolute",
    "slide": "prismatic",
    "ball": "spherical",
    "free": "free",
}
#: Axes of the successive rotations of a frame.
_YAW_PITCH_ROLL: tuple[AxisName, ...] = ("z", "y", "x")
#: Elements that generate bodies which are not in the file.
GENERATORS = ("replicate", "composite", "flexcomp", "attach", "plugin")
#: Elements with a position on a body.
_ELEMENTS_WITH_POSITION = ("body", "frame", "joint", "site", "inertial")
#: Constraints between two bodies at a point.
_POINT_CONSTRAINTS = ("connect", "weld")
#: Angles (rad) and axis lengths below this are rounding errors of a product of poses.
_ANGLE_ROUNDING = 1e-12


@dataclass(slots=True)
class Bodies:
    """Bodies and joints read from the worldbody.

    Attributes:
        bodies, joints: bodies and joints, parents before their children. Massless bodies connect
            the joints of a body with several joints.
        world: pose of every body in the world at the initial coordinates.
        kinds: kind of every joint of the file.
        references: initial coordinate of each hinge and slide.
        sites: (body, pose on the body) of each site.
        body_names, joint_names: names in the mechanism by names in the file.
        rests: rest coordinate of the spring of each hinge and slide.
        compensated: compensated fraction of the weight of each body (gravcomp) if it is not zero.
        commanded: joints at which the actuators supply the compensation (actuatorgravcomp).
        prescribed: bodies that are moved externally (mocap).
        force_ranges: range of the force of all actuators on a joint (actuatorfrcrange), N or N m.
        last: last body of the file that has mass and moves.
        heaviest: largest mass of a body, kg.
    """

    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    world: dict[str, FramePose] = field(default_factory=lambda: {BASE: FramePose()})
    kinds: dict[str, str] = field(default_factory=dict)
    references: dict[str, Expression] = field(default_factory=dict)
    sites: dict[str, tuple[str, FramePose]] = field(default_factory=dict)
    body_names: dict[str, str] = field(default_factory=lambda: {"world": BASE})
    joint_names: dict[str, str] = field(default_factory=dict)
    rests: dict[str, float] = field(default_factory=dict)
    compensated: dict[str, float] = field(default_factory=dict)
    commanded: set[str] = field(default_factory=set)
    prescribed: set[str] = field(default_factory=set)
    force_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    last: str = ""
    heaviest: float = 0.0


class TreeReader:
    """Reader of the worldbody and its descendants."""

    def __init__(
        self, reader: MjcfReader, leaves: Leaves, geoms: GeomReader, root: XmlNode
    ) -> None:
        """Create a reader that has only read the world.

        Args:
            reader: reads attributes and collects problems.
            leaves: receives the independent parameters.
            geoms: receives the geoms, for drawing.
            root: the element ``<mujoco>``, with the positions of all frames.
        """
        self.largest_length = largest_length(_positions(root))
        self._geoms = geoms
        self._reader = reader
        self._leaves = leaves
        self._used_names: set[str] = {BASE}
        self._fixed_bodies: set[str] = {BASE}
        #: First of the bodies that are welded together, by the name of each moving body.
        self._weld_roots: dict[str, str] = {}
        #: Moving bodies whose ``<inertial>`` was used.
        self._inertial_bodies: set[str] = set()
        self.bodies = Bodies()

    def read(self, world: XmlNode) -> Bodies:
        """Return the bodies and joints below the world."""
        for child, _, _ in self._flattened(world, FramePose(), ""):
            if child.tag in ("joint", "freejoint", "inertial"):
                what = f"the world has a <{child.tag}>, but it does not move"
                self._reader.problem(child, child.tag, what, "move it into a body")
        self._children(world, BASE, FramePose(), "")
        return self.bodies

    def placement(self, body: str, pose: FramePose, name: str) -> Placement:
        """Return a frame on a body, with a parameter for each nonzero number."""
        position = without_rounding(pose.position, self.largest_length)
        origin = self._leaves.vector(f"{name}.at", position, "m", "geometry")
        turns = tuple(
            Turn(
                turn.axis,
                self._leaves.leaf(f"{name}.turn.{turn.axis}", turn.angle.value, "rad", "geometry"),
            )
            for turn in turns_to_axes(pose.rotation[:, 0].tolist(), pose.rotation[:, 1].tolist())
            if isinstance(turn.angle, Constant) and abs(turn.angle.value) > _ANGLE_ROUNDING
        )
        return Placement(body=body, position=origin, turns=turns)

    def _children(self, node: XmlNode, body: str, frame: FramePose, childclass: str) -> None:
        """Read the bodies, sites and geoms inside a body."""
        for child, outer, inherited in self._flattened(node, frame, childclass):
            if child.tag == "body":
                self._body(child, body, outer, inherited)
            elif child.tag == "site":
                self._site(child, body, outer, inherited)
            elif child.tag == "geom":
                self._geoms.read(body, child, outer, inherited)
            elif child.tag in GENERATORS:
                what = f"<{child.tag}> creates elements that are not in the file"
                self._reader.problem(
                    child, child.tag, what, "let MuJoCo save the compiled model: mj_saveLastXML"
                )

    def _flattened(
        self, node: XmlNode, frame: FramePose, childclass: str
    ) -> Iterator[tuple[XmlNode, FramePose, str]]:
        """Return the children of a body, each with the pose of its enclosing ``<frame>``."""
        for child in node.children:
            if child.tag == "frame":
                inner = frame @ self._reader.pose(child, "frame")
                self._reader.use(child, "name")
                yield from self._flattened(child, inner, self._reader.childclass(child, childclass))
            else:
                yield child, frame, childclass

    def _name(self, node: XmlNode, fallback: str, known: dict[str, str]) -> str:
        """Return a new name, replaced if it is missing or used by another kind of element."""
        original = self._reader.word(node, "name")
        name = identifier(original) or fallback
        if original in known:
            self._reader.problem(
                node, original, f"another {node.tag} has this name", "rename one of the two"
            )
        while name in self._used_names:
            name = f"{name}_{node.tag}"
        if original and name != original:
            self._reader.notes.append(f"{node.tag} {original!r} is renamed to {name!r}")
        self._used_names.add(name)
        known[original or name] = name
        return name

    def _body(self, node: XmlNode, parent: str, frame: FramePose, inherited: str) -> None:
        """Read a body with its joints and inertia, and all bodies inside it."""
        reader = self._reader
        name = self._name(node, f"body_{len(self.bodies.bodies) + 1}", self.bodies.body_names)
        childclass = reader.childclass(node, inherited)
        pose = frame @ reader.pose(node, name)
        self.bodies.world[name] = self.bodies.world[parent] @ pose
        children = list(self._flattened(node, FramePose(), childclass))
        geoms = [
            (reader.resolved(child, element_class), outer)
            for child, outer, element_class in children
            if child.tag == "geom"
        ]
        inertials = [(child, outer) for child, outer, _ in children if child.tag == "inertial"]
        joints = [
            (child, outer, element_class)
            for child, outer, element_class in children
            if child.tag in ("joint", "freejoint")
        ]
        if not joints and parent in self._fixed_bodies:
            self._fixed_bodies.add(name)  # it does not move, so its inertia has no effect
            problems, reader.problems = reader.problems, Problems()
            inertia = body_inertia(reader, name, inertials, geoms, self._geoms)
            inertia = None if len(reader.problems) else inertia
            reader.problems = problems
        else:
            inertia = body_inertia(reader, name, inertials, geoms, self._geoms)
        if name not in self._fixed_bodies:
            self._weld_roots[name] = name if joints else self._weld_roots[parent]
            if inertials and inertia is not None and name not in reader.solids:
                self._inertial_bodies.add(name)
            if reader.compiler.drops_inertials:
                self._refuse_dropped_inertial(node, name)
        self._joints(node, name, parent, pose, joints)
        if reader.word(node, "mocap") == "true":
            self.bodies.prescribed.add(name)
            reader.notes.append(f"{name}: moved externally in MuJoCo (mocap), at rest here")
        fraction = reader.value(node, name, "gravcomp")
        if fraction:
            self.bodies.compensated[name] = fraction
        if inertia is None or inertia.mass == 0.0:
            reader.massless.append(name)
        parameters = None if inertia is None else self._leaves.inertia(name, inertia)
        self.bodies.heaviest = max(self.bodies.heaviest, 0.0 if inertia is None else inertia.mass)
        self.bodies.bodies.append(Body(name=name, inertia=parameters))
        if inertia is not None and inertia.mass > 0.0 and name not in self._fixed_bodies:
            self.bodies.last = name
        self._children(node, name, FramePose(), childclass)

    def _refuse_dropped_inertial(self, node: XmlNode, name: str) -> None:
        """Add a problem if MuJoCo drops the ``<inertial>`` of a body or of the body it is welded to."""
        root = self._weld_roots[name]
        if root == name:
            return
        dropped = name
        if name in self._reader.solids:
            dropped = root
        if dropped in self._inertial_bodies:
            what = (
                "MuJoCo drops its <inertial>, because the body is welded to another one "
                '(fusestatic="true") and masses follow from geoms (inertiafromgeom="true")'
            )
            remedy = 'set fusestatic="false", or describe the mass by geoms'
            self._reader.problem(node, dropped, what, remedy)

    def _joints(
        self,
        node: XmlNode,
        body: str,
        parent: str,
        pose: FramePose,
        joints: list[tuple[XmlNode, FramePose, str]],
    ) -> None:
        """Add the chain of joints of a body; their axes are in that body's frame."""
        outer = self.placement(parent, pose, body)
        if not joints:
            self._used_names.add(f"{body}_weld")
            self.bodies.joints.append(
                Joint(name=f"{body}_weld", kind="fixed", parent=outer, child=Placement(body=body))
            )
            return
        for index, (joint, frame, inherited) in enumerate(joints):
            resolved = (
                joint if joint.tag == "freejoint" else self._reader.resolved(joint, inherited)
            )
            name = self._name(
                resolved,
                f"{body}_joint{index + 1 if len(joints) > 1 else ''}",
                self.bodies.joint_names,
            )
            moved_body = body if index == len(joints) - 1 else f"{body}_after_{name}"
            if moved_body != body:
                self._used_names.add(moved_body)
                self.bodies.bodies.append(Body(name=moved_body))
            kind = "free" if joint.tag == "freejoint" else self._kind(resolved, name)
            self.bodies.kinds[name] = kind
            if kind == "free":
                if parent != BASE or len(joints) > 1:
                    remedy = "move the body into <worldbody>, or use hinge, slide and ball joints"
                    self._reader.problem(
                        joint,
                        name,
                        "a free joint must be the only joint of a body in <worldbody>",
                        remedy,
                    )
                freedoms = (
                    self._freedoms(resolved, name, kind)
                    if resolved.tag == "joint"
                    else (Freedom(),) * 6
                )
                self.bodies.joints.append(free_joint(name, body, pose, freedoms))
                return
            self.bodies.joints.append(self._joint(resolved, name, kind, frame, outer, moved_body))
            outer = Placement(body=moved_body)

    def _kind(self, node: XmlNode, name: str) -> str:
        word = self._reader.word(node, "type", "hinge")
        if word not in _KIND_OF_JOINT_TYPE:
            self._reader.problem(
                node,
                name,
                f"{word!r} is not a joint type",
                f"use one of {', '.join(_KIND_OF_JOINT_TYPE)}",
            )
        return _KIND_OF_JOINT_TYPE.get(word, "fixed")

    def _joint(
        self, node: XmlNode, name: str, kind: str, frame: FramePose, outer: Placement, body: str
    ) -> Joint:
        reader = self._reader
        center = frame.position + frame.rotation @ reader.triple(node, name, "pos")
        anchor = self.placement(body, FramePose(position=center), f"{name}.anchor").position
        axes: tuple[AxisName, ...] = ()
        turns: tuple[Turn, ...] = ()
        if kind in ("revolute", "prismatic"):
            axis = frame.rotation @ reader.triple(node, name, "axis", (0.0, 0.0, 1.0))
            if not np.linalg.norm(axis) > _ANGLE_ROUNDING:
                reader.problem(
                    node, name, "the axis has length zero", "give a direction, such as 0 0 1"
                )
                axis = np.array([0.0, 0.0, 1.0])
            letter, turns = turns_to_axis(axis / np.linalg.norm(axis))
            axes = (letter,)
        if kind == "spherical":
            return self._ball(
                node, name, placed(outer, anchor, ()), Placement(body=body, position=anchor)
            )
        start = self._start(node, name, kind)
        parent = placed(outer, anchor, turns)
        child = Placement(body=body, position=anchor, turns=turns)
        if start != ZERO and kind == "revolute":
            parent = Placement(
                body=parent.body,
                position=parent.position,
                turns=(*parent.turns, Turn(axes[0], negate(start))),
            )
        elif start != ZERO:
            shift: list[Expression] = [ZERO, ZERO, ZERO]
            shift["xyz".index(axes[0])] = negate(start)
            parent = placed(parent, (shift[0], shift[1], shift[2]), ())
        start_value = self._leaves.value(start)
        return Joint(
            name=name,
            kind=kind,
            parent=parent,
            child=child,
            axes=axes,
            reference=(start_value,) * len(JOINT_KINDS[kind].coordinates),
            freedoms=self._freedoms(node, name, kind),
        )

    def _ball(self, node: XmlNode, name: str, outer: Placement, inner: Placement) -> Joint:
        """Return a ball joint.

        Its quaternion is relative to the file's pose, or to the frame that `mjcf.writer` stored.

        Args:
            node: element of the joint.
            name: name of the joint.
            outer, inner: frames at the joint center on the parent and on the body, in the axes of
                the body.
        """
        frame = self._stored_rotations(node, "frame")
        start = self._stored_rotations(node, "start")
        return ball_joint(
            name=name,
            near=with_turns(outer, frame),
            far=with_turns(inner, frame),
            start=start,
            is_reversed=bool(self._reader.extra("joint", node, "reversed")),
            freedoms=self._freedoms(node, name, "spherical"),
        )

    def _stored_rotations(self, node: XmlNode, what: str) -> tuple[Turn, ...]:
        """Return rotations about z, y and x of a joint that `mjcf.writer` stored."""
        angles = [
            (axis, self._reader.extra("joint", node, f"{what}.{axis}")) for axis in _YAW_PITCH_ROLL
        ]
        return tuple(Turn(axis, Constant(angle)) for axis, angle in angles if angle)

    def _start(self, node: XmlNode, name: str, kind: str) -> Expression:
        """Return the coordinate (`ref`) of the file's pose."""
        scale = self._reader.compiler.angle if kind == "revolute" else 1.0
        value = self._reader.value(node, name, "ref") * scale
        if kind not in ("revolute", "prismatic"):
            return ZERO
        unit = "rad" if kind == "revolute" else "m"
        start = self._leaves.structural(f"{name}.ref", value, unit, "geometry")
        self.bodies.references[name] = start
        return start

    def _freedoms(self, node: XmlNode, name: str, kind: str) -> tuple[Freedom, ...]:
        """Return losses, spring, rotor and limits of each velocity, translations first."""
        if kind == "free":
            translation = self._freedom(node, f"{name}.slide", kind, is_angular=False)
            rotation = self._freedom(node, f"{name}.turn", kind, is_angular=True)
            return (translation,) * 3 + (rotation,) * 3
        freedom = self._freedom(node, name, kind, is_angular=kind != "prismatic")
        return (freedom,) * len(JOINT_KINDS[kind].velocities)

    def _freedom(self, node: XmlNode, name: str, kind: str, *, is_angular: bool) -> Freedom:
        """Return losses, spring, rotor and limits of one velocity of a joint."""
        reader, leaves = self._reader, self._leaves
        damping = reader.value(node, name, "damping")
        loss = reader.value(node, name, "frictionloss")
        armature = reader.value(node, name, "armature")
        if any(reader.numbers(node, name, "springdamper")):
            what = "springdamper is only evaluated by MuJoCo's compiler"
            reader.problem(
                node,
                name,
                what,
                "let MuJoCo save the compiled model: mj_saveLastXML gives stiffness and damping",
            )
        stiffness = reader.value(node, name, "stiffness")
        rest = reader.value(node, name, "springref") * (
            reader.compiler.angle if is_angular else 1.0
        )
        self.bodies.rests[name] = rest
        if any(reader.numbers(node, name, "springyield")):
            reader.omitted.append(f"the yielding of the spring of joint {name}")
        if reader.word(node, "actuatorgravcomp") == "true":
            self.bodies.commanded.add(name)
        lower, upper = self._limits(node, name, kind)
        if kind in ("revolute", "prismatic"):
            forces = reader.limits(node, name, FORCE_RANGE, FORCE_SWITCH)
            if forces is not None:
                self.bodies.force_ranges[name] = forces
        stored_friction = reader.stored_friction("joint", node)
        # on ball and free joints, these depend on the axes of the velocities
        if kind in ("spherical", "free"):
            for value, what in ((stiffness, "spring"), (loss, "dry friction")):
                if value:
                    reader.omitted.append(
                        f"the {what} ({value:g}) of joint {name}, a ball or free joint"
                    )
            stiffness = loss = 0.0
        friction = leaves.friction(
            name, is_angular, viscous=damping, coulomb=loss, **stored_friction
        )
        spring = None
        if stiffness:
            spring = Spring(
                stiffness=leaves.leaf(
                    f"{name}.spring.stiffness",
                    stiffness,
                    "N m/rad" if is_angular else "N/m",
                    "spring",
                ),
                rest=leaves.structural(
                    f"{name}.spring.rest", rest, "rad" if is_angular else "m", "spring"
                ),
            )
        return Freedom(
            friction=Friction(**friction) if friction else None,
            spring=spring,
            inertia=leaves.rotor(name, armature, is_angular),
            lower=reader.extra("joint", node, "lower", lower),
            upper=reader.extra("joint", node, "upper", upper),
            limit="drawing" if reader.extra("joint", node, "drawing") else "stop",
            speed=reader.extra("joint", node, "speed", math.inf),
        )

    def _limits(self, node: XmlNode, name: str, kind: str) -> tuple[float, float]:
        reader = self._reader
        if kind in ("spherical", "free"):
            reader.use(node, "limited")
            if any(reader.numbers(node, name, "range")) and reader.word(node, "limited") != "false":
                reader.notes.append(f"{name}: the range of a ball or free joint is omitted")
            return -math.inf, math.inf
        ends = reader.limits(node, name, "range", "limited")
        if ends is None:
            return -math.inf, math.inf
        scale = reader.compiler.angle if kind == "revolute" else 1.0
        return ends[0] * scale, ends[1] * scale

    def _site(self, node: XmlNode, body: str, frame: FramePose, inherited: str) -> None:
        site = self._reader.resolved(node, inherited)
        name = self._reader.word(site, "name")
        if name:
            self.bodies.sites[name] = (body, frame @ self._reader.pose(site, name))


def _positions(root: XmlNode) -> Iterator[str]:
    """Yield the positions of frames and loop points, without those of shapes and cameras."""
    for node in root.walk():
        if node.tag in _ELEMENTS_WITH_POSITION:
            yield node.attributes.get("pos", "")
        elif node.tag in _POINT_CONSTRAINTS:
            yield node.attributes.get("anchor", "")
