"""Tree forces by generalized momentum: each inertia's force is the rate of its momentum.

Source: Lopes and Almeida (RCID paper), eqs. 12, 24, 37, 50 and 68.
"""

from __future__ import annotations

import casadi as ca

from tauloop.equations.energy import potential_energy
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.inertial_elements import inertial_elements
from tauloop.equations.newton_euler import friction_forces
from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import Entries
from tauloop.mechanism.model import Mechanism


def generalized_momentum_forces(
    mechanism: Mechanism, motion: TreeMotion, entries: Entries
) -> ca.SX:
    """Generalised forces (n_v,) that the motion needs; as `newton_euler.tree_forces`.

    tau = sum of J^T (d(I J v)/dt + C v) + dU/dq + friction, with u = J v the velocity of one
    inertia in the base frame and C v the part of a twist's moment that comes from the motion of its
    reference point.

    Differentiates with respect to symbols of its own (`StateSymbols`). A rod with `spin: none`
    takes its inertia along in its link frame, as the paper does; where its transverse inertias
    differ, that is not Newton-Euler's force.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters, SI.
    """
    state = StateSymbols(motion.topology)
    on_symbols = state.motion(motion.values)
    tau = state.gradient(potential_energy(mechanism, on_symbols, entries))
    for element in inertial_elements(mechanism, on_symbols, entries):
        J = ca.jacobian(element.velocity, state.v)
        tau += J.T @ (state.rate(element.momentum) + element.carried() @ element.velocity)
    (tau,) = state.at([tau], motion)
    return tau + friction_forces(mechanism, motion.topology, motion.values, motion.v, entries)
