"""The bodies of a machine as joints of Pinocchio, and states in Pinocchio's form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from peers.bodies import PeerBody, PeerTree
from peers.states import NotComparable, PeerStates
from tauloop.mechanism.poses import IDENTITY, Array, FramePose, quaternion_rotation, turned
from tauloop.verification.engines.trees.rigid_tree import GROUND, LinkInertia, RigidTree

Kind = Literal["free", "planar", "translation", "universal", "ball", "hinge", "slide"]

#: Numbers of coordinates and velocities of each joint; the tree has one angle where a planar joint
#: has cos and sin.
COORDINATES = {
    "free": 7,
    "planar": 4,
    "translation": 3,
    "universal": 2,
    "ball": 4,
    "hinge": 1,
    "slide": 1,
}
VELOCITIES = {
    "free": 6,
    "planar": 3,
    "translation": 3,
    "universal": 2,
    "ball": 3,
    "hinge": 1,
    "slide": 1,
}
#: Joints whose velocities are those of the moving body in its own axes.
LOCAL = ("free", "planar")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PinJoint:
    """One joint of Pinocchio with its body.

    Attributes:
        parent: number of the joint before it, 0 for the universe.
        at: its pose there.
        kind: which joint.
        axes: first and second axis (2, 3); none of them is opposite to a coordinate axis.
        sign: -1 where Pinocchio's coordinate has the opposite sign.
        q, v: first index of the coordinates and velocities in the tree's.
        inertia: of the body on it.
    """

    parent: int
    at: FramePose
    kind: Kind
    axes: Array
    sign: float
    q: int
    v: int
    inertia: LinkInertia | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PinJoints:
    """All joints, numbered from 1, and the joint of every body."""

    joints: tuple[PinJoint, ...]
    of_body: dict[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PinRegressor:
    """Joint-torque regressor projected to the actuators.

    Attributes:
        version: of Pinocchio.
        seconds: for a state.
        columns: of the regressor: ten for each joint.
        forces: actuator forces (N, n_u) that it gives with Pinocchio's own parameters, rotors and
            springs added.
    """

    version: str
    seconds: float
    columns: int
    forces: Array


def pin_joints(peer: PeerTree, *, universal: bool = True) -> PinJoints:
    """Return joints for all bodies: one where Pinocchio has one for such a chain, else one per degree of freedom.

    Args:
        peer: the bodies.
        universal: whether universal joints are one joint.
    """
    joints: list[PinJoint] = []
    of_body = {GROUND: 0}
    for i, body in enumerate(peer.bodies):
        parent, at = of_body[body.parent], body.at
        kind = _kind(body)
        if kind is not None and (universal or kind != "universal"):
            joints.append(_joint(body, 0, kind, parent, at, body.inertia))
            of_body[i] = len(joints)
            continue
        last = len(body.primitives) - 1
        for k, primitive in enumerate(body.primitives):
            inertia = body.inertia if k == last else None
            joints.append(_joint(body, k, primitive.kind, parent, at, inertia))
            parent, at = len(joints), IDENTITY
        of_body[i] = len(joints)
    return PinJoints(joints=tuple(joints), of_body=of_body)


def _kind(body: PeerBody) -> Kind | None:
    """Return the joint of Pinocchio with all degrees of freedom of a body together."""
    slides = body.kinds[:3] == ("slide",) * 3 and np.array_equal(body.axes[:3], np.eye(3))
    if body.kinds == ("slide", "slide", "hinge") and np.array_equal(body.axes, np.eye(3)):
        return "planar"
    if slides and body.kinds[3:] == ("ball",) and not body.primitives[3].is_reversed:
        return "free"
    if slides and len(body.kinds) == 3:
        return "translation"
    if (
        body.kinds == ("hinge", "hinge")
        and np.min(body.axes) >= 0.0
        and body.axes[0] @ body.axes[1] == 0.0
    ):
        return "universal"
    return None


def _joint(
    body: PeerBody, k: int, kind: Kind, parent: int, at: FramePose, inertia: LinkInertia | None
) -> PinJoint:
    axes = body.axes[k : k + 2] if kind == "universal" else np.stack([body.axes[k], body.axes[k]])
    sign = 1.0
    if kind in ("hinge", "slide") and np.min(axes[0]) == -1.0:
        sign, axes = -1.0, -axes
    return PinJoint(
        parent=parent,
        at=at,
        kind=kind,
        axes=axes + 0.0,
        sign=sign,
        q=body.q[k],
        v=body.v[k],
        inertia=inertia,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PinLoads:
    """Loads on Pinocchio's velocities besides the bodies.

    Attributes:
        armature: rotor inertias (n_v,).
        springs: (velocity, coordinate, stiffness, preload) of each.
        driven: driven velocities.
        transmission: S of these (n_u, n_u).
    """

    armature: Array
    springs: tuple[tuple[int, int, float, float], ...]
    driven: tuple[int, ...]
    transmission: Array


def pin_loads(joints: PinJoints, tree: RigidTree, driven: tuple[int, ...]) -> PinLoads:
    """Return rotors, springs and transmission in the order and with the signs of Pinocchio's velocities.

    Raises:
        NotComparable: rotor inertias that couple joints, or loads on a joint with local axes.
    """
    loads = tree.loads
    v_places = [
        (joint.v + i, joint) for joint in joints.joints for i in range(VELOCITIES[joint.kind])
    ]
    q_places = [joint.q + i for joint in joints.joints for i in range(COORDINATES[joint.kind])]
    own = {place: i for i, (place, _) in enumerate(v_places)}
    rotors, sprung = np.diag(loads.inertia), (loads.stiffness != 0.0) | (loads.preload != 0.0)
    loaded = {*driven, *np.flatnonzero((rotors != 0.0) | sprung)}
    if np.any(loads.inertia != np.diag(rotors)):
        raise NotComparable("rotors that couple joints")
    if any(place in loaded and joint.kind in LOCAL for place, joint in v_places):
        raise NotComparable("a drive, rotor or spring on a coordinate of the platform itself")
    sign = np.array([joint.sign for _, joint in v_places])
    return PinLoads(
        armature=np.array([rotors[place] for place, _ in v_places]),
        springs=tuple(
            (
                own[i],
                q_places.index(loads.q_index[i]),
                loads.stiffness[i],
                sign[own[i]] * loads.preload[i],
            )
            for i in map(int, np.flatnonzero(sprung))
        ),
        driven=tuple(own[i] for i in driven),
        transmission=loads.transmission.T[list(driven)] * sign[[own[i] for i in driven], None],
    )


def pin_states(joints: PinJoints, states: PeerStates) -> tuple[Array, Array, Array]:
    """Return coordinates (N, n_q), velocities and accelerations (N, n_v) in Pinocchio's form."""
    q, v, a = [], [], []
    for joint in joints.joints:
        q_j, v_j, a_j = _state(joint, states)
        q.append(q_j)
        v.append(v_j)
        a.append(a_j)
    return np.concatenate(q, axis=1), np.concatenate(v, axis=1), np.concatenate(a, axis=1)


def _state(joint: PinJoint, states: PeerStates) -> tuple[Array, Array, Array]:
    q, v, a = states.q[:, joint.q :], states.v[:, joint.v :], states.a[:, joint.v :]
    if joint.kind == "free":
        R = quaternion_rotation(q[:, 3:7])
        velocity, acceleration = _local(R, v[:, 3:6], v[:, :3], a[:, :3])
        return (
            np.concatenate([q[:, :3], np.roll(q[:, 3:7], -1, axis=1)], axis=1),
            np.concatenate([velocity, v[:, 3:6]], axis=1),
            np.concatenate([acceleration, a[:, 3:6]], axis=1),
        )
    if joint.kind == "planar":
        c, s, zero = np.cos(q[:, 2]), np.sin(q[:, 2]), np.zeros(len(q))
        R = np.stack([c, -s, zero, s, c, zero, zero, zero, zero + 1.0], axis=1).reshape(-1, 3, 3)
        flat = np.array([1.0, 1.0, 0.0])
        velocity, acceleration = _local(
            R, v[:, :3] * (1.0 - flat), v[:, :3] * flat, a[:, :3] * flat
        )
        return (
            np.stack([q[:, 0], q[:, 1], c, s], axis=1),
            np.concatenate([velocity[:, :2], v[:, 2:3]], axis=1),
            np.concatenate([acceleration[:, :2], a[:, 2:3]], axis=1),
        )
    if joint.kind == "ball":
        return np.roll(q[:, :4], -1, axis=1), v[:, :3], a[:, :3]
    n = VELOCITIES[joint.kind]
    return joint.sign * q[:, :n], joint.sign * v[:, :n], joint.sign * a[:, :n]


def _local(R: Array, w: Array, v: Array, a: Array) -> tuple[Array, Array]:
    """Return a velocity and its rate in the moving body's axes: Rᵀ v, and Rᵀ a - w × Rᵀ v."""
    back = np.swapaxes(R, -1, -2)
    velocity = turned(back, v)
    return velocity, turned(back, a) - np.cross(w, velocity)
