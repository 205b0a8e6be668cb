"""Tree forces by generalized momentum: the force on each inertia is the rate of its momentum.

Source: Lopes and Almeida (RCID paper), eqs. 12, 24, 37, 50 and 68.
"""

from __future__ import annotations

import casadi as ca

from tauloop.equations.energy import potential_energy
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.newton_euler import friction_forces
from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import Entries
from tauloop.mechanism.model import Mechanism


def generalized_momentum_forces(
    mechanism: Mechanism, motion: TreeMotion, entries: Entries
) -> ca.SX:
    """Return the generalized forces (n_v,) of a motion; see `newton_euler.tree_forces`.

    tau = sum of J^T (d(I J v)/dt + C v) + dU/dq + friction, where u = J v is the velocity of an
    inertia I in the base frame. C v is the part of the moment that is due to the motion of the
    reference point of a twist.

    Derivatives are taken with respect to internal symbols (`StateSymbols`). The inertia of a rod
    with `spin: none` moves with the link frame, as in the paper. If its transverse inertias differ,
    the result differs from Newton-Euler.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters, SI.
    """
    state = StateSymbols.of(motion)
    (tau,) = state.at([state.derived(_forces_without_friction, mechanism, entries)], motion)
    return tau + friction_forces(mechanism, motion.topology, motion.values, motion.v, entries)


def _forces_without_friction(state: StateSymbols, mechanism: Mechanism, entries: Entries) -> ca.SX:
    """Return the generalized forces (n_v,) without friction in the symbols of a state."""
    elements = state.elements(mechanism, entries)
    tau = state.gradient(potential_energy(mechanism, state.motion, entries, elements))
    for element in elements:
        J = ca.jacobian(element.velocity, state.v)
        tau += J.T @ (
            state.rate(element.momentum) + element.moving_point_matrix() @ element.velocity
        )
    return tau
