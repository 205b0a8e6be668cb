"""Elements of a URDF or SDF that specify which joints have motors.

These are ``<ros2_control>`` and ``<transmission>`` in the forms of ROS 1, ROS 2 and Drake.

.. code-block:: xml

    <transmission name="drive">                                        <!-- ROS 1, and Drake -->
      <type>transmission_interface/SimpleTransmission</type>
      <joint name="crank"/>
      <actuator name="motor"><mechanicalReduction>50</mechanicalReduction></actuator>
    </transmission>
    <ros2_control name="arm" type="system">                            <!-- ROS 2 -->
      <joint name="crank"><command_interface name="position"/></joint>
      <transmission name="drive">
        <plugin>transmission_interface/SimpleTransmission</plugin>
        <actuator name="motor" role="actuator1"/>
        <joint name="crank" role="joint1">
          <mechanical_reduction>50</mechanical_reduction><offset>0.1</offset>
        </joint>
      </transmission>
    </ros2_control>

With the reductions n of the actuators and m of the joints, and joint positions x = q - offset, the
motor positions p are

- simple: p = n m x;
- differential: p1 = n1 (m1 x1 + m2 x2) and p2 = n2 (m1 x1 - m2 x2);
- four-bar: p1 = n1 m1 x1 and p2 = n2 (x1 + m2 x2).

Forces follow by virtual work. Source: transmission_interface of ros2_control for positions. Its map
of efforts in the four-bar does not conserve power and is not used.

Drake's ``drake:gear_ratio`` and ``drake:rotor_inertia`` add n^2 J at the joint; they are not a
reduction of the motor.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from tauloop.common.counts import counted
from tauloop.formats.urdf.parts import (
    MotorElements,
    MotorStatement,
    StatedMotor,
    UrdfCoupling,
    identifier,
)
from tauloop.formats.xml.nodes import XmlNode, XmlReader, unused_notes
from tauloop.mechanism.suggestions import listing, suggestion

TRANSMISSION, ROS2_CONTROL = "transmission", "ros2_control"
#: Elements that enclose transmissions in files for Gazebo.
_WRAPPERS = ("gazebo", "plugin")
#: Interfaces that command a motor; other interfaces set gains and switches.
COMMAND_INTERFACES = ("position", "velocity", "effort")
#: Numbers of joints and of actuators of a transmission, by the last part of its type.
_COUNTS = {"SimpleTransmission": 1, "DifferentialTransmission": 2, "FourBarLinkageTransmission": 2}
_REDUCTIONS = ("mechanicalReduction", "mechanical_reduction")
_GEAR_RATIO = "drake:gear_ratio"
_ROTOR_INERTIA = "drake:rotor_inertia"
#: Elements that are read: inside a transmission, in its joints and actuators, inside a
#: ``<ros2_control>``, and in its joints.
_TRANSMISSION_TAGS = ("type", "plugin", "joint", "actuator", *_REDUCTIONS)
_TRANSMISSION_END_TAGS = (
    "role",
    "hardwareInterface",
    "offset",
    *_REDUCTIONS,
    _GEAR_RATIO,
    _ROTOR_INERTIA,
)
_CONTROL_TAGS = ("joint", TRANSMISSION)
_CONTROL_STATEMENTS = ("command_interface", "state_interface", TRANSMISSION)
_CONTROLLED_JOINT_TAGS = ("command_interface", "state_interface", "param")


def read_motor_elements(
    file: str, robot: XmlNode, joints: Collection[str], followers: Collection[str]
) -> MotorElements:
    """Return the motors, rotors and couplings that the elements of a file specify.

    Args:
        file: name of the file for messages.
        robot: the root element.
        joints: names (in the mechanism) of the joints that rotate or slide.
        followers: joints that follow another by ``<mimic>``.
    """
    nodes = motor_nodes(robot)
    controls = [node for node in nodes if node.tag == ROS2_CONTROL]
    transmissions = [node for node in nodes if node.tag == TRANSMISSION]
    empty = [node for node in transmissions if node.first("joint") is None]
    empty += [node for node in controls if not _has_statements(node)]
    controls = [node for node in controls if node not in empty]
    transmissions = [node for node in transmissions if node not in empty]
    all_transmissions = [
        *transmissions,
        *(node for control in controls for node in control.all(TRANSMISSION)),
    ]
    statements: list[MotorStatement] = []
    couplings: list[UrdfCoupling] = []
    if controls:
        control = _ControlReader(file, joints, followers)
        statements.append(control.statement(controls))
        couplings = control.couplings
    if transmissions:
        reader = _TransmissionReader(file, joints)
        motors = reader.motors(transmissions, followers)
        statements.append(
            MotorStatement(
                source=f"<{TRANSMISSION}>",
                motors=motors,
                passive=tuple(reader.passive),
                problems=tuple(reader.problems),
            )
        )
    return MotorElements(
        statements=tuple(statements),
        rotors=_rotors(file, all_transmissions, joints),
        couplings=tuple(couplings),
        notes=tuple(_unread(empty, controls, all_transmissions)),
    )


def _has_statements(control: XmlNode) -> bool:
    """Return whether a ``<ros2_control>`` has interfaces or transmissions."""
    return any(inner.tag in _CONTROL_STATEMENTS for inner in control.walk())


def motor_nodes(parent: XmlNode) -> list[XmlNode]:
    """Return the elements that specify motors, including those in ``<gazebo>`` and plugins."""
    nodes: list[XmlNode] = []
    for child in parent.children:
        if child.tag in (TRANSMISSION, ROS2_CONTROL):
            nodes.append(child)
        elif child.tag in _WRAPPERS:
            nodes += motor_nodes(child)
    return nodes


def driven_names(nodes: Sequence[XmlNode]) -> set[str]:
    """Return the names of joints that these elements command or connect to an actuator."""
    names: set[str] = set()
    for node in nodes:
        for inner in node.walk():
            has_command = inner.tag == "joint" and inner.first("command_interface") is not None
            driven: list[XmlNode] = []
            if inner.tag == TRANSMISSION:
                driven = list(inner.all("joint"))
            elif has_command:
                driven = [inner]
            names.update(joint.attributes.get("name", "").strip() for joint in driven)
    return names


def with_unique_names(motors: Sequence[StatedMotor]) -> tuple[StatedMotor, ...]:
    """Return the motors without duplicates; append the names of the joints to equal names."""
    motors = tuple(dict.fromkeys(motors))
    count = Counter(motor.name for motor in motors)

    def renamed(motor: StatedMotor) -> StatedMotor:
        if count[motor.name] == 1:
            return motor
        joints = "_".join(name for name, _ in motor.drives)
        return replace(motor, name=f"{joints}_{motor.name}")

    return tuple(renamed(motor) for motor in motors)


class _JointNames(XmlReader):
    """Looks up joints by the names in elements."""

    def __init__(self, file: str, joints: Collection[str]) -> None:
        super().__init__(file)
        self._joints = joints

    def joint(self, node: XmlNode, where: str) -> str:
        """Return the joint that an element names; "" after adding a problem if it cannot move."""
        name = identifier(self.text(node, where, "name"))
        if (
            name not in self._joints and f"{name}_joint" in self._joints
        ):  # renamed: a link has this name
            name = f"{name}_joint"
        if name in self._joints:
            return name
        if name:
            remedy = suggestion(name, self._joints) or "name a joint that rotates or slides"
            self.problem(node, where, f"there is no joint {name!r} that rotates or slides", remedy)
        return ""

    def content(self, node: XmlNode, where: str, tags: Sequence[str], default: float) -> float:
        """Return the number in the first child with one of these tags."""
        child = next((child for child in node.children if child.tag in tags), None)
        if child is None or not child.content:
            return default
        return self._numbers(child, where, "the text", child.content, 1)[0]


class _TransmissionReader(_JointNames):
    """Reads transmissions of both dialects.

    Attributes:
        passive: joints that transmissions connect only to state interfaces.
    """

    def __init__(self, file: str, joints: Collection[str]) -> None:
        super().__init__(file, joints)
        self.passive: list[str] = []

    def motors(self, nodes: Sequence[XmlNode], passive: Collection[str]) -> tuple[StatedMotor, ...]:
        """Return the motors of all transmissions, except those with only passive joints."""
        motors: list[StatedMotor] = []
        for node in nodes:
            motors_of_node = self._motors(node)
            driven = {name for motor in motors_of_node for name, _ in motor.drives}
            measured = {name for name in driven if self._is_measured(node, name)}
            self.passive.extend(sorted(measured))
            if driven - measured - set(passive):
                motors.extend(motors_of_node)
        return with_unique_names(motors)

    def _motors(self, node: XmlNode) -> list[StatedMotor]:
        """Return the motors of a transmission (empty after adding a problem)."""
        where = node.attributes.get("name", TRANSMISSION)
        word = self._type(node)
        kind = re.split("[/:]", word)[-1]
        if kind not in _COUNTS:
            what = "has no <type> and no <plugin>"
            if word:
                what = f"a transmission of type {word!r} is not supported"
            self.problem(
                node,
                where,
                what,
                f"use one of {listing(_COUNTS)}, or name the motors: `--motors JOINT,...`",
            )
            return []
        joints = self._by_role(node, where, "joint")
        actuators = self._by_role(node, where, "actuator")
        if len(joints) != _COUNTS[kind] or len(actuators) != _COUNTS[kind]:
            actuator_count = counted(len(actuators), "actuator")
            what = f"a {kind} has {counted(len(joints), 'joint')} and {actuator_count}"
            self.problem(node, where, what, f"it needs {_COUNTS[kind]} of each")
            return []
        names = [self.joint(joint, where) for joint in joints]
        if not all(names):
            return []
        m = [self._reduction(joint, where) for joint in joints]
        n = [self._reduction(actuator, where) for actuator in actuators]
        offset_of = {
            name: self.content(joint, where, ("offset",), 0.0)
            for name, joint in zip(names, joints, strict=True)
        }
        if kind == "SimpleTransmission":
            # files of the PR2 robot specify another reduction directly in <transmission>
            rows = [[n[0] * m[0] * self._reduction(node, where)]]
        elif kind == "DifferentialTransmission":
            rows = [[n[0] * m[0], n[0] * m[1]], [n[1] * m[0], -n[1] * m[1]]]
        else:
            rows = [[n[0] * m[0], 0.0], [n[1], n[1] * m[1]]]
        motors: list[StatedMotor] = []
        for actuator, row in zip(actuators, rows, strict=True):
            name = identifier(self.text(actuator, where, "name")) or identifier(where)
            drives = tuple((joint, ratio) for joint, ratio in zip(names, row, strict=True) if ratio)
            offsets = tuple(offset_of[joint] for joint, _ in drives)
            motors.append(
                StatedMotor(name=name, drives=drives, offsets=offsets if any(offsets) else ())
            )
        return motors

    def _type(self, node: XmlNode) -> str:
        """Return the type of a transmission.

        It is the plugin in ROS 2, and an attribute in Drake and old ROS 1.
        """
        for tag in ("plugin", "type"):
            child = node.first(tag)
            if child is not None:
                return child.content
        return node.attributes.get("type", "").strip()

    def _by_role(self, node: XmlNode, where: str, tag: str) -> list[XmlNode]:
        """Return joints or actuators in the order of their roles; without roles, in file order."""
        nodes = [*node.all(tag)]
        roles = [self._role(child) for child in nodes]
        if not any(roles):
            return nodes
        expected = [f"{tag}{number + 1}" for number in range(len(nodes))]
        if sorted(roles) != expected:
            what = f"the {tag}s have the roles {', '.join(role or 'none' for role in roles)}"
            self.problem(node, where, what, f"use each of {', '.join(expected)} once")
        return [
            child for _, child in sorted(zip(roles, nodes, strict=True), key=lambda pair: pair[0])
        ]

    def _role(self, node: XmlNode) -> str:
        """Return the role of a joint or actuator, from an element or an attribute."""
        child = node.first("role")
        return node.attributes.get("role", "").strip() if child is None else child.content

    def _reduction(self, node: XmlNode, where: str) -> float:
        """Return the reduction in an element, 1 if it has none."""
        value = self.content(node, where, _REDUCTIONS, 1.0)
        if value == 0.0:
            self.problem(
                node,
                where,
                "the reduction is zero",
                "give the motor's motion per motion of the joint",
            )
            return 1.0
        return value

    def _is_measured(self, node: XmlNode, name: str) -> bool:
        """Return whether a transmission connects a joint only to state interfaces (ROS 1)."""
        for joint in node.all("joint"):
            interfaces = [child.content for child in joint.all("hardwareInterface")]
            if interfaces and identifier(joint.attributes.get("name", "")) in (
                name,
                name.removesuffix("_joint"),
            ):
                return all(interface.endswith("StateInterface") for interface in interfaces)
        return False


class _ControlReader(_JointNames):
    """Reads ``<ros2_control>``.

    Attributes:
        couplings: joints that follow another by the parameters ``mimic`` and ``multiplier``.
    """

    def __init__(self, file: str, joints: Collection[str], followers: Collection[str]) -> None:
        super().__init__(file, joints)
        self._followers = set(followers)
        self.couplings: list[UrdfCoupling] = []

    def statement(self, controls: Sequence[XmlNode]) -> MotorStatement:
        """Return the motors and couplings of all such elements of a file."""
        driven: list[str] = []
        measured: list[str] = []
        for control in controls:
            for node in control.all("joint"):
                commands = {
                    child.attributes.get("name", "").strip()
                    for child in node.all("command_interface")
                }
                is_driven = not commands.isdisjoint(COMMAND_INTERFACES)
                if (
                    not is_driven
                    and identifier(node.attributes.get("name", "")) not in self._joints
                ):
                    continue  # a sensor on a joint that does not move
                name = self.joint(node, control.attributes.get("name", ROS2_CONTROL))
                if not name:
                    continue
                self._add_follower(node, name)
                if is_driven:
                    driven.append(name)
                elif node.first("state_interface") is not None:
                    measured.append(name)
        passive = [name for name in dict.fromkeys(measured) if name not in driven]
        passive += [name for name in dict.fromkeys(driven) if name in self._followers]
        reader = _TransmissionReader(self.file, self._joints)
        geared = reader.motors(
            [node for control in controls for node in control.all(TRANSMISSION)], passive
        )
        geared_joints = {name for motor in geared for name, _ in motor.drives}
        direct = [
            StatedMotor(name=name, drives=((name, 1.0),))
            for name in dict.fromkeys(driven)
            if name not in geared_joints and name not in self._followers
        ]
        return MotorStatement(
            source=f"<{ROS2_CONTROL}>",
            motors=(*direct, *geared),
            passive=tuple(name for name in passive if name not in geared_joints),
            problems=(*self.problems, *reader.problems),
        )

    def _add_follower(self, node: XmlNode, name: str) -> None:
        """Add a joint that follows another, by the URDF's ``<mimic>`` or by parameters."""
        parameters = {
            child.attributes.get("name", "").strip(): child for child in node.all("param")
        }
        if node.attributes.get("mimic", "").strip() == "false" and name in self._followers:
            what = '<ros2_control> sets mimic="false" for a joint that has <mimic>'
            self.problem(node, name, what, 'remove <mimic>, or mimic="false"')
        if "mimic" not in parameters or name in self._followers:
            return
        other = parameters["mimic"].content
        leader = identifier(other)
        if leader not in self._joints or leader == name:
            remedy = suggestion(leader, self._joints) or "name a joint that rotates or slides"
            self.problem(
                node,
                name,
                f"it mimics {other!r}, which is not another joint that rotates or slides",
                remedy,
            )
            return
        multiplier = parameters.get("multiplier")
        factor = 1.0
        if multiplier is not None and multiplier.content:
            factor = self._numbers(multiplier, name, "multiplier", multiplier.content, 1)[0]
        terms = ((name, 1.0), (leader, -factor)) if factor else ((name, 1.0),)
        self.couplings.append(UrdfCoupling(name=f"{name}_mimic", terms=terms, mimics=True))
        self._followers.add(name)


def _rotors(
    file: str, nodes: Sequence[XmlNode], joints: Collection[str]
) -> dict[str, tuple[float, float]]:
    """Return Drake's (gear ratio, rotor inertia) by joint, if a rotor inertia is stated."""
    reader = _JointNames(file, joints)
    rotors: dict[str, tuple[float, float]] = {}
    for node in nodes:
        where = node.attributes.get("name", TRANSMISSION)
        for parent in (node, *node.all("joint")):
            for tag in (_GEAR_RATIO, _ROTOR_INERTIA):
                if (child := parent.first(tag)) is not None:
                    what = f"<{tag}> in <{parent.tag}> is not supported: it belongs to a motor"
                    remedy = "move it into <actuator>, where it adds n^2 J at the joint"
                    reader.problem(child, where, what, remedy)
        actuators = [
            actuator
            for actuator in node.all("actuator")
            if actuator.first(_ROTOR_INERTIA) is not None
        ]
        for actuator in actuators:
            joint = node.first("joint")
            if joint is None or len([*node.all("joint")]) != 1:
                what = f"<{_ROTOR_INERTIA}> is not supported in a transmission of several joints"
                reader.problem(
                    node, where, what, "put the rotor's inertia into a side file: `actuators`"
                )
                continue
            numbers: list[float] = []
            for tag in (_GEAR_RATIO, _ROTOR_INERTIA):
                child = actuator.first(tag)
                numbers.append(1.0 if child is None else reader.number(child, where, "value"))
            if numbers[1] < 0.0:
                reader.problem(
                    actuator,
                    where,
                    f"the rotor's inertia is {numbers[1]:g}",
                    "give zero or a positive number",
                )
            if name := reader.joint(joint, where):
                rotors[name] = (numbers[0], numbers[1])
    reader.raise_any()
    return rotors


def _unread(
    empty: Sequence[XmlNode], controls: Sequence[XmlNode], transmissions: Sequence[XmlNode]
) -> list[str]:
    """Return notes on elements without a joint, and on unused contents of the other elements."""
    counts = Counter(node.tag for node in empty)
    for node in transmissions:
        unused_tags = [child.tag for child in node.children if child.tag not in _TRANSMISSION_TAGS]
        counts.update(f"{tag} of {TRANSMISSION}" for tag in unused_tags)
        for end in (*node.all("joint"), *node.all("actuator")):
            counts.update(
                f"{child.tag} of {end.tag}"
                for child in end.children
                if child.tag not in _TRANSMISSION_END_TAGS
            )
    for node in controls:
        counts.update(
            f"{child.tag} of {ROS2_CONTROL}"
            for child in node.children
            if child.tag not in _CONTROL_TAGS
        )
        for joint in node.all("joint"):
            counts.update(
                f"{child.tag} of joint"
                for child in joint.children
                if child.tag not in _CONTROLLED_JOINT_TAGS
            )
    return unused_notes(counts, {})
