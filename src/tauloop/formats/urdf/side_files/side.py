"""The side file of a URDF: properties that URDF lacks, as YAML.

.. code-block:: yaml

    format: tauloop-urdf-side/1
    provenance: {status: given, source: data sheet}     # default of all values
    gravity: [0, 0, -9.81 m/s^2]                        # in the frame of the root link
    platform:
      body: tool0
      tool: {at: [0, 0, 0.1 m], turn: [{z: 90 deg}]}    # tool center point on that body
      independent: [joint_1, joint_2]                   # default: every joint
    omitted_forces: [the drag of link rod]              # free text: forces that are not modeled
    unknown_elements: [<tune> in <link>]                # free text: elements of unknown effect
    offsets: {joint_2: -90 deg}                         # URDF's minus measured coordinate
    joints:
      joint_1: {friction: {viscous: 0 N m s/rad, coulomb: 0 N m, offset: 0 N m}, inertia: 0 kg m^2}
      joint_2:                                          # of the measured coordinate
        {spring: {stiffness: 9 N m/rad, rest: 10 deg}, limits: [-inf, 90 deg]}
      joint_3: {limits: {drawing: [-90 deg, 90 deg]}}   # only drawn; a plain list is a hard stop
    floating:                                           # reference frame on the parent
      platform: {at: [0, 0, 0.1 m], turn: [], freedoms: {x: {limits: [-1 m, 1 m]}, wx: {friction:
      {viscous: 0}}}}
    balls:                                              # of an SDF: initial rotation; reversed: its
                                                        # parent and child are swapped
      wrist: {start: [{z: 90 deg}], reversed: no, freedoms: {wx: {friction: {viscous: 0.1 N m
      s/rad}}}}
    couplings:
      belt:                                             # sum of ratio_j q_j = offset
        {of: {joint_1: 1, joint_2: 2, joint_3: -1}, offset: 5 deg}
      clamp: {of: {joint_4: 1}, offset: 30 deg}         # a joint that is held constant
    losses:
      cable:                                            # friction of a combination of joints
        {of: {joint_1: 1, joint_2: -1}, friction: {viscous: 0 N m s/rad}}
    actuators:
      motor_1: {on: joint_1, ratio: 32, inertia: 0 kg m^2, friction: {coulomb: 0 N m}, force: 4 N m,
        speed: 3000 rpm}
      motor_2: {drives: {joint_1: 1, joint_2: -1}}      # p = sum of ratio_j q_j

    closed_loop: [[frame_A, frame_B]]                   # as in Gepetto's robot.yaml (`loop_side`)
    type: [6d]

A motor may have the name of a joint that it drives. Values, friction, springs, couplings, losses
and actuators have the same form as in machine files; ``provenance`` is allowed in any mapping.
Friction, rotor inertia and ratios are independent parameters even if they are zero, because they
may be identified. Offsets become part of the joints' frames, so the mechanism's coordinates are the
measured ones.

Files in Gepetto's form, without ``format``, are also read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

import numpy as np

from tauloop.common.records import dataclass
from tauloop.formats.urdf.builder import Ball, Floating, JointExtra
from tauloop.formats.urdf.constraints import without_repeated_closures
from tauloop.formats.urdf.parts import UrdfJoint, UrdfLoop, UrdfTree, identifier, rotation
from tauloop.formats.urdf.side_files.loop_side import (
    is_loop_side,
    read_closures,
    read_motors,
    with_joint_types,
)
from tauloop.formats.writing.side_grammar import GEPETTO_FILE, side_shape, without_provenance
from tauloop.mechanism.description import yaml_nodes
from tauloop.mechanism.description.cursor import Collector, Cursor
from tauloop.mechanism.description.placements import Placements, constant_turns
from tauloop.mechanism.description.reader import check_actuators, texts
from tauloop.mechanism.description.sections.elements import (
    Coordinates,
    read_actuator,
    read_coupling,
    read_loss,
)
from tauloop.mechanism.description.sections.joints import read_freedom
from tauloop.mechanism.description.structure import Names, document
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import Scalar, parse_nodes, read_text
from tauloop.mechanism.expression import ZERO, Constant, Expression, Parameter
from tauloop.mechanism.model import (
    JOINT_KINDS,
    Actuator,
    CombinedFriction,
    Coupling,
    Freedom,
    Placement,
    Turn,
    Vector,
)
from tauloop.mechanism.poses import rotation_matrix, rotation_quaternion
from tauloop.mechanism.suggestions import listing, suggestion

#: Groups of parameters that are independent even if their value is zero, because they may be
#: identified.
_INDEPENDENT_IF_ZERO = ("friction", "drive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Contents of a side file.

    Attributes:
        tree: the URDF with the joint kinds of the side file.
        gravity: acceleration of gravity, m/s^2; None if absent.
        tool: frame of the tool; None if absent.
        independent: names of the independent velocities; None if absent.
        payload: rated payload, kg.
        joints: properties of joints that URDF lacks, by name.
        couplings, losses: couplings and friction between joints.
        actuators: the actuators; None if absent.
        parameters: independent parameters of the values above.
        loops: loops that the file closes.
        motors: joints with a motor of ratio 1, if the file only lists such joints; None if absent.
        convention: program whose default gravity applies if the file specifies none; "" for
            Tauloop's side files.
        notes: notes for the user.
        omitted_forces, unknown_elements: see `Mechanism`.
    """

    tree: UrdfTree
    gravity: Vector | None = None
    tool: Placement | None = None
    independent: tuple[str, ...] | None = None
    payload: float = 0.0
    joints: Mapping[str, JointExtra] = field(default_factory=dict)
    couplings: tuple[Coupling, ...] = ()
    losses: tuple[CombinedFriction, ...] = ()
    actuators: tuple[Actuator, ...] | None = None
    parameters: tuple[Parameter, ...] = ()
    loops: tuple[UrdfLoop, ...] = ()
    motors: tuple[str, ...] | None = None
    convention: str = ""
    notes: tuple[str, ...] = ()
    omitted_forces: tuple[str, ...] = ()
    unknown_elements: tuple[str, ...] = ()


def read_side(path: str | Path, tree: UrdfTree) -> Side:
    """Read the side file of a URDF.

    Args:
        path: the YAML file.
        tree: the URDF with the names that the side file uses.

    Returns:
        The contents of the side file.

    Raises:
        DescriptionError: all problems, each with key path and line.
    """
    path = Path(path)
    node = parse_nodes(read_text(path), str(path))
    name = str(path)
    if is_loop_side(node):
        root = document(node, name, GEPETTO_FILE)
        tree = with_joint_types(root, tree)
        loops = read_closures(root, tree)
        motors = read_motors(root, tree)
        side = Side(tree=tree, loops=loops, motors=motors, convention="Pinocchio")
    else:
        grammar = side_shape(tree)
        top = Cursor(
            node=node, kind=grammar, where="", leaf="", prefix="", collector=Collector(name)
        )
        node, origins, (status, _) = without_provenance(top, ("chosen", path.name))
        root = document(node, name, grammar, path.parent, top.collector)
        values = ValueReader(None, origins=origins, unknown=_INDEPENDENT_IF_ZERO)
        side = _SideReader(root, values, tree).side()
        if isinstance(top.node, yaml_nodes.Mapping) and top.node.get("provenance") is None:
            side = replace(
                side, notes=(f"{path.name} states no provenance, so its values are {status}",)
            )
    root.collector.raise_any()
    loops = without_repeated_closures(side.tree.loops, side.loops, side.tree.joints)
    return replace(side, tree=replace(side.tree, loops=loops))


class _SideReader:
    """Reader of the sections of a side file; each section is read once."""

    def __init__(self, root: Cursor, values: ValueReader, tree: UrdfTree) -> None:
        self._root = root
        self._values = values
        self._tree = tree
        self._placements = Placements(values, Names())
        self._joints = {joint.name: joint for joint in tree.joints}
        self._coordinates = Coordinates()
        for joint in tree.joints:
            self._coordinates.add_joint(joint.name, joint.kind)

    def side(self) -> Side:
        """Read all sections."""
        values = self._values
        offsets = {
            name: values.expression(cursor) or ZERO for name, cursor in self._fields("offsets")
        }
        platform = self._root.get("platform")
        tool, independent = self._platform(platform)
        payload = 0.0
        if platform is not None:
            payload = values.number(platform.get("payload")) or 0.0
        gravity = self._root.get("gravity")
        extras = self._extras(offsets) | {
            name: self._floating(name, cursor) for name, cursor in self._fields("floating")
        }
        extras |= {name: self._ball(name, cursor) for name, cursor in self._fields("balls")}
        couplings = [
            read_coupling(name, cursor, values, self._coordinates)
            for name, cursor in self._named("couplings")
        ]
        actuators = self._actuators()
        valid_actuators = None
        if actuators is not None:
            valid_actuators = tuple(item for item in actuators.values() if item is not None)
        losses = [
            read_loss(name, cursor, values, self._coordinates, actuators or {})
            for name, cursor in self._named("losses")
        ]
        return Side(
            tree=self._tree,
            gravity=values.vector(gravity) if gravity is not None else None,
            tool=tool,
            independent=independent,
            payload=payload,
            joints=extras,
            couplings=tuple(coupling for coupling in couplings if coupling is not None),
            losses=tuple(loss for loss in losses if loss is not None),
            actuators=valid_actuators,
            parameters=values.table().parameters,
            loops=read_closures(self._root, self._tree),
            omitted_forces=texts(self._root, "omitted_forces"),
            unknown_elements=texts(self._root, "unknown_elements"),
        )

    def _fields(self, section: str) -> list[tuple[str, Cursor]]:
        """Return the entries of a section by joint, in the order of the URDF."""
        section_cursor = self._root.get(section)
        if section_cursor is None:
            return []
        cursors = ((name, section_cursor.get(name)) for name in self._joints)
        return [(name, cursor) for name, cursor in cursors if cursor is not None]

    def _named(self, section: str) -> list[tuple[str, Cursor]]:
        """Return the elements that a section defines, by name.

        Independent parameters are named after these elements.
        """
        entries = self._root.entries_of(section)
        for name, cursor in entries:
            if identifier(name) != name:
                cursor.problem(f"{name!r} is not a valid name", "use letters, digits and _")
        return [(name, replace(cursor, leaf=name)) for name, cursor in entries]

    def _is_known(self, cursor: Cursor, name: str, known: Iterable[str], kind: str) -> bool:
        """Return whether a name is known; otherwise add a problem."""
        known = tuple(known)
        if name in known:
            return True
        remedy = suggestion(name, known) or f"there are {listing(known) or 'none'}"
        cursor.problem(f"there is no {kind} {cursor.text!r}", remedy)
        return False

    def _platform(self, cursor: Cursor | None) -> tuple[Placement | None, tuple[str, ...] | None]:
        """Return the tool's frame and the names of the independent velocities."""
        if cursor is None:
            return None, None
        links = [link.name for link in self._tree.links if link.name != self._tree.root]
        tool = independent = None
        body = cursor.get("body")
        if body is not None and body.text:
            name = self._tree.link_name(body.text)
            if self._is_known(body, name, links, "moving link"):
                tool = self._placements.on(name, cursor.get("tool"))
        items = cursor.get("independent")
        if items is not None:
            velocities = [
                f"{joint.name}.{suffix}" if suffix else joint.name
                for joint in self._tree.joints
                for suffix in JOINT_KINDS[joint.kind].velocities
            ]
            names: list[str] = []
            for item in items.items():
                word = item.text or ""
                if word and self._is_known(item, word, velocities, "coordinate") and word in names:
                    item.problem(f"{word!r} is listed twice", "remove one")
                names.append(word)
            independent = tuple(names)
        return tool, independent

    def _extras(self, offsets: Mapping[str, Expression]) -> dict[str, JointExtra]:
        """Return the properties of joints with one coordinate, by name."""
        extras = {}
        cursors = dict(self._fields("joints"))
        for name in dict.fromkeys((*offsets, *cursors)):
            cursor = cursors.get(name)
            offset = offsets.get(name, ZERO)
            is_angular = self._joints[name].kind == "revolute"
            extras[name] = JointExtra(
                offset=offset,
                offset_value=self._values.nominal(offset),
                freedom=self._freedom(cursor, name, is_angular),
                has_limits=cursor is not None and cursor.has("limits"),
            )
        return extras

    def _freedom(self, cursor: Cursor | None, leaf: str, is_angular: bool) -> Freedom:
        """Return a degree of freedom; without properties if the file has no entry for it."""
        if cursor is None:
            return Freedom()
        return read_freedom(replace(cursor, leaf=leaf), self._values, is_angular, None)

    def _joint_freedoms(self, name: str, cursor: Cursor, kind: str) -> tuple[Freedom, ...]:
        """Return the degrees of freedom of a floating or ball joint from its key `freedoms`."""
        entries = cursor.get("freedoms")
        freedoms = []
        velocities = zip(JOINT_KINDS[kind].velocities, JOINT_KINDS[kind].angular, strict=True)
        for suffix, is_angular in velocities:
            entry = entries.get(suffix) if entries is not None else None
            freedoms.append(self._freedom(entry, f"{name}.{suffix}", is_angular))
        return tuple(freedoms)

    def _floating(self, name: str, cursor: Cursor) -> JointExtra:
        """Return the properties of a floating joint."""
        frame = self._placements.on("", cursor)
        freedoms = self._joint_freedoms(name, cursor, "free")
        reference = self._reference(frame, self._joints[name])
        return JointExtra(floating=Floating(frame=frame, reference=reference, freedoms=freedoms))

    def _ball(self, name: str, cursor: Cursor) -> JointExtra:
        """Return the properties of a ball joint."""
        freedoms = self._joint_freedoms(name, cursor, "spherical")
        rotations = constant_turns(cursor.get("start"), self._values) or []
        start = tuple(Turn(axis, Constant(angle)) for axis, angle in rotations)
        is_reversed = cursor.word("reversed") == "yes"
        return JointExtra(ball=Ball(start=start, is_reversed=is_reversed, freedoms=freedoms))

    def _reference(self, frame: Placement, joint: UrdfJoint) -> tuple[float, ...]:
        """Return a floating joint's coordinates (7,) relative to a frame, at the URDF's pose."""
        R = rotation_matrix([(turn.axis, self._values.nominal(turn.angle)) for turn in frame.turns])
        origin = np.array([self._values.nominal(x) for x in frame.position])
        position = R.T @ (np.array(joint.xyz) - origin)
        quaternion = rotation_quaternion(R.T @ rotation(joint.rpy))
        return tuple(float(value) for value in (*position, *quaternion))

    def _actuators(self) -> dict[str, Actuator | None] | None:
        """Return the actuators by name; None if the file does not list actuators."""
        if not self._root.has("actuators"):
            return None
        used_names = {link.name for link in self._tree.links} | set(self._joints)
        actuators: dict[str, Actuator | None] = {}
        cursors = dict(self._named("actuators"))
        for name, cursor in cursors.items():
            if name in self._joints:
                # losses and springs of the joint use its name
                cursor = replace(cursor, leaf=f"{name}.motor")
            cursor = _renamed(cursor)
            driven = [cursor.word("on")]
            if cursor.has("drives"):
                driven = [joint for joint, _ in cursor.entries_of("drives")]
            if name in used_names and name not in driven:
                what = f"{name!r} is the name of a link, or of a joint that it does not drive"
                cursor.problem(what, "choose another name")
            actuators[name] = read_actuator(name, cursor, self._values, self._coordinates)
        check_actuators(cursors, actuators)
        return actuators


def _renamed(cursor: Cursor) -> Cursor:
    """Return an actuator's cursor with the mechanism's name of its joint instead of URDF's name."""
    on = cursor.word("on")
    if not on or not isinstance(cursor.node, yaml_nodes.Mapping) or identifier(on) == on:
        return cursor
    entries = (
        replace(entry, value=replace(entry.value, text=identifier(on)))
        if entry.key == "on" and isinstance(entry.value, Scalar)
        else entry
        for entry in cursor.node.entries
    )
    return replace(cursor, node=replace(cursor.node, entries=tuple(entries)))
