"""Map motions of a converted model (the copy) to the original machine.

The columns of the motion are permuted, or the motion follows from all coordinates of the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.topology import TreeJoint
from tauloop.mechanism.poses import quaternion_rotation, rotation_about, rotation_quaternion
from tauloop.model import Model
from tauloop.model.motion import Motion

#: Axes of the three revolute joints that replace a ball joint, in this order. For a ball joint BALL
#: their names are BALL.x, BALL.y and BALL.z.
HINGES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class MappedMotion:
    """Motion of the machine that is equivalent to a motion of its copy.

    Attributes:
        position, velocity, acceleration: arrays (N, n).
        rates: Jacobian (N, n, m) of the machine's velocities with respect to the copy's.
    """

    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    rates: np.ndarray


@dataclass(frozen=True, slots=True)
class SameColumns:
    """Relation between a machine and a copy with the same columns in another order.

    Attributes:
        position, velocity: for each column of the machine, its index among the copy's columns.
    """

    position: list[int]
    velocity: list[int]

    def motion(self, x: np.ndarray, v: np.ndarray, a: np.ndarray) -> MappedMotion:
        """Return the motion of the machine that is equivalent to a motion of its copy."""
        rates = np.broadcast_to(
            np.eye(len(self.velocity))[self.velocity], (len(x), *[len(self.velocity)] * 2)
        )
        return MappedMotion(x[:, self.position], v[:, self.velocity], a[:, self.velocity], rates)


@dataclass(frozen=True, slots=True)
class HingedBall:
    """A ball joint that the copy models as three revolute joints: R = R_start R_x R_y R_z.

    Attributes:
        q, v: first column of its quaternion and of its angular velocity in the machine.
        hinge_q, hinge_v: columns of the hinges in the copy.
        start: reference quaternion, at which the hinge angles are zero.
        is_reversed: whether the hinges' angles describe the motion of the joint's parent body relative
            to its child body.
    """

    q: int
    v: int
    hinge_q: list[int]
    hinge_v: list[int]
    start: np.ndarray
    is_reversed: bool

    def quaternion(self, q: np.ndarray) -> np.ndarray:
        """Return the ball joint's quaternion (N, 4) at coordinates of the copy.

        Its sign is chosen so that it is in the hemisphere of the reference quaternion.
        """
        start = quaternion_rotation(self.start)
        if self.is_reversed:
            rotation = np.swapaxes(start.T @ self._rotations(q)[-1], -1, -2)
        else:
            rotation = start @ self._rotations(q)[-1]
        values = rotation_quaternion(rotation)
        return np.asarray(values * np.where(values @ self.start < 0.0, -1.0, 1.0)[:, None])

    def rates(self, q: np.ndarray) -> np.ndarray:
        """Return the Jacobian (N, 3, 3) of the ball's angular velocity, in the axes of its parent."""
        return self._to_parent(q) @ self._axes(q)

    def acceleration(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Return the ball's angular acceleration (N, 3), in the axes of its parent."""
        axes, hinge_v, hinge_a = self._axes(q), v[:, self.hinge_v], a[:, self.hinge_v]
        total, angular_velocity = np.zeros((len(q), 3)), np.zeros((len(q), 3))
        for k in range(3):
            rate = axes[..., k] * hinge_v[:, k, None]
            total += axes[..., k] * hinge_a[:, k, None] + np.cross(angular_velocity, rate)
            angular_velocity += rate
        return np.einsum("kij,kj->ki", self._to_parent(q), total)

    def _rotations(self, q: np.ndarray) -> list[np.ndarray]:
        """Return the rotations (N, 3, 3) before each hinge and after the last hinge."""
        rotations = [np.broadcast_to(np.eye(3), (len(q), 3, 3))]
        for axis, column in zip(np.eye(3), self.hinge_q, strict=True):
            rotations.append(rotations[-1] @ rotation_about(axis, q[:, column]))
        return rotations

    def _axes(self, q: np.ndarray) -> np.ndarray:
        """Return the axes of the hinges (N, 3, 3), as columns, in the frame before the first."""
        return np.stack(
            [rotation[..., k] for k, rotation in enumerate(self._rotations(q)[:3])], axis=-1
        )

    def _to_parent(self, q: np.ndarray) -> np.ndarray:
        """Return matrices (N, 3, 3) from hinge rates to the child's rates in the parent's axes."""
        if self.is_reversed:
            return -np.swapaxes(self._rotations(q)[-1], -1, -2)
        return np.broadcast_to(quaternion_rotation(self.start), (len(q), 3, 3))


@dataclass(frozen=True, slots=True)
class SameCoordinates:
    """Relation between a machine and a copy with the same coordinates.

    Their independent coordinates may differ.

    Attributes:
        motions: motions of the machine and of its copy.
        q, v: index of each coordinate (velocity) of the machine among those of its copy; -1 if
            absent.
        balls: ball joints that the copy models as hinges.
    """

    motions: tuple[Motion, Motion]
    q: list[int]
    v: list[int]
    balls: tuple[HingedBall, ...]

    @property
    def is_complete(self) -> bool:
        """Whether all independent coordinates of the machine follow from those of its copy.

        Both must have the same number of independent velocities.
        """
        first, second = (motion.ports for motion in self.motions)
        known_q = {i for i, column in enumerate(self.q) if column >= 0}
        known_v = {i for i, column in enumerate(self.v) if column >= 0}
        for ball in self.balls:
            known_q |= {*range(ball.q, ball.q + 4)}
            known_v |= {*range(ball.v, ball.v + 3)}
        return (
            {*first.q} <= known_q
            and {*first.v} <= known_v
            and first.velocity.size == second.velocity.size
        )

    def motion(self, x: np.ndarray, v: np.ndarray, a: np.ndarray) -> MappedMotion:
        """Return the motion of the machine that is equivalent to a motion of its copy."""
        first, second = self.motions
        state = second.kinematics(x, v, a)
        assert state.v is not None, "velocities are given"
        assert state.a is not None, "accelerations are given"
        G = np.swapaxes(second.embedding(x), -1, -2)
        q, rates, accelerations = state.q[:, self.q], G[..., self.v], state.a[:, self.v]
        for ball in self.balls:
            q[:, ball.q : ball.q + 4] = ball.quaternion(state.q)
            ball_rates = ball.rates(state.q) @ np.swapaxes(G[..., ball.hinge_v], -1, -2)
            rates[..., ball.v : ball.v + 3] = np.swapaxes(ball_rates, -1, -2)
            accelerations[:, ball.v : ball.v + 3] = ball.acceleration(state.q, state.v, state.a)
        jacobian = np.swapaxes(first.ports.rates(rates), -1, -2)
        velocity = np.einsum("kij,kj->ki", jacobian, v)
        return MappedMotion(first.ports.at(q), velocity, first.ports.rates(accelerations), jacobian)


def same_columns(motions: tuple[Motion, Motion], renamed: Mapping[str, str]) -> SameColumns | None:
    """Return the relation between the columns of a machine's motion and those of its copy.

    The result is None if the columns differ.

    Args:
        motions: motions of the machine and of its copy.
        renamed: mapping from names in the machine to names in the copy, where they differ.
    """
    first, second = (motion.ports for motion in motions)
    position = _order(first.position.columns, second.position.columns, renamed)
    velocity = _order(first.velocity.columns, second.velocity.columns, renamed)
    if -1 in (*position, *velocity) or first.position.size != second.position.size:
        return None
    return SameColumns(position, velocity) if first.velocity.size == second.velocity.size else None


def same_coordinates(
    models: tuple[Model, Model], motions: tuple[Motion, Motion], renamed: Mapping[str, str]
) -> SameCoordinates | None:
    """Return the relation between the coordinates of a machine and all coordinates of its copy.

    The result is None if the copy lacks a coordinate.

    Args:
        models: the machine and its copy.
        motions: motions of both.
        renamed: mapping from names in the machine to names in the copy, where they differ.
    """
    machine, copy = (model.topology for model in models)
    balls = [
        _hinged_ball(edge, models[1], renamed)
        for edge in machine.tree
        if edge.joint.kind == "spherical"
    ]
    conversion = SameCoordinates(
        motions,
        _order(machine.coordinate_names, copy.coordinate_names, renamed),
        _order(machine.velocity_names, copy.velocity_names, renamed),
        tuple(ball for ball in balls if ball is not None),
    )
    return conversion if conversion.is_complete else None


def _order(names: Sequence[str], others: Sequence[str], renamed: Mapping[str, str]) -> list[int]:
    """Return the index of each name among others; -1 if it is missing."""
    indices = {name: k for k, name in enumerate(others)}
    return [indices.get(renamed.get(name, name), -1) for name in names]


def _hinged_ball(edge: TreeJoint, copy: Model, renamed: Mapping[str, str]) -> HingedBall | None:
    """Return a ball joint that the copy models as hinges; None if there are no such hinges."""
    joint, topology = edge.joint, copy.topology
    names = [f"{joint.name}.{word}" for word in HINGES]
    hinge_q = _order(names, topology.coordinate_names, renamed)
    hinge_v = _order(names, topology.velocity_names, renamed)
    if -1 in (*hinge_q, *hinge_v):
        return None
    ends = [renamed.get(end.body, end.body) for end in (joint.parent, joint.child)]
    before_first = copy.mechanism.joint(renamed.get(names[0], names[0])).parent.body
    if before_first not in ends:
        return None
    return HingedBall(
        q=edge.q.start,
        v=edge.v.start,
        hinge_q=hinge_q,
        hinge_v=hinge_v,
        start=np.array(joint.reference or (1.0, 0.0, 0.0, 0.0)),
        is_reversed=before_first != ends[0],
    )
