"""Inverse dynamics of a sampled motion without its accelerations: Hamilton's equations with two-point differences."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError
from tauloop.compiler.catalogue import MOMENTUM, MOMENTUM_FORCES
from tauloop.compiler.state import Forces
from tauloop.model.motion import Motion

#: Differences of second order need three samples.
FEWEST_SAMPLES = 3


def forces_from_momenta(
    functions: Motion,
    time: np.ndarray,
    position: np.ndarray,
    velocity: np.ndarray,
    *,
    start: object | None = None,
) -> Forces:
    """Actuator forces along a sampled motion, from its momenta.

    p = dT/dv at every sample, p' by two-point differences (p[n+1] - p[n-1]) / (t[n+1] - t[n-1]),
    then S u + K^T lambda = p' + dH/dq. The error is of second order in the step, at the ends too
    (three points there).

    Args:
        functions: `model.platform` or `model.actuators`.
        time: times (N,), s, increasing; at least three.
        position, velocity: the given motion (N, n), SI.
        start: start values (N, n_q) or (n_q,) for Newton blocks.

    Returns:
        Forces as `Motion.inverse_dynamics` gives them; the state has no accelerations.

    Raises:
        InputError: too few samples, times that do not increase, or wrong shapes.
        PoseError: out of reach or singular.
        DescriptionError: a rod has no kinetic energy.
    Source: Miller (NUWAR paper), section 4.
    """
    t = np.asarray(time, dtype=float)
    steps = np.diff(t) if t.ndim == 1 else np.zeros(0)
    if (
        len(steps) < FEWEST_SAMPLES - 1
        or not (np.isfinite(t).all() and (steps > 0).all())
        or len(position) != len(t)
    ):
        what = f"needs at least {FEWEST_SAMPLES} finite, increasing times, one per sample; got shape {t.shape} for "
        what += f"{len(position)} samples, smallest step {steps.min() if len(steps) else float('nan'):.4g} s"
        raise InputError.of(
            "time",
            what,
            "give the times of the samples in seconds, in order and without repetitions",
        )
    arguments: dict[str, object] = {"position": position, "velocity": velocity}
    outputs, _, _ = functions.runner.run(MOMENTUM, arguments, start=start)
    rate = np.gradient(outputs["momentum"], t, axis=0, edge_order=2)
    outcome = functions.runner.run(
        MOMENTUM_FORCES, arguments, start=start, extra={"momentum_rate": rate}
    )
    return functions.forces(*outcome, start=start)
