"""Position-controlled motors as parts of a structure: rotors, drive lines, encoders, torques."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tauloop.common.records import dataclass
from tauloop.elasticity.frame.assembled import AssembledStructure
from tauloop.elasticity.frame.beams import Array
from tauloop.elasticity.frame.structure import ElasticJoint, MotionCombination, RigidBody
from tauloop.elasticity.vibrations.servo_control import ServoLaw
from tauloop.mechanism.drive_line import (
    Connection,
    DriveLine,
    DualDrive,
    LuGre,
    Shaft,
)
from tauloop.mechanism.expression import Expression
from tauloop.mechanism.model import BASE, Actuator, Mechanism

#: A position as a linear combination of the structure's motions: names and factors.
Terms = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RodLength:
    """The distance between two points as a motion of the structure.

    Attributes:
        bodies: the two bodies or nodes.
        points: positions (N, 3) of both points in the base frame, m.
    """

    bodies: tuple[str, str]
    points: tuple[Array, Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServoDrive:
    """A controlled motor with the motions that it drives, measures and damps.

    Attributes:
        actuator: name of the actuator.
        torque: motion on which the torque of the motor acts.
        position, speed: motions that the encoders measure.
        law: control law of the motor.
        dampers: motions with viscous damping, and the coefficients.
    """

    actuator: str
    torque: Terms
    position: Terms
    speed: Terms
    law: ServoLaw
    dampers: tuple[tuple[Terms, float], ...] = ()


def motion_row(
    assembled: AssembledStructure, lengths: Mapping[str, RodLength], terms: Terms
) -> Array:
    """Return the row (N, n) from the coordinates of a structure to a combination of motions."""
    row = np.zeros((assembled.samples, assembled.size))
    by_name: dict[str, Array] = {}
    for joint, motion in zip(assembled.structure.joints, assembled.joint_motion, strict=True):
        for k, name in enumerate(joint.names):
            by_name[name] = motion[:, k]
    for name, factor in terms:
        if name in by_name:
            row += factor * by_name[name]
        else:
            row += factor * _length_row(assembled, lengths[name])
    return row


def _length_row(assembled: AssembledStructure, item: RodLength) -> Array:
    """Return the row (N, n) from the coordinates of a structure to the change of a distance."""
    direction = item.points[1] - item.points[0]
    direction = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    start, end = (
        assembled.point_motion(body, point)[:, :3]
        for body, point in zip(item.bodies, item.points, strict=True)
    )
    return np.einsum("...k,...kn->...n", direction, end - start)


class ServoParts:
    """Collects rotors and drive lines for a structure.

    Attributes:
        bodies, joints, combinations: parts that are added to the structure.
        drives: the controlled motors.
        rotors: motion of each added rotor as a combination of the rigid machine's coordinates, by
            name.
        notes: effects that the linear model neglects.
    """

    def __init__(self, mechanism: Mechanism, laws: Mapping[str, ServoLaw]) -> None:
        """Start without parts.

        Args:
            mechanism: the machine.
            laws: control laws by actuator.
        """
        self.mechanism, self.laws = mechanism, laws
        self.bodies: list[RigidBody] = []
        self.joints: list[ElasticJoint] = []
        self.combinations: list[MotionCombination] = []
        self.drives: list[ServoDrive] = []
        self.rotors: dict[str, Terms] = {}
        self.notes: list[str] = []

    def add_rotor(self, name: str, inertia: float, rigid: Terms) -> Terms:
        """Add a body that a single coordinate moves along x, and return its motion.

        Args:
            name: name of the body and of its coordinate.
            inertia: inertia of the coordinate; may be zero.
            rigid: motion of the rotor in the undeformed machine.
        """
        self.rotors[name] = rigid
        twist = np.zeros((6, 1))
        twist[0] = 1.0
        self.bodies.append(RigidBody(name=name, origin=np.zeros(3)))
        self.joints.append(
            ElasticJoint(
                name=name,
                parent=BASE,
                child=name,
                point=np.zeros(3),
                motion=twist,
                inertia=np.array([[inertia]]) if inertia else None,
                motion_names=("",),
            )
        )
        return ((name, 1.0),)

    def add_motor(self, actuator: Actuator, shaft: Terms) -> None:
        """Add a controlled motor that acts directly on a motion, with its viscous friction."""
        dampers: tuple[tuple[Terms, float], ...] = ()
        friction = actuator.friction
        if friction is not None and friction.viscous is not None:
            dampers = ((shaft, self.mechanism.value(friction.viscous)),)
        self.drives.append(
            ServoDrive(
                actuator=actuator.name,
                torque=shaft,
                position=shaft,
                speed=shaft,
                law=self.laws[actuator.name],
                dampers=dampers,
            )
        )

    def add_line(self, actuator: Actuator, line: DriveLine, load: Terms) -> None:
        """Add the inertias, shafts, encoders and motors of a drive line that moves a load.

        Inertias that move rigidly with the load are not added here; `load_inertia` returns them.

        Args:
            actuator: actuator with the drive line.
            line: its drive line.
            load: motion of the load.
        """
        value = self.mechanism.value
        positions = {line.performance.of: load}
        undeformed = rigid_terms(load, self.rotors)
        ratios = _rigid_groups(line, value, are_shafts_rigid=True)[0]
        for group in _rigid_groups(line, value):
            first = next(iter(group))
            group_motion = load
            if first != line.performance.of:
                inertia_sum = sum(
                    r**2 * value(line.inertia(name).value) for name, r in group.items()
                )
                motion = _scaled(undeformed, ratios[first])
                group_motion = self.add_rotor(f"{actuator.name}.{first}", inertia_sum, motion)
            positions |= {name: _scaled(group_motion, factor) for name, factor in group.items()}
        dampers: list[tuple[Terms, float]] = []
        for connection in line.connections:
            self._add_shaft(actuator, connection, positions, dampers)
        for inertia in line.inertias:
            law = inertia.friction
            if law is not None and law.viscous is not None and value(law.viscous):
                dampers.append((positions[inertia.name], value(law.viscous)))
            if isinstance(law, LuGre) or (law is not None and law.coulomb is not None):
                self.notes.append(f"{actuator.name}.{inertia.name}: dry friction is neglected")
        drive = line.control.drive
        controlled_motor = drive.master if isinstance(drive, DualDrive) else drive.motor
        motor_inertias = {motor.name: motor.on for motor in line.motors}
        encoder_inertias = {encoder.name: encoder.on for encoder in line.encoders}
        position_encoder = line.control.encoder
        speed_encoder = line.control.speed_encoder or position_encoder
        self.drives.append(
            ServoDrive(
                actuator=actuator.name,
                torque=positions[motor_inertias[controlled_motor]],
                position=positions[encoder_inertias[position_encoder]],
                speed=positions[encoder_inertias[speed_encoder]],
                law=self.laws[actuator.name],
                dampers=tuple(dampers),
            )
        )
        if isinstance(drive, DualDrive):
            self.notes.append(f"{actuator.name}: the slave motor keeps its preload torque constant")

    def _add_shaft(
        self,
        actuator: Actuator,
        connection: Connection,
        positions: Mapping[str, Terms],
        dampers: list[tuple[Terms, float]],
    ) -> None:
        """Add the spring and the damper of a connection: D = ratio q_first - q_second."""
        if connection.compliance is None:
            return
        value = self.mechanism.value
        first = _scaled(positions[connection.first], value(connection.ratio))
        terms = (*first, *_scaled(positions[connection.second], -1.0))
        name = f"{actuator.name}.{connection.name}"
        factors = tuple((motion, np.asarray(factor)) for motion, factor in terms)
        stiffness = value(connection.compliance.stiffness)
        self.combinations.append(MotionCombination(name=name, terms=factors, stiffness=stiffness))
        damping = value(connection.compliance.damping)
        if damping:
            dampers.append((terms, damping))
        if not isinstance(connection.compliance, Shaft):
            self.notes.append(f"{name}: its backlash is assumed to be closed")


def load_inertia(line: DriveLine, mechanism: Mechanism) -> float:
    """Return the inertia of a drive line that moves rigidly with its load, at the load."""
    group = _rigid_groups(line, mechanism.value)[0]
    return sum(
        factor**2 * mechanism.value(line.inertia(name).value)
        for name, factor in group.items()
        if name != line.performance.of
    )


def rigid_terms(terms: Terms, rotors: Mapping[str, Terms]) -> Terms:
    """Return a motion as a combination of the undeformed machine's coordinates, without rotors."""
    parts = [_scaled(rotors.get(name, ((name, 1.0),)), factor) for name, factor in terms]
    return tuple(term for part in parts for term in part)


def _rigid_groups(
    line: DriveLine, value: Callable[[Expression], float], *, are_shafts_rigid: bool = False
) -> list[dict[str, float]]:
    """Return groups of inertias of a drive line that are rigidly connected.

    A group contains each inertia's motion per unit motion of the group's first inertia. The first
    group is that of the load, and begins with the load.

    Args:
        line: the drive line.
        value: function that evaluates an expression.
        are_shafts_rigid: whether elastic connections count as rigid.
    """
    names = [line.performance.of, *(inertia.name for inertia in line.inertias)]
    rigid = [item for item in line.connections if are_shafts_rigid or item.compliance is None]
    groups: list[dict[str, float]] = []
    grouped: set[str] = set()
    for name in names:
        if name in grouped:
            continue
        group = {name: 1.0}
        waiting = [name]
        while waiting:
            current = waiting.pop()
            for connection in rigid:
                ratio = value(connection.ratio)
                if connection.first == current and connection.second not in group:
                    group[connection.second] = ratio * group[current]
                    waiting.append(connection.second)
                elif connection.second == current and connection.first not in group:
                    group[connection.first] = group[current] / ratio
                    waiting.append(connection.first)
        grouped |= group.keys()
        groups.append(group)
    return groups


def _scaled(terms: Terms, factor: float) -> Terms:
    """Return a multiple of a motion."""
    return tuple((name, factor * coefficient) for name, coefficient in terms)
