"""Pinocchio from Python: what a user's loop over states costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.bodies import PeerTree
from peers.pinocchio_joints import PinJoint, pin_joints, pin_loads, pin_states
from peers.states import NotComparable, PeerStates
from peers.timing import LOOP, seconds_per_call
from tauloop.engines.optional import engine_module
from tauloop.engines.poses import Array, Pose


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PythonResult:
    """What was measured and computed; times in seconds for a state.

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
    """Measure, each of two measurements for so many seconds.

    Raises:
        EngineError: Pinocchio is not installed.
        NotComparable: a machine whose loops Pinocchio's own constraints do not close.
    """
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
            inertia = pin.Inertia(joint.inertia.mass, joint.inertia.center, joint.inertia.about_center)
            model.appendBodyToJoint(number, inertia, pin.SE3.Identity())
    model.armature = loads.armature
    data = model.createData()
    points = pin.StdVec_RigidConstraintModel()
    for c in peer.constraints:
        ends = [(joints.of_body[end.body], _se3(pin, end.at)) for end in (c.first, c.second)]
        points.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends[0], *ends[1]))
    workspaces = pin.StdVec_RigidConstraintData()
    for point in points:
        workspaces.append(point.createData())
    select, S = _selection(peer, states), np.linalg.inv(loads.transmission)
    driven = list(loads.driven)
    passive = [i for i in range(model.nv) if i not in loads.driven]
    forces = np.empty((len(states.q), len(driven)))
    samples = list(zip(*motion, strict=True))

    def inverse(n: int = LOOP) -> None:
        for i, (q, v, a) in enumerate(samples[:n]):
            tau = pin.rnea(model, data, q, v, a)
            for spring_v, spring_q, stiffness, preload in loads.springs:
                tau[spring_v] += stiffness * q[spring_q] - preload
            pin.computeJointJacobians(model, data, q)
            for point, workspace in zip(points, workspaces, strict=True):
                point.calc(model, data, workspace)
            K = select @ pin.getConstraintsJacobian(model, data, points, workspaces)
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


def _selection(peer: PeerTree, states: PeerStates) -> Array:
    """The chosen rows (n, 3 n_constraints) from the three that Pinocchio gives for each point."""
    constraints = peer.tree.constraints
    every = np.zeros((sum(len(c.points) for c in constraints), 3 * len(constraints)))
    row = 0
    for k, constraint in enumerate(constraints):
        every[row : row + len(constraint.points), 3 * k : 3 * k + 3] = constraint.points
        row += len(constraint.points)
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


def _se3(pin: Any, pose: Pose) -> Any:
    return pin.SE3(pose.rotation, pose.position)
