"""Plots of a trajectory under controllers: tracking errors and forces of each controller."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Paragraph, Piece, Plot, PlotTrace
from tauloop.display.plots.building import (
    channels_over_time,
    motion,
    traces,
    with_common_scales,
)
from tauloop.display.sampling import in_degrees
from tauloop.simulation import ControlComparison

#: Smaller errors are drawn at this fraction of the largest error.
MIN_ERROR_FRACTION = 1e-4


def control_scene(comparison: ControlComparison) -> Iterator[Piece]:
    """Yield the machine in motion under the last controller."""
    runs = {name: run for name, run in comparison.runs.items() if len(run.time)}
    if runs:
        name, run = list(runs.items())[-1]
        track = comparison.model.platform.track(run.position)
        yield from motion(comparison.model, run.time, track.q, f"The machine in motion, {name}")


def control_plots(comparison: ControlComparison) -> Iterator[Paragraph | Plot]:
    """Yield the distance from the reference, actuator errors, and forces of each controller."""
    runs = {name: run for name, run in comparison.runs.items() if len(run.time)}
    if not runs:
        return
    text = f"Stroke of {comparison.duration:.4g} s, {comparison.space} space."
    yield Paragraph(text=text, tone="note")
    if any(run.tool_error.any() for run in runs.values()):
        errors = {name: 1e3 * run.tool_error for name, run in runs.items()}
        yield _errors(comparison, errors, "Distance from the reference", "distance [mm]")
    units = comparison.model.actuator_units
    for unit in dict.fromkeys(units):
        same_unit = [k for k, other in enumerate(units) if other == unit]
        display_unit, scale = in_degrees(unit, np.ones(()))
        errors = {
            name: scale * np.abs(run.actuator_error[:, same_unit]).max(axis=1)
            for name, run in runs.items()
        }
        title = "Largest actuator error"
        yield _errors(comparison, errors, title, f"error [{display_unit}]")
    plots = [
        plot
        for name, run in runs.items()
        for plot in channels_over_time(f"Actuator force, {name}", run, "force", style="step")
    ]
    yield from with_common_scales(plots)


def _errors(
    comparison: ControlComparison, errors: dict[str, np.ndarray], title: str, y: str
) -> Plot:
    """Return a plot of the errors of all controllers on a logarithmic axis."""
    largest = max(float(error.max()) for error in errors.values())
    smallest = MIN_ERROR_FRACTION * (largest or 1.0)
    drawn: list[PlotTrace] = []
    for name, error in errors.items():
        drawn += traces(comparison.runs[name].time, {name: np.maximum(error, smallest)})
    return Plot(title=title, x="time [s]", y=y, traces=tuple(drawn), over_time=True, log_y=True)
