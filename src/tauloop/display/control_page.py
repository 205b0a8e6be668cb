"""A trajectory under controllers on a page: the machine as it moves, how far each stays behind, the forces of each."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.figures import in_degrees
from tauloop.display.pieces import Piece, Plot, channels_over_time, motion, traces
from tauloop.simulation import ControlComparison

#: Errors below this share of the largest are drawn at it.
LEAST = 1e-4


def control_page(comparison: ControlComparison) -> Iterator[Piece]:
    """The motion is that of the last controller; forces are of all."""
    model = comparison.model
    runs = {name: run for name, run in comparison.runs.items() if len(run.time)}
    if not runs:
        return
    last = list(runs)[-1]
    track = model.platform.track(runs[last].position)
    yield from motion(model, runs[last].time, track.q, f"The machine in motion, {last}")
    if any(run.tool_error.any() for run in runs.values()):
        errors = {name: 1e3 * run.tool_error for name, run in runs.items()}
        least = LEAST * max(float(error.max()) for error in errors.values())
        drawn = [
            traces(runs[name].time, {name: np.maximum(error, least)})
            for name, error in errors.items()
        ]
        yield Plot(
            title="Distance from the reference",
            x="time [s]",
            y="distance [mm]",
            traces=tuple(trace for part in drawn for trace in part),
            over_time=True,
            log_y=True,
        )
    units = model.actuator_units
    for unit in dict.fromkeys(units):
        same = [k for k, other in enumerate(units) if other == unit]
        shown, scale = in_degrees(unit, np.ones(()))
        drawn = [
            traces(run.time, {name: scale * np.abs(run.actuator_error[:, same]).max(axis=1)})
            for name, run in runs.items()
        ]
        yield Plot(
            title="Actuators behind their reference, the farthest",
            x="time [s]",
            y=f"error [{shown}]",
            traces=tuple(trace for part in drawn for trace in part),
            over_time=True,
        )
    for name, run in runs.items():
        yield from channels_over_time(f"Actuator force, {name}", run, "force", look="step")
