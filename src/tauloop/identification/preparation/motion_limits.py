"""Comparison of a log's motion with the joint limits of the machine file."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.common.result import Diagnostic
from tauloop.logs import samples
from tauloop.logs.log import Log, as_signals
from tauloop.logs.matching import channel_problems
from tauloop.model import Model

#: Number of samples of a log that are checked, in addition to the extremes of each channel.
CHECKED_SAMPLES = 1000


def motion_limits(model: Model, log: Log) -> tuple[Diagnostic, ...]:
    """Return diagnostics of coordinates beyond their limits and of angles that look like degrees.

    All coordinates are computed from the actuators' positions. If the loops do not close at these
    positions, or the positions do not determine all coordinates, only the driven coordinates are
    checked.

    Args:
        model: the machine.
        log: a log with the positions of the actuators. A log with missing positions is not checked
            here; the functions that read the positions report it.
    """
    ports = model.actuators.ports
    columns = ports.position.columns
    if channel_problems(log, {"position": dict(zip(columns, ports.position.units, strict=True))}):
        return ()
    position = samples(log, "position", columns)
    uniform = np.linspace(0, len(position) - 1, CHECKED_SAMPLES).astype(int)
    extremes = np.concatenate([position.argmin(axis=0), position.argmax(axis=0)])
    checked = np.unique(np.concatenate([uniform, extremes]))
    q = ports.known_coordinates(position[checked], model.topology.n_q)
    if not model.limits.like_degrees(q):
        with suppress(TauloopError):
            # Full revolutions can only be counted by tracking all samples. For other angles the
            # checked samples suffice.
            counts_revolutions = not set(model.actuators.turning).isdisjoint(model.limits.names)
            if counts_revolutions:
                q = model.actuators.track(position).q[checked]
            else:
                # In wrong units no loop closes, and iterating at all samples takes long.
                model.actuators.follow(position[extremes[:1]])
                q = model.actuators.follow(position[checked]).q
    return model.limits.diagnostics(q, as_signals(log).time[checked])
