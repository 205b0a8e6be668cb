"""Tree forces by Hamilton's equations in the extended space: the rate of momenta in place of accelerations.

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
    """What Hamilton's equations p' + remainder = S u + K^T lambda need.

    Attributes:
        momentum: p = dT/dv (n_v,).
        rate: p' (n_v,), exact, from the accelerations of the motion.
        remainder: dH/dq with Poincare's term and friction (n_v,), free of accelerations.
    """

    momentum: ca.SX
    rate: ca.SX
    remainder: ca.SX


def canonical_terms(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> CanonicalTerms:
    """Momenta and the terms beside their rate: dH/dq = -dL/dq, at constant p and at constant v.

    On angular velocities Poincare's term p x w joins dH/dq. Differentiates with respect to symbols
    of its own (`StateSymbols`). Without accelerations in the motion the rate is of no use, and the
    other two are whole: a sampled motion gives p' by two-point differences.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters.

    Raises:
        DescriptionError: a rod has no kinetic energy.
    """
    state = StateSymbols(motion.topology)
    on_symbols = state.motion(motion.values)
    T = kinetic_energy(mechanism, on_symbols, entries)
    L = T - potential_energy(mechanism, on_symbols, entries)
    p = ca.gradient(T, state.v)
    turning = p - freedom_momentum(on_symbols, entries)
    remainder = state.poincare(turning) @ state.v - state.gradient(L)
    momentum, rate, remainder = state.at([p, state.rate(p), remainder], motion)
    return CanonicalTerms(
        momentum=momentum,
        rate=rate,
        remainder=remainder
        + friction_forces(mechanism, motion.topology, motion.values, motion.v, entries),
    )


def hamilton_forces(mechanism: Mechanism, motion: TreeMotion, entries: Entries) -> ca.SX:
    """Generalised forces (n_v,) that the motion needs, with exact rates of momenta; as `newton_euler.tree_forces`.

    tau = p' + dH/dq + friction. The loops' multipliers then follow from the rows without an
    actuator (Miller's platform rows), and the actuator forces from the others: what sorting [S K^T]
    into blocks finds by itself.

    Args:
        mechanism: the machine.
        motion: positions, velocities and accelerations of all bodies.
        entries: dynamic parameters, SI.

    Raises:
        DescriptionError: a rod has no kinetic energy.
    """
    terms = canonical_terms(mechanism, motion, entries)
    return terms.rate + terms.remainder
