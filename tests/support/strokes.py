"""A stroke over what a machine can reach: each degree of freedom in turn, there, to the other side, and back."""

from __future__ import annotations

import numpy as np

from tauloop.common.errors import InputError, PoseError
from tauloop.equations.assembly.limits import coordinate_limits
from tauloop.model import Model
from tauloop.viewer.panel.handles import Handle, Handles

#: Share of a freedom's reach that a stroke uses: at the border of the workspace machines are
#: singular, or at a stop.
SHARE = 0.9
#: Poses of the stroke of one freedom, and of all.
FEWEST, MOST = 24, 120
#: A freedom whose limits are a whole turn apart goes round, deg.
WHOLE_TURN = 360.0
#: How far freedoms without limits go: degrees, components of a quaternion.
FARTHEST = {"deg": 20.0, "1": 0.17}


def stroke(model: Model, poses: int = MOST) -> np.ndarray:
    """Coordinates (N, n_q) of a stroke that begins and ends at the reference pose.

    Each freedom of the platform (a free turn about each axis) takes its turn while the others rest,
    within its limits. Where another joint meets a stop, or the workspace ends, it waits until the
    way leads back.
    """
    home = model.assembly.q
    handles = Handles(model, model.platform, home)
    count = max(poses // len(handles.handles), FEWEST)
    states = [home]
    for number, handle in enumerate(handles.handles):
        start = float(handles.values(home)[number])
        for value in values(start, *reach(model, handle), count):
            try:
                state = handles.moved(states[-1], number, value)
            except (PoseError, InputError):
                continue
            if (model.limits.room(state[None], ("stop",)) > -1e-9).all():
                states.append(state)
    return np.array([*states, home])


def reach(model: Model, handle: Handle) -> tuple[float, float]:
    """Range of one freedom in its unit: its limits in the file, else as far as it goes on its own."""
    names = model.topology.coordinate_names
    if handle.name in names:
        lower, upper = (
            float(limit[names.index(handle.name)]) for limit in coordinate_limits(model.topology)
        )
        if np.isfinite([lower, upper]).all():
            return (
                (lower, upper)
                if handle.unit != "deg"
                else (float(np.degrees(lower)), float(np.degrees(upper)))
            )
    farthest = FARTHEST.get(handle.unit, np.inf)
    return max(handle.lower, -farthest), min(handle.upper, farthest)


def values(start: float, lower: float, upper: float, count: int) -> np.ndarray:
    """Values (count,) of one freedom: from its start to one end, to the other, and back; or once round."""
    phase = np.linspace(0.0, 2.0 * np.pi, count + 1)[1:]
    if abs(upper - lower - WHOLE_TURN) < 1e-6:
        return start + np.degrees(phase)
    up, down = SHARE * (upper - start), SHARE * (start - lower)
    return start + np.where(phase < np.pi, up, down) * np.sin(phase)
