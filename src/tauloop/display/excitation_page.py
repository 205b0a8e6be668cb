"""An excitation on a page: the motion, its speeds and accelerations, and how much of every limit it takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.excitation_figure import SHOWN, limit_share
from tauloop.display.pieces import Piece, by_name, motion, over_time
from tauloop.identification.excitation.result import POINTS, Excitation


def excitation_page(excitation: Excitation) -> Iterator[Piece]:
    """One period."""
    moved = excitation.series.sample(np.linspace(0.0, excitation.series.period, POINTS))
    if excitation.model is not None:
        track = excitation.model.motion(excitation.task.space).track(moved.position)
        yield from motion(excitation.model, moved.time, track.q)
    held = excitation.task.held
    kept = [i for i, name in enumerate(excitation.channels) if name not in held]
    names = [excitation.channels[i] for i in kept]
    for title, values, rate in (
        ("Position from the centre", moved.position - excitation.series.center, ""),
        ("Speed", moved.velocity, "/s"),
        ("Acceleration", moved.acceleration, "/s²"),
    ):
        units = [f"{excitation.units[i]}{rate}" for i in kept]
        yield from over_time(title, moved.time, names, units, values.T[kept])
    used = sorted(excitation.limits, key=limit_share, reverse=True)[:SHOWN]
    if used:
        shares = {"share": [100.0 * limit_share(limit) for limit in used]}
        hidden, names = len(excitation.limits) - len(used), [limit.name for limit in used]
        note = f"{hidden} less used ones are not shown." if hidden else ""
        title = "How much of every limit is used"
        yield by_name(title, "share of the limit [%]", names, shares, look="bars", note=note)
