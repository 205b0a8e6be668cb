"""Pinocchio from Python: the cost of a user's loop over states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.bodies import PeerTree
from peers.pinocchio_joints import (
    PinJoint,
    PinLoads,
    PinRegressor,
    pin_joints,
    pin_loads,
    pin_states,
)
from peers.states import NotComparable, PeerStates
from peers.timing import LOOP, seconds_per_call
from tauloop.mechanism.poses import Array, FramePose
from tauloop.verification.engines.optional import engine_module


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PythonResult:
    """Results; times in seconds for a state.

    Attributes:
        version: of Pinocchio.
        rnea: a loop over `rnea`, the tree's forces alone.
        inverse: a loop over whole inverse dynamics, loops included.
        forces: actuator forces (N, n_u) of the latter.
    """

    version: str
    rnea: float
    inverse: float
    forces: Array


def run(peer: PeerTree, states: PeerStates, seconds: float) -> PythonResult:
    """Measure, each of two measurements for `seconds`.

    Raises:
        EngineError: Pinocchio is not installed.
        NotComparable: a machine whose loops Pinocchio's own constraints do not close.
    """
    built = _build(peer, states)
    pin, model, data, loads = built.pin, built.model, built.data, built.loads
    S, driven, passive = np.linalg.inv(loads.transmission), built.driven, built.passive
    forces = np.empty((len(states.q), len(driven)))
    samples = built.samples

    def inverse(n: int = LOOP) -> None:
        for i, (q, v, a) in enumerate(samples[:n]):
            tau = pin.rnea(model, data, q, v, a)
            for spring_v, spring_q, stiffness, preload in loads.springs:
                tau[spring_v] += stiffness * q[spring_q] - preload
            K = built.constraint_jacobian(q)
            multipliers = np.linalg.solve(K[:, passive].T, tau[passive])
            forces[i] = S @ (tau[driven] - K[:, driven].T @ multipliers)

    def rnea() -> None:
        for q, v, a in samples[:LOOP]:
            pin.rnea(model, data, q, v, a)

    inverse(len(samples))
    count = min(LOOP, len(samples))
    return PythonResult(
        version=pin.__version__,
        rnea=seconds_per_call(rnea, seconds, count),
        inverse=seconds_per_call(inverse, seconds, count),
        forces=forces,
    )


def regressor(peer: PeerTree, states: PeerStates, seconds: float) -> PinRegressor:
    """Measure the regressor for `seconds`.

    Raises:
        EngineError: Pinocchio is not installed.
        NotComparable: a machine whose loops Pinocchio's own constraints do not close.
    """
    built = _build(peer, states)
    pin, model, data, loads = built.pin, built.model, built.data, built.loads
    S, driven, passive = np.linalg.inv(loads.transmission), built.driven, built.passive

    def projected(q: Array, rows: Array) -> Array:
        K = built.constraint_jacobian(q)
        return S @ (rows[driven] - np.linalg.solve(K[:, passive], K[:, driven]).T @ rows[passive])

    def one(q: Array, v: Array, a: Array) -> Array:
        return projected(q, pin.computeJointTorqueRegressor(model, data, q, v, a))

    def loop() -> None:
        for sample in built.samples[:LOOP]:
            one(*sample)

    pi = np.concatenate([model.inertias[j].toDynamicParameters() for j in range(1, model.njoints)])
    forces = []
    for q, v, a in built.samples:
        other_loads = loads.armature * a
        for spring_v, spring_q, stiffness, preload in loads.springs:
            other_loads[spring_v] += stiffness * q[spring_q] - preload
        forces.append(one(q, v, a) @ pi + projected(q, other_loads))
    time = seconds_per_call(loop, seconds, min(LOOP, len(built.samples)))
    return PinRegressor(
        version=pin.__version__, seconds=time, columns=len(pi), forces=np.array(forces)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Built:
    """The machine in Pinocchio."""

    pin: Any
    model: Any
    data: Any
    loads: PinLoads
    samples: list[tuple[Array, Array, Array]]
    constraint_jacobian: Callable[[Array], Array]
    driven: list[int]
    passive: list[int]


def _build(peer: PeerTree, states: PeerStates) -> _Built:
    if states.forward_mu is None:
        raise NotComparable("the loops need more than points that coincide")
    pin = engine_module("pinocchio", "Pinocchio")
    joints = pin_joints(peer)
    loads = pin_loads(joints, peer.tree, states.driven)
    motion = pin_states(joints, states)
    model = pin.Model()
    model.gravity.linear = peer.tree.gravity
    for i, joint in enumerate(joints.joints):
        number = model.addJoint(joint.parent, _joint(pin, joint), _se3(pin, joint.at), f"joint {i}")
        if joint.inertia is not None:
            inertia = pin.Inertia(
                joint.inertia.mass, joint.inertia.center, joint.inertia.about_center
            )
            model.appendBodyToJoint(number, inertia, pin.SE3.Identity())
    model.armature = loads.armature
    data = model.createData()
    points = pin.StdVec_RigidConstraintModel()
    for c in peer.constraints:
        ends = [(joints.of_body[end.body], _se3(pin, end.at)) for end in (c.first, c.second)]
        points.append(
            pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends[0], *ends[1])
        )
    workspaces = pin.StdVec_RigidConstraintData()
    for point in points:
        workspaces.append(point.createData())
    select = selection(peer, states)
    driven = list(loads.driven)
    passive = [i for i in range(model.nv) if i not in loads.driven]

    def constraint_jacobian(q: Array) -> Array:
        pin.computeJointJacobians(model, data, q)
        for point, workspace in zip(points, workspaces, strict=True):
            point.calc(model, data, workspace)
        return select @ pin.getConstraintsJacobian(model, data, points, workspaces)

    return _Built(
        pin=pin,
        model=model,
        data=data,
        loads=loads,
        samples=list(zip(*motion, strict=True)),
        constraint_jacobian=constraint_jacobian,
        driven=driven,
        passive=passive,
    )


def selection(peer: PeerTree, states: PeerStates) -> Array:
    """The chosen rows (n, 3 n_constraints) from the three that Pinocchio gives for each point."""
    constraints = peer.tree.constraints
    every = np.zeros((sum(len(c.position_directions) for c in constraints), 3 * len(constraints)))
    row = 0
    for k, constraint in enumerate(constraints):
        directions = constraint.position_directions
        every[row : row + len(directions), 3 * k : 3 * k + 3] = directions
        row += len(directions)
    return every[list(states.rows)]


def _joint(pin: Any, joint: PinJoint) -> Any:
    whole = {
        "free": pin.JointModelFreeFlyer,
        "planar": pin.JointModelPlanar,
        "translation": pin.JointModelTranslation,
        "ball": pin.JointModelSpherical,
    }
    if joint.kind in whole:
        return whole[joint.kind]()
    if joint.kind == "universal":
        return pin.JointModelUniversal(joint.axes[0], joint.axes[1])
    stem, unaligned = {
        "hinge": ("R", pin.JointModelRevoluteUnaligned),
        "slide": ("P", pin.JointModelPrismaticUnaligned),
    }[joint.kind]
    for letter, axis in zip("XYZ", np.eye(3), strict=True):
        if np.array_equal(joint.axes[0], axis):
            return getattr(pin, f"JointModel{stem}{letter}")()
    return unaligned(joint.axes[0])


def _se3(pin: Any, pose: FramePose) -> Any:
    return pin.SE3(pose.rotation, pose.position)
