"""Plots of assembly modes: the machine in each mode, and the condition of each mode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Piece, Plot, PlotTrace
from tauloop.display.plots.building import motion, rounded
from tauloop.kinematics.modes.modes import Mode, Modes


def modes_scene(modes: Modes) -> Iterator[Piece]:
    """Yield the machine in every mode."""
    if modes.modes:
        number = np.arange(1.0, len(modes.modes) + 1)
        title = "The modes, one after the other"
        yield from motion(modes.model, number, modes.q, title, is_motion=False)


def modes_plots(modes: Modes) -> Iterator[Plot]:
    """Yield a plot of the condition number of every mode, over its number in the table."""
    if not modes.modes:
        return
    trace = PlotTrace(
        name="condition",
        x=rounded(np.arange(1.0, len(modes.modes) + 1)),
        y=rounded([mode.condition for mode in modes.modes]),
        style="points",
        labels=tuple(map(_label, modes.modes)),
    )
    yield Plot(
        title="Condition of each mode",
        x="mode",
        y="condition number of the loops [1]",
        traces=(trace,),
        over_time=True,
        log_y=True,
        note="An assembly mode with a large value is close to another one: a small length error "
        "causes a large platform displacement.",
    )


def _label(mode: Mode) -> str:
    if mode.is_reference:
        return "reference"
    return "within limits" if mode.within_limits else "beyond a stop"
