"""Tree forces by Hamilton's equations in the extended space, with rates of momenta.

Source: Miller (NUWAR paper), eqs. 1 to 8 and section 4.
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
class CanonicalTerms:
    """Terms of Hamilton's equations p' + remainder = S u + K^T lambda.

    Attributes:
        momentum: p = dT/dv (n_v,).
        rate: p' (n_v,), exact, from the accelerations of the motion.
        remainder: dH/dq with Poincare's term and friction (n_v,), independent of accelerations.
    """

    momentum: ca.SX
    rate: ca.SX
    remainder: ca.SX


def canonical_terms(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> CanonicalTerms:
    """Return the momenta, their rates and the other terms of Hamilton's equations.

    dH/dq at constant p equals -dL/dq at constant v. For angular velocities, Poincare's term p x w
    is added to it. Derivatives are taken with respect to internal symbols (`StateSymbols`). If the
    motion has no accelerations, `rate` is not valid, but the other two terms are. Then p' can be
    computed as two-point differences of a sampled motion.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity (see
            `require_energy`).
    """
    state = StateSymbols.of(motion)
    momentum, rate, remainder = state.at(
        state.derived(_momentum_rate_and_remainder, mechanism, entries), motion
    )
    return CanonicalTerms(
        momentum=momentum,
        rate=rate,
        remainder=remainder
        + friction_forces(mechanism, motion.topology, motion.values, motion.v, entries),
    )


def _momentum_rate_and_remainder(
    state: StateSymbols, mechanism: Mechanism, entries: Entries
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return p, p' and the remainder without friction in the symbols of a state."""
    parts = mechanism, state.motion, entries
    T = kinetic_energy(*parts, state.elements(mechanism, entries))
    # Elements of its own: the gradient of L would depend on what both energies share.
    L = T - potential_energy(*parts)
    p = ca.gradient(T, state.v)
    turning = p - freedom_momentum(state.motion, entries)
    return p, state.rate(p), state.poincare(turning) @ state.v - state.gradient(L)


def hamilton_forces(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> ca.SX:
    """Return the generalized forces (n_v,) of a motion, with exact rates of momenta.

    tau = p' + dH/dq + friction; see `newton_euler.tree_forces`. The rows without an actuator
    (Miller's platform rows) determine the multipliers of the loops, and the other rows determine
    the actuator forces. Sorting [S K^T] into blocks finds this order automatically.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters, SI.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity (see
            `require_energy`).
    """
    terms = canonical_terms(mechanism, motion, entries)
    return terms.rate + terms.remainder
