"""Detection of events within the steps of a simulation, with dense output.

Source: Brent 1973, Algorithms for Minimization without Derivatives, for the zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tauloop.integrate.events import Event, Occurrence
from tauloop.simulation.stepping.steps import Steps

#: Accuracy of event times, s.
TIME_TOLERANCE = 1e-13

#: Function from states of the system (N, n) and nearby coordinates (N, n_q) to coordinates (N, n_q)
#: and velocities (N, n_v).
Decode = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def occurrences(
    events: tuple[Event, ...],
    steps: Steps,
    decode: Decode,
) -> list[Occurrence]:
    """Return the occurrences of events within some steps, up to the first terminal event.

    They are in the order of time.

    Args:
        events: events to detect.
        steps: steps of the integrator.
        decode: function from states to coordinates and velocities.
    """
    if not len(steps) or not events:
        return []
    last_q, last_v = decode(steps.y[-1:], steps.q[-1:])
    q, v = np.vstack([steps.q, last_q]), np.vstack([steps.v, last_v])
    occurred: list[Occurrence] = []
    for event in events:
        values = np.asarray(event.function(steps.time, q, v), dtype=float)
        rises = (values[:-1] < 0) & (values[1:] >= 0)
        falls = (values[:-1] > 0) & (values[1:] <= 0)
        crosses = {1: rises, -1: falls, 0: rises | falls}[event.direction]
        for i in np.flatnonzero(crosses):
            occurred.append(_located(event, steps, int(i), q[i], decode))
    occurred.sort(key=lambda item: item.time)
    terminal = [k for k, item in enumerate(occurred) if item.is_terminal]
    return occurred[: terminal[0] + 1] if terminal else occurred


def _located(event: Event, steps: Steps, i: int, near: np.ndarray, decode: Decode) -> Occurrence:
    """Return the occurrence of an event within step i, near the coordinates `near` (n_q,)."""

    def state(time: float) -> tuple[np.ndarray, np.ndarray]:
        return decode(steps.at(np.array([time])), near[None, :])

    def value(time: float) -> float:
        return float(event.function(np.array([time]), *state(time))[0])

    start, end = float(steps.time[i]), float(steps.time[i + 1])
    at_start, at_end = value(start), value(end)
    if at_start * at_end > 0:
        # the dense output differs from the state at the step's end by rounding or by a projection
        time = end
    else:
        from scipy.optimize import brentq  # an optional dependency that few simulations need

        time = float(brentq(value, start, end, xtol=TIME_TOLERANCE, rtol=1e-15))
    q, v = state(time)
    return Occurrence(name=event.name, time=time, q=q[0], v=v[0], is_terminal=event.is_terminal)
