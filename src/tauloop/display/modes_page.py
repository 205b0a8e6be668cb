"""Modes on a page: the machine in one after the other, and how well each is conditioned."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Piece, Plot, PlotTrace, motion, rounded
from tauloop.kinematics.modes.modes import Modes


def modes_page(modes: Modes) -> Iterator[Piece]:
    """Every mode has its number in the table below."""
    if not modes.modes:
        return
    number = np.arange(1.0, len(modes.modes) + 1)
    yield from motion(
        modes.model, number, modes.q, "The modes, one after the other", is_motion=False
    )
    labels = tuple(
        "reference"
        if mode.is_reference
        else "within limits"
        if mode.within_limits
        else "beyond a stop"
        for mode in modes.modes
    )
    conditions = rounded([mode.condition for mode in modes.modes])
    yield Plot(
        title="Condition of each mode",
        x="mode",
        y="condition number of the loops [1]",
        traces=(
            PlotTrace(
                name="condition", x=rounded(number), y=conditions, look="points", labels=labels
            ),
        ),
        over_time=True,
        log_y=True,
        note="Large is near another mode: a small error of a length moves the platform far.",
    )
