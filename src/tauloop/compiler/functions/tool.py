"""The tool of a machine: its motion, and what acts there: a wrench, and a payload that is fixed to it."""

from __future__ import annotations

import casadi as ca

from tauloop.equations.rods import rigid_body_wrench
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism

#: Numbers of a wrench: force and moment at the tool centre point; and inertial parameters of a
#: payload.
WRENCH, PAYLOAD = 6, 10


def tool_twist(motion: TreeMotion, mechanism: Mechanism) -> ca.SX:
    """Velocity of the tool centre point and angular velocity of its body (6,), in the base frame."""
    tool = mechanism.platform.tool
    return ca.vertcat(motion.point(tool).v, motion.bodies[tool.body].in_base.w)


def tool_pose(motion: TreeMotion, mechanism: Mechanism) -> tuple[ca.SX, ca.SX]:
    """Position of the tool centre point (3,) and rotation of the tool's frame (3, 3), in the base frame."""
    tool = mechanism.platform.tool
    return motion.point(tool).p, motion.bodies[tool.body].R @ motion.values.rotation(tool.turns)


def tool_jacobian(
    mechanism: Mechanism, topology: Topology, values: Values, configuration: Configuration
) -> ca.SX:
    """Jacobian J (6, n_v): the tool's twist per unit of all velocities."""
    v = ca.SX.sym("v", topology.n_v)
    motion = tree_motion(topology, values, configuration, v, ca.SX(topology.n_v, 1))
    return ca.SX(ca.jacobian(tool_twist(motion, mechanism), v))


def tool_load(motion: TreeMotion, mechanism: Mechanism, wrench: ca.SX, payload: ca.SX) -> ca.SX:
    """Forces on all velocities (n_v,) that carrying a payload takes, less those of a wrench that acts at the tool.

    tau = J^T (w_p - w) with w_p = [m a_c - m g; I alpha + omega x I omega + m c x (a - g)] in the
    tool's frame.

    Args:
        motion: of all bodies.
        mechanism: the machine.
        wrench: w (6,), force and moment on the machine at the tool centre point in the base frame,
            N and N m.
        payload: (m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) in the tool's frame, about the tool
            centre point.
    """
    tool = mechanism.platform.tool
    body, (_, R) = motion.bodies[tool.body], tool_pose(motion, mechanism)
    a = motion.point(tool).a - motion.values.vector(mechanism.gravity)
    force, moment = rigid_body_wrench(
        R.T @ body.in_base.w, R.T @ body.in_base.alpha, R.T @ a, payload
    )
    J = tool_jacobian(mechanism, motion.topology, motion.values, motion.configuration)
    return ca.SX(J.T @ (ca.vertcat(R @ force, R @ moment) - wrench))
