"""Inverse dynamics of a sampled motion without accelerations, by Hamilton's equations."""

from __future__ import annotations

import numpy as np

from tauloop.common.counts import counted
from tauloop.common.errors import InputError
from tauloop.compiler.catalogue import MOMENTUM, MOMENTUM_FORCES
from tauloop.compiler.state import Forces
from tauloop.model.motion import Motion

#: Minimum number of samples for second-order differences.
MIN_SAMPLES = 3


def forces_from_momenta(
    functions: Motion,
    time: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    *,
    start: object | None = None,
) -> Forces:
    """Return the actuator forces along a sampled motion, from its momenta.

    The momenta are p = dT/dv with the kinetic energy T. Their rates p' are two-point differences
    (p[n+1] - p[n-1]) / (t[n+1] - t[n-1]), and three-point differences at both ends. The actuator
    forces u and multipliers lambda solve S u + K^T lambda = p' + dH/dq + friction with the total
    energy H. The error is of second order in the time step.

    Args:
        functions: `model.platform` or `model.actuators`.
        time: times (N,), s, increasing; at least three.
        position, velocity: the given motion (N, n), SI.
        start: start values (N, n_q) or (n_q,) for Newton blocks.

    Returns:
        Forces as in `Motion.inverse_dynamics`; the state has no accelerations.

    Raises:
        InputError: too few samples, times that do not increase, or wrong shapes.
        PoseError: out of reach or singular.
        DescriptionError: the kinetic energy of a rod is not a function of its velocity.

    Source: Miller (NUWAR paper), section 4.
    """
    t = np.asarray(time, dtype=float)
    steps = np.diff(t) if t.ndim == 1 else np.zeros(0)
    is_increasing = np.isfinite(t).all() and (steps > 0).all()
    if len(steps) < MIN_SAMPLES - 1 or not is_increasing or len(position) != len(t):
        smallest = steps.min() if len(steps) else float("nan")
        what = (
            f"needs at least {MIN_SAMPLES} finite, increasing times, one per sample; got shape {t.shape} for "
            f"{counted(len(position), 'sample')}, smallest step {smallest:.4g} s"
        )
        remedy = "give the times of the samples in seconds, in order and without repetitions"
        raise InputError.of("time", what, remedy)
    arguments: dict[str, object] = {"position": position, "velocity": velocity}
    outputs, _, _ = functions.runner.run(MOMENTUM, arguments, start=start)
    rate = np.gradient(outputs["momentum"], t, axis=0, edge_order=2)
    outcome = functions.runner.run(
        MOMENTUM_FORCES, arguments, start=start, extra={"momentum_rate": rate}
    )
    return functions.forces(*outcome, start=start)
