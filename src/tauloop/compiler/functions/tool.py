"""Tool of a machine: its motion, and loads on it: a wrench and a fixed payload."""

from __future__ import annotations

import casadi as ca

from tauloop.equations.newton_euler import rigid_body_wrench
from tauloop.equations.topology import Topology
from tauloop.equations.tree import Configuration, TreeMotion, tree_motion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism

#: Size of a wrench: force and moment at the tool center point.
WRENCH = 6
#: Number of a payload's inertial parameters.
PAYLOAD = 10


def tool_twist(motion: TreeMotion, mechanism: Mechanism) -> ca.SX:
    """Return velocity of the tool center point and angular velocity (6,), in the base frame."""
    tool = mechanism.platform.tool
    return ca.vertcat(motion.point(tool).v, motion.bodies[tool.body].in_base.w)


def tool_pose(motion: TreeMotion, mechanism: Mechanism) -> tuple[ca.SX, ca.SX]:
    """Return position (3,) of the tool center point and rotation (3, 3), in the base frame."""
    tool = mechanism.platform.tool
    return motion.point(tool).p, motion.bodies[tool.body].R @ motion.values.rotation(tool.turns)


def tool_jacobian(
    mechanism: Mechanism, topology: Topology, values: Values, configuration: Configuration
) -> ca.SX:
    """Return the Jacobian J (6, n_v): the tool's twist per unit of all velocities."""
    v = ca.SX.sym("v", topology.n_v)
    motion = tree_motion(topology, values, configuration, v, ca.SX(topology.n_v, 1))
    return ca.SX(ca.jacobian(tool_twist(motion, mechanism), v))


def tool_load(motion: TreeMotion, mechanism: Mechanism, wrench: ca.SX, payload: ca.SX) -> ca.SX:
    """Return generalized forces (n_v,) that a payload requires, minus those of a tool wrench.

    tau = J^T (w_p - w), where w_p = [m a_c - m g; I alpha + omega x I omega + m c x (a - g)] in the
    tool's frame.

    Args:
        motion: motion of all bodies.
        mechanism: the machine.
        wrench: w (6,), force and moment on the machine at the tool center point in the base frame,
            N and N m.
        payload: (m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz) in the tool's frame, about the tool
            center point.
    """
    tool = mechanism.platform.tool
    body, (_, R) = motion.bodies[tool.body], tool_pose(motion, mechanism)
    a = motion.point(tool).a - motion.values.vector(mechanism.gravity)
    force, moment = rigid_body_wrench(
        R.T @ body.in_base.w, R.T @ body.in_base.alpha, R.T @ a, payload
    )
    J = tool_jacobian(mechanism, motion.topology, motion.values, motion.configuration)
    return ca.SX(J.T @ (ca.vertcat(R @ force, R @ moment) - wrench))
