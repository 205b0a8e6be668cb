"""The machine in MuJoCo: recursive Newton-Euler and Jacobians, without its soft constraints.

`mj_inverse` would regularize the multipliers of loops. Therefore the MuJoCo model contains only the
tree, and `mj_rne`, which `mj_inverse` uses for tree forces, is called directly.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from tauloop.common.records import dataclass
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.poses import Array, rotation_quaternion
from tauloop.verification.engines.engine import Engine
from tauloop.verification.engines.optional import engine_module
from tauloop.verification.engines.trees.building import rigid_tree
from tauloop.verification.engines.trees.constraints import LinkMotion
from tauloop.verification.engines.trees.rigid_tree import GROUND, RigidTree


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MujocoEngine(Engine):
    """A machine as a MuJoCo model.

    Attributes:
        bodies: MuJoCo's body ids of the links `tree.anchored`.
    """

    bodies: tuple[int, ...]

    def link_motion(self, q: Array, v: Array) -> LinkMotion:
        """Return the motion of links from body poses, `mj_jac` and `mj_jacDot`."""
        mj = self.library
        model = self.model
        data = mj.MjData(model)
        shape = (len(q), len(self.bodies))
        R = np.empty((*shape, 3, 3))
        p = np.empty((*shape, 3))
        J = np.empty((*shape, 6, model.nv))
        J_dot = np.empty((*shape, 6, model.nv))
        for i, (q_i, v_i) in enumerate(zip(q, v, strict=True)):
            self._set(data, q_i, v_i)
            for k, body in enumerate(self.bodies):
                origin = data.xpos[body].copy()
                R[i, k] = data.xmat[body].reshape(3, 3)
                p[i, k] = origin
                mj.mj_jac(model, data, J[i, k, :3], J[i, k, 3:], origin, body)
                mj.mj_jacDot(model, data, J_dot[i, k, :3], J_dot[i, k, 3:], origin, body)
        J = J[..., self.v_order]
        J_dot = J_dot[..., self.v_order]
        return LinkMotion(
            rotation=R, position=p, jacobian=J, bias=np.einsum("nkij,nj->nki", J_dot, v)
        )

    def tree_forces(self, q: Array, v: Array, a: Array) -> Array:
        """Return the tree forces (N, n_v) from `mj_rne`."""
        data = self.library.MjData(self.model)
        tau = np.empty_like(v)
        for i, (q_i, v_i, a_i) in enumerate(zip(q, v, a, strict=True)):
            self._set(data, q_i, v_i)
            data.qacc[self.v_order] = a_i
            self.library.mj_rne(self.model, data, 1, tau[i])
        return tau[:, self.v_order]

    def mass_matrix(self, q: Array) -> Array:
        """Return the mass matrices from `mj_makeM`, in the tree's order."""
        mj = self.library
        model = self.model
        data = mj.MjData(model)
        M = np.empty((len(q), model.nv, model.nv))
        for i, q_i in enumerate(q):
            self._set(data, q_i, np.zeros(model.nv))
            mj.mj_makeM(model, data)
            mj.mj_fullM(model, data, M[i])
        return M[:, self.v_order[:, None], self.v_order]

    def _set(self, data: Any, q: Array, v: Array) -> None:
        """Set a state and update kinematics, mass centers and velocities."""
        data.qpos[self.q_order] = q
        data.qvel[self.v_order] = v
        self.library.mj_kinematics(self.model, data)
        self.library.mj_comPos(self.model, data)
        self.library.mj_comVel(self.model, data)


def mujoco_engine(mechanism: Mechanism) -> MujocoEngine:
    """Return the mechanism in MuJoCo, at its nominal parameters and without friction.

    Raises:
        EngineError: MuJoCo is not installed, or the mechanism cannot be represented.
    """
    mj = engine_module("mujoco", "MuJoCo")
    tree = rigid_tree(mechanism)
    model = _model(mj, tree)
    moving = [
        model.joint(f"joint {i}") for i, link in enumerate(tree.links) if link.primitive is not None
    ]
    sizes = [
        (len(primitive.coordinates), len(primitive.velocities)) for primitive in tree.primitives
    ]
    pairs = list(zip(moving, sizes, strict=True))
    return MujocoEngine(
        tree=tree,
        name="MuJoCo",
        version=mj.__version__,
        library=mj,
        model=model,
        bodies=tuple(model.body(f"link {i}").id for i in tree.anchored),
        q_order=np.array(
            [joint.qposadr[0] + k for joint, (n, _) in pairs for k in range(n)], dtype=int
        ),
        v_order=np.array(
            [joint.dofadr[0] + k for joint, (_, n) in pairs for k in range(n)], dtype=int
        ),
    )


def _model(mj: Any, tree: RigidTree) -> Any:
    """Return a MuJoCo model, compiled with unit masses, in which the true masses are then set.

    The compiler rejects moving bodies with zero mass or zero moment of inertia, such as slender
    rods and intermediate links between two joints, and it changes invalid inertias. The fields of
    the compiled model accept all values, and the functions in this module do not divide by a mass.
    """
    spec = mj.MjSpec()
    spec.option.gravity = tree.gravity
    kinds = {
        "hinge": mj.mjtJoint.mjJNT_HINGE,
        "slide": mj.mjtJoint.mjJNT_SLIDE,
        "ball": mj.mjtJoint.mjJNT_BALL,
    }
    bodies = {GROUND: spec.worldbody.add_body(name="base")}
    moments = np.zeros((len(tree.links), 3))
    for i, link in enumerate(tree.links):
        center = np.zeros(3)
        axes = np.eye(3)
        if link.inertia is not None:
            center = link.inertia.center
            moments[i], axes = np.linalg.eigh(link.inertia.about_center)
            axes[:, 2] *= np.sign(np.linalg.det(axes))
        bodies[i] = bodies[link.parent].add_body(
            name=f"link {i}",
            pos=link.pose.position,
            quat=rotation_quaternion(link.pose.rotation),
            mass=1.0,
            ipos=center,
            iquat=rotation_quaternion(axes),
            inertia=np.ones(3),
            explicitinertial=True,
        )
        if link.primitive is not None:
            bodies[i].add_joint(
                name=f"joint {i}", type=kinds[link.primitive.kind], axis=link.primitive.axis
            )
    model = spec.compile()
    for i, link in enumerate(tree.links):
        body_id = model.body(f"link {i}").id
        model.body_mass[body_id] = 0.0 if link.inertia is None else link.inertia.mass
        model.body_inertia[body_id] = moments[i]
    # MuJoCo computes forces about the mass centers of subtrees. With unit masses these would be far
    # from the machine.
    model.body_subtreemass[:] = model.body_mass
    for body_id in range(model.nbody - 1, 0, -1):
        parent_id = model.body_parentid[body_id]
        model.body_subtreemass[parent_id] += model.body_subtreemass[body_id]
    # For bodies that are marked as simple (with a diagonal mass matrix) MuJoCo would use the stored
    # unit inertia.
    model.body_simple[:] = 0
    model.dof_simplenum[:] = 0
    return model
