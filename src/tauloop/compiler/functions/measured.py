"""Best motion from measurements of redundant actuators, and distribution of forces among them.

All actuator positions p(x) follow from the leading ones x: p' = R x' with R = A G (transmission A
and embedding G, see `MotionState`). Measured
positions are never exactly consistent, because encoders have a resolution and lengths have errors.
If the leading encoders read x_1, the least-squares motion is

    x = x_1 + L (p - p(x_1)),  x' = L p',  L = (R^T N^-1 R)^-1 R^T N^-1,  N = diag(spread^2).

This is one Gauss-Newton step. It is exact for consistent measurements; otherwise its error is of
the order of the squared residual. A force t on the leading velocities is distributed as in inverse
dynamics: u = C t with C = W^-1 R (R^T W^-1 R)^-1. If each actuator's controller requests a force f
independently, C R^T f has the same effect on the motion, but actuators do not work against each
other.

Source: Hufnagel and Mueller 2012, A projection method for the elimination of contradicting
decentralized control forces in redundantly actuated PKM, IEEE Transactions on Robotics 28(3).
"""

from __future__ import annotations

import casadi as ca

from tauloop.compiler.expressions import MotionState
from tauloop.compiler.functions.motion import shared_forces
from tauloop.compiler.functions.rates import actuator_motion
from tauloop.compiler.program import Program


def measured_motion_program(state: MotionState) -> Program:
    """Return the program of the leading motion x and x' (m,), and of R and C by columns."""
    builder, n_u = state.builder, len(state.mechanism.actuators)
    measured, speed = builder.input("measured", n_u), builder.input("measured_speed", n_u)
    spread, weight = builder.input("spread", n_u), builder.input("weight", n_u)
    q, v = state.configuration.q, state.at_rest
    R, m = state.transmission @ state.embedding, state.ports.velocity.size
    beyond = measured - actuator_motion(state.assembly, q, v)[0]
    whitened = R / ca.repmat(spread, 1, m)
    left = whitened.T @ (ca.horzcat(beyond, speed) / ca.repmat(spread, 1, 2))
    fitted = builder.solve_symmetric(whitened.T @ whitened, left, "motion of all actuators")
    return builder.finish(
        {
            "q": q,
            "x": builder.declared("position") + fitted[:, 0],
            "speed": fitted[:, 1],
            "R": ca.vec(R),
            "share": ca.vec(shared_forces(builder, R, ca.SX.eye(m), weight)),
        }
    )
