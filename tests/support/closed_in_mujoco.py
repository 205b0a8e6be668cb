"""A machine with loops in MuJoCo: poses that its own closure finds, and forces by projection on its own Jacobians.

MuJoCo's constraints are soft in its dynamics. Here its equality constraints serve as equations:
their residuals are solved by Gauss and Newton, and motions are the null space of their Jacobian.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from extras import extra

#: Residual of closed loops, m and rad.
CLOSED = 1e-13
#: Singular values below this share of the largest are zero.
RANK = 1e-9


class ClosedInMujoco:
    """A model of MuJoCo whose equality constraints are closed exactly."""

    def __init__(
        self, path: Path, connects: tuple[tuple[str, str, tuple[float, float, float]], ...] = ()
    ) -> None:
        """Load the model.

        Args:
            path: MJCF or URDF.
            connects: two bodies and the point on the first where they are joined, of a URDF, which
                has no loops.
        """
        self.mujoco = extra("mujoco")
        spec = self.mujoco.MjSpec.from_file(str(path))
        for first, second, point in connects:
            equality = spec.add_equality()
            equality.type = self.mujoco.mjtEq.mjEQ_CONNECT
            equality.objtype = self.mujoco.mjtObj.mjOBJ_BODY
            equality.name1, equality.name2 = first, second
            equality.data[:3] = point
        self.model = spec.compile()
        flags = self.mujoco.mjtDisableBit
        self.model.opt.disableflags |= (
            flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT | flags.mjDSBL_FRICTIONLOSS
        )
        self.data = self.mujoco.MjData(self.model)

    def joint_names(self) -> list[str]:
        """Return the names of the hinges."""
        hinge = self.mujoco.mjtJoint.mjJNT_HINGE
        return [
            self.model.joint(i).name
            for i in range(self.model.njnt)
            if self.model.jnt_type[i] == hinge
        ]

    def equations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return residuals (c,) and Jacobian (c, n_v) of the equality constraints at the data's coordinates."""
        self.mujoco.mj_fwdPosition(self.model, self.data)
        is_equality = self.data.efc_type == self.mujoco.mjtConstraint.mjCNSTR_EQUALITY
        J = np.zeros((self.data.nefc, self.model.nv))
        if self.mujoco.mj_isSparse(self.model):
            sparse = (
                self.data.efc_J,
                self.data.efc_J_rownnz,
                self.data.efc_J_rowadr,
                self.data.efc_J_colind,
            )
            self.mujoco.mju_sparse2dense(J, *sparse)
        else:
            J = self.data.efc_J.reshape(self.data.nefc, self.model.nv)
        return self.data.efc_pos[is_equality], J[is_equality]

    def close(self, joints: Mapping[str, float], start: Mapping[str, float]) -> dict[str, float]:
        """Return the angles of all hinges where the loops close and some hinges have the angles that are given.

        Args:
            joints: angles that are held.
            start: angles of hinges where the search begins.
        """
        for name, angle in {**start, **joints}.items():
            self.data.joint(name).qpos[0] = angle
        held = [int(self.model.joint(name).dofadr[0]) for name in joints]
        free = [i for i in range(self.model.nv) if i not in held]
        for _ in range(60):
            residual, J = self.equations()
            if np.abs(residual).max(initial=0.0) < CLOSED:
                break
            step = np.zeros(self.model.nv)
            step[free] = -np.linalg.pinv(J[:, free], rcond=RANK) @ residual
            self.mujoco.mj_integratePos(self.model, self.data.qpos, step, 1.0)
        assert np.abs(residual).max(initial=0.0) < 100 * CLOSED
        return {name: float(self.data.joint(name).qpos[0]) for name in self.joint_names()}

    def is_within_ranges(self) -> bool:
        """Return whether all hinges are within their ranges."""
        hinges = [self.model.joint(name) for name in self.joint_names()]
        angles = [float(self.data.joint(hinge.name).qpos[0]) for hinge in hinges]
        pairs = [
            (hinge.range, angle)
            for hinge, angle in zip(hinges, angles, strict=True)
            if hinge.limited[0]
        ]
        return all(low <= angle <= high for (low, high), angle in pairs)

    def holding_forces(self, transmission: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the forces (n_u,) of motors that stand still, and the accelerations (n_v,) of what they do not hold.

        With the motions N of the closed loops, N^T (M N y + h) = N^T S u and A N y = 0 give u and
        y.

        Args:
            transmission: A (n_u, n_v), velocities of the motors per unit of those of the joints; S
                = A^T.
        """
        self.data.qvel[:], self.data.qacc[:] = 0.0, 0.0
        _, J = self.equations()
        N = null_space(J)
        flags = self.model.opt.disableflags
        self.model.opt.disableflags = flags | self.mujoco.mjtDisableBit.mjDSBL_EQUALITY
        self.mujoco.mj_inverse(self.model, self.data)
        h = np.array(self.data.qfrc_inverse)
        self.model.opt.disableflags = flags
        M = np.zeros((self.model.nv, self.model.nv))
        self.mujoco.mj_fullM(self.model, self.data, M)
        m, n_u = N.shape[1], len(transmission)
        matrix = np.block(
            [[N.T @ M @ N, -N.T @ transmission.T], [transmission @ N, np.zeros((n_u, n_u))]]
        )
        solution = np.linalg.solve(matrix, np.concatenate([-N.T @ h, np.zeros(n_u)]))
        return solution[m:], N @ solution[:m]


def null_space(J: np.ndarray) -> np.ndarray:
    """Return orthonormal motions (n_v, m) that a Jacobian (c, n_v) does not see."""
    if not len(J):
        return np.eye(J.shape[1])
    _, sigma, Vt = np.linalg.svd(J)
    return np.asarray(Vt[int((sigma > RANK * sigma[0]).sum()) :].T)
