"""The machine in Pinocchio: its recursive Newton-Euler, its frame Jacobians, none of its constraint solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from tauloop.engines.building import rigid_tree
from tauloop.engines.constraints import LinkMotion
from tauloop.engines.engine import Engine
from tauloop.engines.joints import Primitive
from tauloop.engines.optional import engine_module
from tauloop.engines.poses import Array, Pose
from tauloop.engines.rigid_tree import GROUND, RigidTree
from tauloop.mechanism.model import Mechanism


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PinocchioEngine(Engine):
    """A machine written into a Pinocchio model.

    Attributes:
        library: the Python module.
        model: the model; links in the order of the tree, a joint for each that moves.
        frames: frame numbers of the links `tree.anchored`.
    """

    library: Any
    model: Any
    frames: tuple[int, ...]

    def link_motion(self, q: Array, v: Array) -> LinkMotion:
        """Poses, Jacobians and classical accelerations of frames at the links' origins, in base axes."""
        pin, model, data = self.library, self.model, self.model.createData()
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        shape = (len(q), len(self.frames))
        R, p = np.empty((*shape, 3, 3)), np.empty((*shape, 3))
        J, bias = np.empty((*shape, 6, model.nv)), np.empty((*shape, 6))
        rest = np.zeros(model.nv)
        for i, (q_i, v_i) in enumerate(zip(self._q(q), v, strict=True)):
            pin.computeJointJacobians(model, data, q_i)
            pin.forwardKinematics(model, data, q_i, v_i, rest)
            pin.updateFramePlacements(model, data)
            for k, frame in enumerate(self.frames):
                R[i, k], p[i, k] = data.oMf[frame].rotation, data.oMf[frame].translation
                J[i, k] = pin.getFrameJacobian(model, data, frame, world)
                bias[i, k] = pin.getFrameClassicalAcceleration(model, data, frame, world).vector
        return LinkMotion(rotation=R, position=p, jacobian=J, bias=bias)

    def tree_forces(self, q: Array, v: Array, a: Array) -> Array:
        """Tree forces by `rnea`."""
        data = self.model.createData()
        rnea, model = self.library.rnea, self.model
        return np.array([rnea(model, data, *state) for state in zip(self._q(q), v, a, strict=True)])

    def _q(self, q: Array) -> Array:
        """Quaternions as x y z w."""
        q = q.copy()
        for iq, _, _ in self.tree.balls:
            q[:, iq : iq + 4] = np.roll(q[:, iq : iq + 4], -1, axis=1)
        return q


def pinocchio_engine(mechanism: Mechanism) -> PinocchioEngine:
    """The mechanism in Pinocchio, at its nominal parameters and without friction.

    Raises:
        EngineError: Pinocchio is not installed, or the mechanism cannot be represented.
    """
    pin = engine_module("pinocchio", "Pinocchio")
    tree = rigid_tree(mechanism)
    model, frames = _model(pin, tree)
    return PinocchioEngine(
        tree=tree, name="Pinocchio", version=pin.__version__, library=pin, model=model, frames=frames
    )


def _model(pin: Any, tree: RigidTree) -> tuple[Any, tuple[int, ...]]:
    model = pin.Model()
    model.gravity.linear = tree.gravity
    # A link that is fixed to its parent is a frame on the last joint before it.
    carried = {GROUND: (0, pin.SE3.Identity())}
    frames: dict[int, int] = {}
    for i, link in enumerate(tree.links):
        joint, offset = carried[link.parent]
        offset = offset * _se3(pin, link.at)
        if link.primitive is not None:
            joint, offset = model.addJoint(joint, _joint(pin, link.primitive), offset, f"joint {i}"), pin.SE3.Identity()
        carried[i] = joint, offset
        if link.inertia is not None:
            inertia = pin.Inertia(link.inertia.mass, link.inertia.center, link.inertia.about_center)
            model.appendBodyToJoint(joint, inertia, offset)
        if i in tree.anchored:
            frames[i] = model.addFrame(pin.Frame(f"link {i}", joint, offset, pin.FrameType.OP_FRAME))
    return model, tuple(frames[i] for i in tree.anchored)


def _joint(pin: Any, primitive: Primitive) -> Any:
    if primitive.kind == "ball":
        return pin.JointModelSpherical()
    unaligned = pin.JointModelRevoluteUnaligned if primitive.kind == "hinge" else pin.JointModelPrismaticUnaligned
    return unaligned(np.array(primitive.axis))


def _se3(pin: Any, pose: Pose) -> Any:
    return pin.SE3(pose.rotation, pose.position)
