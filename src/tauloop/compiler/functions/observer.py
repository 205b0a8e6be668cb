"""One step of the generalized-momentum observer, which estimates external forces on the platform.

All velocities are v = G w, where w are the given velocities. With momenta p = dT/dv, Hamilton's
equations are p' + h = S u + K^T lambda + J^T f. The multipliers of the loops do no work on G, so

    s = G^T ((p - p_last) / T + h) - (A G)^T u,    F with (dx/dw)^T F = s,    r += (1 - exp(-K T))
    (F - r).

Here u are the actuator forces since the last sample, T seconds ago, A is the transmission, f are
external forces, and x' are the velocities of the platform, on which the external force F acts.
The estimate r follows the external force as a first-order lag with gain K. No acceleration is
measured, and no velocity is differentiated. The difference of momenta is half a sample late, which
is an error of first order in T.

Source: De Luca and Mattone 2005, Sensorless robot collision detection and hybrid force/motion
control (for open chains); Hamilton's equations after Miller (NUWAR paper), eqs. 3 to 8.
"""

from __future__ import annotations

import casadi as ca

from tauloop.compiler.expressions import MotionState
from tauloop.compiler.program import Program


def momentum_observer_program(state: MotionState) -> Program:
    """Return the program of the estimate r (n,) and of the momenta (n_v,) for the next sample.

    r are forces on the platform's velocities. At the first sample, whose period is zero, the
    estimate does not change.

    Args:
        state: state at positions and velocities.

    Raises:
        DescriptionError: the kinetic energy of a rod is not a function of its velocity.
    """
    builder, assembly, G = state.builder, state.assembly, state.embedding
    force = builder.input("force", len(state.mechanism.actuators))
    last = builder.input("last_momentum", state.topology.n_v)
    estimate = builder.input("last_external_force", len(assembly.independent))
    period, bandwidth = builder.input("period", 1), builder.input("bandwidth", 1)
    terms = state.canonical(state.v)
    unexplained = (
        G.T @ ((terms.momentum - last) / period + terms.remainder)
        - (state.transmission @ G).T @ force
    )
    platform = G[list(assembly.independent), :]
    on_platform = builder.solve(platform.T, unexplained, "forces on the platform")
    followed = estimate + (1 - ca.exp(-bandwidth * period)) * (on_platform - estimate)
    return builder.finish(
        {
            "q": state.configuration.q,
            "v": state.v,
            "external_force": ca.if_else(period > 0, followed, estimate),
            "momentum": terms.momentum,
        }
    )
