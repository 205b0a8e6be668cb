"""Drake's `MultibodyPlant` from Python: the tree's forces, and whole inverse dynamics with the loops.

A continuous plant of Drake has no loop constraints, so its forward dynamics is no peer. The time of a
call in C++ is that of the calls from Python minus that of calls that do nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from peers.bodies import PeerTree
from peers.pinocchio_joints import (
    COORDINATES,
    VELOCITIES,
    PinJoint,
    PinLoads,
    pin_joints,
    pin_loads,
)
from peers.pinocchio_python import selection
from peers.states import NotComparable, PeerStates
from peers.timing import LOOP, seconds_per_call
from tauloop.common.optional import optional_module
from tauloop.mechanism.poses import Array, FramePose, quaternion_rotation, turned


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrakeResult:
    """Results; times in seconds for a state.

    Attributes:
        version: of Drake.
        tree: setting a state, forces of gravity and `CalcInverseDynamics`, in C++.
        overhead: of Python calls that do nothing, left out of it.
        loop: of a Python loop over whole inverse dynamics, loops included.
        forces: actuator forces (N, n_u) of the latter.
    """

    version: str
    tree: float
    overhead: float
    loop: float
    forces: Array


def run(peer: PeerTree, states: PeerStates, seconds: float) -> DrakeResult:
    """Measure, each of three measurements for `seconds`.

    Raises:
        EngineError: Drake is not installed.
        NotComparable: a machine whose loops are not closed by points, or with rotors that couple joints.
    """
    if states.forward_mu is None:
        raise NotComparable("the loops need more than points that coincide")
    plant_module = optional_module("pydrake.multibody.plant", "Drake", "bench")
    tree_module = optional_module("pydrake.multibody.tree", "Drake", "bench")
    built = _Plant(plant_module, tree_module, peer, states)
    plant, context, forces = built.plant, built.context, built.forces
    samples = built.samples
    found = np.empty((len(samples), len(built.driven)))
    passive, driven, S = built.passive, built.driven, np.linalg.inv(built.loads.transmission)

    def inverse(n: int = LOOP) -> None:
        for i, (state, coordinates, a) in enumerate(samples[:n]):
            plant.SetPositionsAndVelocities(context, state)
            plant.CalcForceElementsContribution(context, forces)
            tau = plant.CalcInverseDynamics(context, a, forces) + built.armature * a
            for spring_v, spring_q, stiffness, preload in built.loads.springs:
                tau[built.own_v[spring_v]] += stiffness * coordinates[spring_q] - preload
            K = built.constraint_jacobian()
            multipliers = np.linalg.solve(K[:, passive].T, tau[passive])
            found[i] = S @ (tau[driven] - K[:, driven].T @ multipliers)

    def tree() -> None:
        for state, _, a in samples[:LOOP]:
            plant.SetPositionsAndVelocities(context, state)
            plant.CalcForceElementsContribution(context, forces)
            plant.CalcInverseDynamics(context, a, forces)

    def nothing() -> None:
        for _ in samples[:LOOP]:
            plant.num_positions()
            plant.num_positions()
            plant.num_positions()

    inverse(len(samples))
    count = min(LOOP, len(samples))
    overhead = seconds_per_call(nothing, seconds, count)
    return DrakeResult(
        version=version("drake"),
        tree=seconds_per_call(tree, seconds, count) - overhead,
        overhead=overhead,
        loop=seconds_per_call(inverse, seconds, count),
        forces=found,
    )


class _Plant:
    """The machine in Drake, with its states in Drake's form.

    Attributes:
        plant, context, forces: of Drake.
        loads: what acts besides the bodies, by the joints' own order of velocities.
        own_v: Drake's index of each of these velocities.
        armature: rotor inertias by Drake's velocities.
        driven, passive: Drake's velocities.
        samples: positions with velocities, coordinates in the joints' order, and accelerations.
    """

    def __init__(self, plant: Any, tree: Any, peer: PeerTree, states: PeerStates) -> None:
        self._tree = tree
        joints = pin_joints(peer)
        self.loads: PinLoads = pin_loads(joints, peer.tree, states.driven)
        self.plant = plant.MultibodyPlant(time_step=0.0)
        self.plant.mutable_gravity_field().set_gravity_vector(peer.tree.gravity)
        bodies = [self.plant.world_body()]
        made = [self._add(bodies, i, joint) for i, joint in enumerate(joints.joints)]
        ends = [
            [self._frame(bodies[joints.of_body[end.body]], end.at) for end in (c.first, c.second)]
            for c in peer.constraints
        ]
        self.plant.Finalize()
        self._ends = [(first, second) for first, second in ends]
        self._select = selection(peer, states)
        self.context = self.plant.CreateDefaultContext()
        self.forces = tree.MultibodyForces(self.plant)
        self.own_v = np.concatenate([_places(parts, "velocity") for parts in made])
        self.driven = [int(self.own_v[i]) for i in self.loads.driven]
        self.passive = [i for i in range(len(self.own_v)) if i not in self.driven]
        self.armature = np.zeros(len(self.own_v))
        self.armature[self.own_v] = self.loads.armature
        self.samples = self._samples(joints.joints, made, states)

    def constraint_jacobian(self) -> Array:
        """Return the chosen constraint rows (n, n_v) at the state of the context."""
        by_velocity = self._tree.JacobianWrtVariable.kV
        points = [
            self.plant.CalcJacobianTranslationalVelocity(
                self.context, by_velocity, second, np.zeros(3), first, first
            )
            for first, second in self._ends
        ]
        return self._select @ np.concatenate(points)

    def _frame(self, body: Any, at: FramePose, turn: Array | None = None) -> Any:
        """Return a frame at a pose on a body."""
        pose = np.eye(4)
        pose[:3, :3] = at.rotation if turn is None else at.rotation @ turn
        pose[:3, 3] = at.position
        fixed = self._tree.FixedOffsetFrame
        transform = optional_module("pydrake.math", "Drake", "bench").RigidTransform(pose)
        return self.plant.AddFrame(
            fixed(f"frame {self.plant.num_frames()}", body.body_frame(), transform)
        )

    def _add(self, bodies: list[Any], i: int, joint: PinJoint) -> list[Any]:
        """Add a joint with its body; three slides, which Drake has no joint for, are three joints."""
        parent, at, axis = bodies[joint.parent], joint.at, joint.axes[0]
        kind = joint.kind
        steps: list[tuple[str, Array]] = [(kind, axis)]
        if kind == "translation":
            steps = [("slide", row) for row in np.eye(3)]
        made = []
        for k, (step, direction) in enumerate(steps):
            is_last = k == len(steps) - 1
            body = self.plant.AddRigidBody(
                f"body {i} {k}", self._inertia(joint if is_last else None)
            )
            made.append(self._joint(step, f"joint {i} {k}", joint, direction, (parent, at, body)))
            parent, at = body, FramePose(position=np.zeros(3), rotation=np.eye(3))
        bodies.append(parent)
        return made

    def _joint(
        self,
        kind: str,
        name: str,
        joint: PinJoint,
        axis: Array,
        between: tuple[Any, FramePose, Any],
    ) -> Any:
        parent, at, body = between
        tree = self._tree
        origin = FramePose(position=np.zeros(3), rotation=np.eye(3))
        if kind == "universal":
            first, second = joint.axes
            turn = np.stack([first, second, np.cross(first, second)], axis=1)
            frames = self._frame(parent, at, turn), self._frame(body, origin, turn)
            return self.plant.AddJoint(tree.UniversalJoint(name, *frames))
        frames = self._frame(parent, at), body.body_frame()
        if kind in ("hinge", "slide"):
            make = tree.RevoluteJoint if kind == "hinge" else tree.PrismaticJoint
            return self.plant.AddJoint(make(name, *frames, axis))
        make = {
            "free": tree.QuaternionFloatingJoint,
            "planar": tree.PlanarJoint,
            "ball": tree.BallRpyJoint,
        }[kind]
        return self.plant.AddJoint(make(name, *frames))

    def _inertia(self, joint: PinJoint | None) -> Any:
        tree = self._tree
        if joint is None or joint.inertia is None or joint.inertia.mass == 0.0:
            if joint is not None and joint.inertia is not None and joint.inertia.about_center.any():
                raise NotComparable("a body with moments of inertia and no mass")
            return tree.SpatialInertia.Zero()
        mass, center = joint.inertia.mass, joint.inertia.center
        about = joint.inertia.about_center / mass
        about += center @ center * np.eye(3) - np.outer(center, center)
        unit = tree.UnitInertia(*np.diag(about), about[0, 1], about[0, 2], about[1, 2])
        # A thin rod, without a moment about its own axis, is at the limit of what Drake accepts.
        return tree.SpatialInertia(
            mass=mass, p_PScm_E=center, G_SP_E=unit, skip_validity_check=True
        )

    def _samples(
        self, joints: Sequence[PinJoint], made: Sequence[list[Any]], states: PeerStates
    ) -> list[tuple[Array, Array, Array]]:
        n, n_q, n_v = len(states.q), self.plant.num_positions(), self.plant.num_velocities()
        q, v, a = np.zeros((n, n_q)), np.zeros((n, n_v)), np.zeros((n, n_v))
        coordinates = []
        for joint, parts in zip(joints, made, strict=True):
            own_q, own_v = _places(parts, "position"), _places(parts, "velocity")
            q[:, own_q], v[:, own_v], a[:, own_v] = _drake_state(joint, states)
            width = COORDINATES[joint.kind]
            coordinates.append(joint.sign * _padded(states.q[:, joint.q :], width))
        flat = np.concatenate(coordinates, axis=1)
        return list(zip(np.concatenate([q, v], axis=1), flat, a, strict=True))


def _padded(q: Array, width: int) -> Array:
    """Return the first columns; a planar joint has one angle where Pinocchio counts two numbers."""
    return np.pad(q[:, :width], ((0, 0), (0, max(0, width - q.shape[1]))))


def _places(parts: Sequence[Any], what: str) -> Array:
    """Return the indices of all coordinates or velocities of joints in the plant's vectors."""
    starts = [getattr(part, f"{what}_start")() for part in parts]
    sizes = [
        part.num_positions() if what == "position" else part.num_velocities() for part in parts
    ]
    return np.concatenate(
        [np.arange(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    )


def _drake_state(joint: PinJoint, states: PeerStates) -> tuple[Array, Array, Array]:
    """Return coordinates, velocities and accelerations of a joint as Drake orders them.

    Drake has angular velocities of balls in the axes of the parent's frame.
    """
    q, v, a = states.q[:, joint.q :], states.v[:, joint.v :], states.a[:, joint.v :]
    if joint.kind == "free":
        R = quaternion_rotation(q[:, 3:7])
        return (
            np.concatenate([q[:, 3:7], q[:, :3]], axis=1),
            np.concatenate([turned(R, v[:, 3:6]), v[:, :3]], axis=1),
            np.concatenate([turned(R, a[:, 3:6]), a[:, :3]], axis=1),
        )
    if joint.kind == "ball":
        R = quaternion_rotation(q[:, :4])
        angles = np.stack(
            [
                np.arctan2(R[:, 2, 1], R[:, 2, 2]),
                np.arcsin(-R[:, 2, 0]),
                np.arctan2(R[:, 1, 0], R[:, 0, 0]),
            ],
            axis=1,
        )
        return angles, turned(R, v[:, :3]), turned(R, a[:, :3])
    n = VELOCITIES[joint.kind]
    return joint.sign * q[:, :n], joint.sign * v[:, :n], joint.sign * a[:, :n]
