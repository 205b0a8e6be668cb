"""The motors of an imported machine.

The motors are those of the first of these sources that states motors:

1. the caller's names (``--motors``): motors of the file, or joints;
2. the side file: ``actuators``, or ``name_mot`` of Gepetto's robot.yaml;
3. ``<ros2_control>``: joints with a command interface, and transmissions (`motor_elements`);
4. ``<transmission>``;
5. ``independent`` of a joint (GRBDA);
6. effort limits: a joint with effort 0 is passive if another joint has a positive effort. If all
   efforts are 0 or absent, they do not determine the motors;
7. structure: without a loop all joints have motors. With a loop the structure does not determine
   the motors. Then the machine has `Mechanism.unstated_motors` instead of actuators, `check`
   reports this, and force calculations raise an error.

Joints that follow others (``<mimic>``) are passive in all sources except the first two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tauloop.common.errors import Problems
from tauloop.common.records import dataclass
from tauloop.formats.imported.leaves import Leaves
from tauloop.formats.urdf.parts import MotorStatement, StatedMotor, UrdfJoint, UrdfTree, identifier
from tauloop.mechanism.expression import (
    ONE,
    ZERO,
    Constant,
    Expression,
    Leaf,
    add,
    multiply,
    negate,
)
from tauloop.mechanism.model import Actuator
from tauloop.mechanism.suggestions import listing, suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenMotors:
    """The motors of a machine.

    Attributes:
        motors: the motors of the file or its side file.
        unstated: joints that may have motors, if no source states the motors.
        notes: notes on the source of the motors, and on the passive joints.
    """

    motors: tuple[StatedMotor | Actuator, ...] = ()
    unstated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """The coordinate in the file minus the coordinate in the machine.

    Attributes:
        expression: the difference as an expression of parameters, rad or m.
        value: its nominal value.
    """

    expression: Expression
    value: float


def scalar_joints(tree: UrdfTree) -> dict[str, UrdfJoint]:
    """Return the joints that rotate or slide, and the axes of universal joints, by name."""
    joints = [joint for joint in tree.joints for joint in joint.axis_joints or (joint,)]
    return {joint.name: joint for joint in joints if joint.kind in ("revolute", "prismatic")}


def direct(names: Iterable[str]) -> tuple[StatedMotor, ...]:
    """Return motors of ratio 1, named after their joints."""
    return tuple(StatedMotor(name=name, drives=((name, 1.0),)) for name in names)


def choose_motors(
    tree: UrdfTree,
    joint_names: Sequence[str],
    actuators: tuple[Actuator, ...] | None,
    side_motors: Sequence[str] | None,
    held_joints: Iterable[str],
    is_open: bool,
    problems: Problems,
) -> ChosenMotors:
    """Return the motors of the first source that states any.

    Args:
        tree: the URDF.
        joint_names: names of motors or joints that the caller gives; may be empty.
        actuators: actuators of a side file; None if it states none.
        side_motors: joints with a motor in Gepetto's side file; None if it states none.
        held_joints: joints that couplings hold constant or make follow others.
        is_open: whether there are loops or gears, so that not all joints are independent.
        problems: receives the problems of the source that is used.
    """
    if joint_names:
        return _motors_by_name(tree, joint_names, actuators or (), problems)
    if actuators is not None:
        return ChosenMotors(motors=actuators)
    if side_motors is not None:
        return ChosenMotors(motors=direct(side_motors))
    held_joints = set(held_joints)
    passive = set(held_joints)
    for statement in tree.motors.statements:
        problems += statement.problems
        if statement.motors or statement.problems:
            return _motors_of_statement(tree, statement, passive)
        passive.update(statement.passive)
    candidates = [joint for name, joint in scalar_joints(tree).items() if name not in passive]
    if tree.independent:
        return ChosenMotors(
            motors=direct(joint.name for joint in candidates if joint.name in tree.independent)
        )
    effort_motors = _motors_by_effort(tree, candidates, is_open)
    if effort_motors is not None:
        return effort_motors
    joint_names = [joint.name for joint in candidates]
    if is_open:
        return ChosenMotors(unstated=tuple(joint_names))
    note = "the file states no motors, so every joint that rotates or slides has one"
    notes = (f"{note}, {listing(joint_names)}",) if joint_names else ()
    return ChosenMotors(motors=direct(joint_names), notes=notes)


def _motors_by_name(
    tree: UrdfTree, names: Sequence[str], actuators: tuple[Actuator, ...], problems: Problems
) -> ChosenMotors:
    """Return the motors that the caller names."""
    known: dict[str, StatedMotor | Actuator] = {
        motor.name: motor for motor in direct(scalar_joints(tree))
    }
    for statement in reversed(tree.motors.statements):
        known |= {motor.name: motor for motor in statement.motors}
    known |= {actuator.name: actuator for actuator in actuators}
    chosen: dict[str, StatedMotor | Actuator] = {}
    for word in names:
        name = word if word in known else identifier(word)
        if name not in known:
            what = f"there is no motor {word!r}, and no such joint that rotates or slides"
            if name in [loop.name for loop in tree.loops]:
                what = f"joint {word!r} closes a loop, so it has no coordinate for a motor"
            remedy = suggestion(name, known) or f"there are {listing(known)}"
            problems.add("motors", what, remedy)
            continue
        if name in chosen:
            problems.add("motors", f"{word!r} is named twice", "name it once")
        chosen[name] = known[name]
    return ChosenMotors(motors=tuple(chosen.values()))


def _motors_of_statement(
    tree: UrdfTree, statement: MotorStatement, passive: set[str]
) -> ChosenMotors:
    """Return the motors of one kind of element."""
    driven = {name for motor in statement.motors for name, _ in motor.drives}
    joints_without_motor = [
        name for name in scalar_joints(tree) if name not in driven and name not in passive
    ]
    notes = [
        f"the motors are taken from {statement.source}: "
        f"{listing(motor.name for motor in statement.motors)}"
    ]
    if joints_without_motor:
        notes.append(
            f"joints without a motor in {statement.source} are passive: "
            f"{listing(joints_without_motor)}"
        )
    shared = [
        joint for motor in statement.motors if len(motor.drives) > 1 for joint, _ in motor.drives
    ]
    limited = [
        name
        for name, joint in scalar_joints(tree).items()
        if name in shared and math.isfinite(joint.force)
    ]
    if limited:
        notes.append(
            "several motors share a joint, so its effort is not a limit of any of them: "
            f"{listing(limited)}"
        )
    motors_with_offset = [motor.name for motor in statement.motors if motor.offsets]
    if motors_with_offset:
        notes.append(
            "motor positions are zero at the offsets of their transmissions: "
            f"{listing(motors_with_offset)}"
        )
    return ChosenMotors(motors=statement.motors, notes=tuple(notes))


def _motors_by_effort(
    tree: UrdfTree, candidates: Sequence[UrdfJoint], is_open: bool
) -> ChosenMotors | None:
    """Return the motors according to effort limits; None if the efforts state nothing."""
    efforts = [joint.effort for joint in scalar_joints(tree).values() if joint.effort is not None]
    efforts += tree.cut_efforts
    if not any(effort == 0.0 for effort in efforts) or not any(effort > 0.0 for effort in efforts):
        return None
    without_effort = [joint.name for joint in candidates if joint.effort is None]
    motors = [
        joint.name for joint in candidates if joint.effort or (joint.effort is None and not is_open)
    ]
    if not motors:
        return None
    with_zero_effort = [joint.name for joint in candidates if joint.effort == 0.0]
    notes = [f"effort 0 means no motor: {listing(with_zero_effort)}"] if with_zero_effort else []
    if without_effort:
        has_motors = "have no motor" if is_open else "have a motor"
        notes.append(
            f"joints without effort {has_motors}: {listing(without_effort)}; `--motors` selects "
            "others"
        )
    return ChosenMotors(motors=direct(motors), notes=tuple(notes))


def make_actuators(
    chosen: ChosenMotors, tree: UrdfTree, leaves: Leaves, shifts: Mapping[str, Shift]
) -> tuple[tuple[Actuator, ...], list[str]]:
    """Return the actuators of a machine, and notes on their names.

    Ratios other than 1 and -1, and offsets of joints, are independent parameters.

    Args:
        chosen: the motors.
        tree: the URDF.
        leaves: receives the parameters.
        shifts: file's coordinate minus machine's coordinate by joint, where they differ.
    """
    joints = scalar_joints(tree)
    used_names = {link.name for link in tree.links} | {joint.name for joint in tree.joints}
    used_names |= {loop.name for loop in tree.loops} | {
        coupling.name for coupling in tree.couplings
    }
    used_names |= {motor.name for motor in chosen.motors if isinstance(motor, Actuator)}
    offsets = _MotorOffsets(joints, leaves, shifts)
    actuators: list[Actuator] = []
    notes: list[str] = []
    for motor in chosen.motors:
        if isinstance(motor, Actuator):
            actuators.append(motor)
            continue
        is_called_as_joint = [name for name, _ in motor.drives] == [motor.name]
        name = motor.name
        while name in used_names and not is_called_as_joint:
            name += "_motor"
        used_names.add(name)
        if name != motor.name:
            notes.append(f"motor {motor.name!r} is renamed to {name!r}")
        actuator = _actuator(name, motor, joints, leaves)
        actuators.append(replace(actuator, offset=offsets.offset(motor, actuator.drives)))
    return tuple(actuators), notes


class _MotorOffsets:
    """Motor offsets, computed from the joint offsets of their transmissions."""

    def __init__(
        self, joints: Mapping[str, UrdfJoint], leaves: Leaves, shifts: Mapping[str, Shift]
    ) -> None:
        self._joints, self._leaves, self._shifts = joints, leaves, shifts
        self._parameters: dict[tuple[str, float], Leaf] = {}

    def offset(self, motor: StatedMotor, drives: Sequence[tuple[str, Expression]]) -> Expression:
        """Return the position of a motor when the machine's coordinates are zero.

        The position is the sum of ratio_j (shift_j - offset_j), where the shift is the file's
        coordinate minus the machine's. If shift and offset have equal nominal values they cancel:
        the machine's coordinate is then the coordinate of the encoder.
        """
        terms: list[Expression] = []
        for (joint, ratio), offset in zip(drives, motor.offsets, strict=False):
            shift = self._shifts.get(joint)
            if not offset or (shift is not None and shift.value == offset):
                continue
            zero = negate(self._leaf(joint, offset))
            terms.append(multiply(ratio, zero if shift is None else add(shift.expression, zero)))
        return add(*terms) if terms else ZERO

    def _leaf(self, joint: str, offset: float) -> Leaf:
        """Return the parameter of a joint's offset; motors with equal offsets share it."""
        if (joint, offset) not in self._parameters:
            unit = "m" if self._joints[joint].kind == "prismatic" else "rad"
            name = f"{joint}.transmission_offset"
            self._parameters[joint, offset] = self._leaves.leaf(name, offset, unit, "drive")
        return self._parameters[joint, offset]


def _actuator(
    name: str, motor: StatedMotor, joints: Mapping[str, UrdfJoint], leaves: Leaves
) -> Actuator:
    """Return one actuator; a motor with a reduction to a sliding joint is rotary."""
    prismatic_joints = [joint for joint, _ in motor.drives if joints[joint].kind == "prismatic"]
    is_geared = any(abs(ratio) != 1.0 for _, ratio in motor.drives)
    is_rotary = bool(prismatic_joints) and (is_geared or len(prismatic_joints) < len(motor.drives))
    prefix = f"{name}.motor" if name in joints else name
    drives: list[tuple[str, Expression]] = []
    for joint, ratio in motor.drives:
        expression: Expression = ONE if ratio == 1.0 else Constant(ratio)
        if abs(ratio) != 1.0:
            leaf = f"{prefix}.ratio" if len(motor.drives) == 1 else f"{prefix}.drives.{joint}"
            unit = "rad/m" if is_rotary and joint in prismatic_joints else ""
            expression = leaves.leaf(leaf, ratio, unit, "drive")
        drives.append((joint, expression))
    force = speed = math.inf
    if len(motor.drives) == 1:
        ((joint, ratio),) = motor.drives
        force, speed = joints[joint].force / abs(ratio), joints[joint].velocity * abs(ratio)
    return Actuator(
        name=name,
        drives=tuple(drives),
        is_rotary=True if is_rotary else None,
        force=force,
        speed=speed,
    )
