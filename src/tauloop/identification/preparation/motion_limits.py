"""How a log's motion stands to the stops of the machine file."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from tauloop.common.errors import TauloopError
from tauloop.common.result import Diagnostic
from tauloop.logs import samples
from tauloop.logs.log import Log, as_signals
from tauloop.logs.matching import channel_problems
from tauloop.model import Model

#: Samples of a log that are judged, beside those where a channel is at its ends.
JUDGED = 1000


def motion_limits(model: Model, log: Log) -> tuple[Diagnostic, ...]:
    """Coordinates that a log puts beyond their stops, and angles in it that look like degrees.

    All coordinates follow from the actuators' positions; where these do not close the loops, or
    leave freedoms open, the driven ones alone are judged.

    Args:
        model: the machine.
        log: with the positions of its actuators; one that lacks some is judged by what reads them.
    """
    entry = model.actuators.ports
    columns = entry.position.columns
    if channel_problems(log, {"position": dict(zip(columns, entry.position.units, strict=True))}):
        return ()
    position = samples(log, "position", columns)
    ends = (position.argmin(axis=0), position.argmax(axis=0))
    kept = np.unique(np.concatenate([np.linspace(0, len(position) - 1, JUDGED).astype(int), *ends]))
    q = entry.known_coordinates(position[kept], model.topology.n_q)
    if not model.limits.like_degrees(q):
        with suppress(TauloopError):
            # angles that turn are counted through all samples, the others need the judged ones
            # alone
            counts = not set(model.actuators.turning).isdisjoint(model.limits.names)
            q = (
                model.actuators.track(position).q[kept]
                if counts
                else model.actuators.follow(position[kept]).q
            )
    return model.limits.diagnostics(q, as_signals(log).time[kept])
