"""A joint of one's own: a screw, which slides along its axis as it turns about it (Lynch and Park 2017, chapter 2)."""

import casadi as ca

from tauloop.mechanism import JointKind
from tauloop.testing import check_joint

#: Way along the axis in one turn, m.
LEAD = 0.01


def placement(axes, x) -> tuple[ca.SX, ca.SX]:
    """R = exp(x [e]), by Rodrigues' formula; p = LEAD x / (2 pi) e."""
    (e,) = axes
    across = ca.skew(e)
    R = ca.SX.eye(3) + ca.sin(x[0]) * across + (1 - ca.cos(x[0])) * across @ across
    return R, LEAD / (2 * ca.pi) * x[0] * e


SCREW = JointKind(coordinates=("",), velocities=("",), axes=1, angular=(True,), placement=placement)

if __name__ == "__main__":
    check_joint(SCREW)
    print("a screw is a joint: `type: screw` where a package brings it under that name")
