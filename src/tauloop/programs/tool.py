"""The motion of a machine's tool."""

from __future__ import annotations

import casadi as ca

from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import Values
from tauloop.mechanism.model import Mechanism

#: Numbers of a wrench: force and moment at the tool centre point.
WRENCH = 6


def tool_twist(motion: TreeMotion, mechanism: Mechanism, values: Values) -> ca.SX:
    """Velocity of the tool centre point and angular velocity of its body (6,), in the base frame."""
    tool = mechanism.platform.tool
    return ca.vertcat(motion.point(tool, values).v, motion.bodies[tool.body].w_W)
