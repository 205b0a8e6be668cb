"""The machine in Pinocchio: recursive Newton-Euler, composite rigid bodies and frame Jacobians.

The constraint solvers of Pinocchio are not used here; `pinocchio_constraints` uses them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, final

import numpy as np

from tauloop.common.records import dataclass
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import Array, FramePose
from tauloop.mechanism.solids.primitives import Primitive
from tauloop.verification.engines.engine import Engine
from tauloop.verification.engines.optional import engine_module
from tauloop.verification.engines.results import TreeStates
from tauloop.verification.engines.trees.building import rigid_tree
from tauloop.verification.engines.trees.constraints import LinkMotion
from tauloop.verification.engines.trees.filled_inertias import with_possible_inertias
from tauloop.verification.engines.trees.rigid_tree import GROUND, RigidTree


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PinocchioEngine(Engine):
    """A machine as a Pinocchio model.

    Attributes:
        frames: Pinocchio's frame ids of the links `tree.anchored`.
    """

    frames: tuple[int, ...]

    def link_motion(self, q: Array, v: Array) -> LinkMotion:
        """Return poses, Jacobians and classical accelerations of link frames, in base axes."""
        pin = self.library
        model = self.model
        data = model.createData()
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        shape = (len(q), len(self.frames))
        R = np.empty((*shape, 3, 3))
        p = np.empty((*shape, 3))
        J = np.empty((*shape, 6, model.nv))
        bias = np.empty((*shape, 6))
        zero_acceleration = np.zeros(model.nv)
        for i, (q_i, v_i) in enumerate(zip(self._q(q), self._v(v), strict=True)):
            pin.computeJointJacobians(model, data, q_i)
            pin.forwardKinematics(model, data, q_i, v_i, zero_acceleration)
            pin.updateFramePlacements(model, data)
            for k, frame in enumerate(self.frames):
                R[i, k] = data.oMf[frame].rotation
                p[i, k] = data.oMf[frame].translation
                # For a model with a single velocity Pinocchio returns an array (6,).
                J[i, k] = pin.getFrameJacobian(model, data, frame, world).reshape(6, model.nv)
                bias[i, k] = pin.getFrameClassicalAcceleration(model, data, frame, world).vector
        return LinkMotion(rotation=R, position=p, jacobian=J[..., self.v_order], bias=bias)

    def tree_forces(self, q: Array, v: Array, a: Array) -> Array:
        """Return the forces (N, n_v) of inverse dynamics of the tree, from `rnea`."""
        data = self.model.createData()
        rnea = self.library.rnea
        model = self.model
        states = zip(self._q(q), self._v(v), self._v(a), strict=True)
        return np.array([rnea(model, data, *state) for state in states])[:, self.v_order]

    def mass_matrix(self, q: Array) -> Array:
        """Return the mass matrices from `crba`, of which only the upper triangle is valid."""
        model = self.model
        data = model.createData()
        crba = self.library.crba
        upper = np.array([np.triu(crba(model, data, q_i)) for q_i in self._q(q)])
        M = upper + np.swapaxes(np.triu(upper, 1), 1, 2)
        return M[:, self.v_order[:, None], self.v_order]

    def model_states(
        self, states: TreeStates, forces: Array
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield coordinates, velocities and forces of each sample in Pinocchio's order.

        Args:
            states: states of the tree.
            forces: forces (N, n_v), dual to the machine file's velocities.
        """
        q, v, tau = self.own(replace(states, a=forces))
        yield from zip(self._q(q), self._v(v), self._v(tau), strict=True)

    def _q(self, q: Array) -> Array:
        """Return the coordinates in the model's order, quaternions as x y z w."""
        q = q.copy()
        for iq, _, _ in self.tree.balls:
            q[:, iq : iq + 4] = np.roll(q[:, iq : iq + 4], -1, axis=1)
        ordered = np.empty_like(q)
        ordered[:, self.q_order] = q
        return ordered

    def _v(self, v: Array) -> Array:
        """Return the velocities or accelerations in the model's order."""
        ordered = np.empty_like(v)
        ordered[:, self.v_order] = v
        return ordered


def pinocchio_engine(mechanism: Mechanism) -> PinocchioEngine:
    """Return the mechanism in Pinocchio, at its nominal parameters and without friction.

    Raises:
        EngineError: Pinocchio is not installed, or the mechanism cannot be represented.
    """
    pin = engine_module("pinocchio", "Pinocchio")
    tree = rigid_tree(mechanism)
    model, frames = _model(pin, with_possible_inertias(tree))
    pairs = [
        (model.joints[model.getJointId(f"joint {i}")], link.primitive)
        for i, link in enumerate(tree.links)
        if link.primitive is not None
    ]
    return PinocchioEngine(
        tree=tree,
        name="Pinocchio",
        version=pin.__version__,
        library=pin,
        model=model,
        frames=frames,
        q_order=np.array(
            [joint.idx_q + k for joint, p in pairs for k in range(len(p.coordinates))], dtype=int
        ),
        v_order=np.array(
            [joint.idx_v + k for joint, p in pairs for k in range(len(p.velocities))], dtype=int
        ),
    )


def _model(pin: Any, tree: RigidTree) -> tuple[Any, tuple[int, ...]]:
    """Return the model with links added depth first, and frame ids of the links `tree.anchored`.

    `crba` assumes that the joints of a subtree have consecutive numbers. Otherwise its result is
    wrong
    without an error: accelerations differed by up to 48 %.
    """
    model = pin.Model()
    model.gravity.linear = tree.gravity
    # A link that is fixed to its parent is a frame on the last joint before it.
    joint_of_link = {GROUND: (0, pin.SE3.Identity())}
    frames: dict[int, int] = {}
    for i in _depth_first(tree):
        link = tree.links[i]
        joint, offset = joint_of_link[link.parent]
        offset = offset * _se3(pin, link.pose)
        if link.primitive is not None:
            joint = model.addJoint(joint, _joint(pin, link.primitive), offset, f"joint {i}")
            offset = pin.SE3.Identity()
        joint_of_link[i] = (joint, offset)
        if link.inertia is not None:
            inertia = pin.Inertia(link.inertia.mass, link.inertia.center, link.inertia.about_center)
            model.appendBodyToJoint(joint, inertia, offset)
        if i in tree.anchored:
            frames[i] = model.addFrame(
                pin.Frame(f"link {i}", joint, offset, pin.FrameType.OP_FRAME)
            )
    return model, tuple(frames[i] for i in tree.anchored)


def _depth_first(tree: RigidTree) -> list[int]:
    """Return the indices of all links in depth-first order."""
    children: dict[int, list[int]] = {}
    for i, link in enumerate(tree.links):
        children.setdefault(link.parent, []).append(i)
    order = []
    open_links = children.get(GROUND, [])[::-1]
    while open_links:
        i = open_links.pop()
        order.append(i)
        open_links += children.get(i, [])[::-1]
    return order


def _joint(pin: Any, primitive: Primitive) -> Any:
    """Return Pinocchio's joint model of a primitive joint."""
    if primitive.kind == "ball":
        return pin.JointModelSpherical()
    axis = np.array(primitive.axis)
    if primitive.kind == "hinge":
        return pin.JointModelRevoluteUnaligned(axis)
    return pin.JointModelPrismaticUnaligned(axis)


def _se3(pin: Any, pose: FramePose) -> Any:
    """Return a pose as Pinocchio's SE3."""
    return pin.SE3(pose.rotation, pose.position)
