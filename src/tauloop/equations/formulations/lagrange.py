"""Tree forces by Lagrange's equations with Koditschek's form of the velocity terms.

Source: Koditschek 1984; RCID paper, section 4 (the method that the paper compares with); Poincare
1901 for angular velocities.
"""

from __future__ import annotations

import casadi as ca

from tauloop.common.records import dataclass
from tauloop.equations.energy import freedom_momentum, kinetic_energy, potential_energy
from tauloop.equations.formulations.state_symbols import StateSymbols
from tauloop.equations.newton_euler import friction_forces
from tauloop.equations.tree import TreeMotion
from tauloop.equations.values import Entries
from tauloop.mechanism.model import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class KoditschekForm:
    """Matrices of M a + V v + gravity = tau, with one row per velocity of the tree.

    Friction is not included.

    Attributes:
        M: mass matrix (n_v, n_v), symmetric.
        M_rate: time derivative of M along the motion.
        V: matrix of the velocity terms (n_v, n_v); M' - 2 V is skew.
        gravity: gradient of the potential energy of gravity and springs (n_v,).
    """

    M: ca.SX
    M_rate: ca.SX
    V: ca.SX
    gravity: ca.SX


def koditschek_matrices(
    state: StateSymbols, energy: ca.SX, scalar_momentum: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return the matrices (M, M', V) of a kinetic energy written in the symbols of a state.

    V = (M' + U^T - U)/2 + P with U_ij = sum_k v_k dM_kj/dq_i. P is Poincare's term, which is skew
    too, so M' - 2 V stays skew for angular velocities.

    Args:
        state: the symbols.
        energy: kinetic energy.
        scalar_momentum: momenta (n_v,) of inertias on single degrees of freedom, to which
            Poincare's term does not apply (see `freedom_momentum`).
    """
    momentum = ca.gradient(energy, state.v)
    M = ca.jacobian(momentum, state.v)
    M_rate = state.rate_at_constant_velocity(M)
    U = state.along_velocities(momentum).T
    return M, M_rate, (M_rate + U.T - U) / 2 + state.poincare(momentum - scalar_momentum)


def koditschek_form(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> KoditschekForm:
    """Return Koditschek's form of a whole machine.

    Derivatives are taken with respect to internal symbols (`StateSymbols`).

    Args:
        mechanism: the machine.
        motion: the state; its accelerations are not used.
        entries: dynamic parameters.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity (see
            `require_energy`).
    """
    state = StateSymbols.of(motion)
    M, M_rate, V, gravity = state.at(
        state.derived(_matrices_and_gravity, mechanism, entries), motion
    )
    return KoditschekForm(M=M, M_rate=M_rate, V=V, gravity=gravity)


def _matrices_and_gravity(
    state: StateSymbols, mechanism: Mechanism, entries: Entries
) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    """Return (M, M', V, dU/dq) of a whole machine in the symbols of a state."""
    parts = mechanism, state.motion, entries, state.elements(mechanism, entries)
    scalar_momentum = freedom_momentum(state.motion, entries)
    matrices = koditschek_matrices(state, kinetic_energy(*parts), scalar_momentum)
    return *matrices, state.gradient(potential_energy(*parts))


def lagrange_forces(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> ca.SX:
    """Return the generalized forces (n_v,) of a motion; see `newton_euler.tree_forces`.

    tau = M a + V v + dU/dq + friction with Koditschek's V.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters, SI.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity (see
            `require_energy`).
    """
    form = koditschek_form(mechanism, motion, entries)
    friction = friction_forces(mechanism, motion.topology, motion.values, motion.v, entries)
    return form.M @ motion.a + form.V @ motion.v + form.gravity + friction
