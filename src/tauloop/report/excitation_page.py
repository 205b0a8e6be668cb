"""An excitation on a page: the motion, its speeds and accelerations, and how much of every limit it takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.identification.excitation.result import POINTS, Excitation
from tauloop.report.excitation_figure import SHOWN, limit_share
from tauloop.report.pieces import Piece, Plot, PlotTrace, motion, over_time, rounded


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
        shares = rounded([100.0 * limit_share(limit) for limit in used])
        hidden = len(excitation.limits) - len(used)
        yield Plot(
            title="How much of every limit is used",
            x="",
            y="share of the limit [%]",
            traces=(PlotTrace(name="share", x=tuple(limit.name for limit in used), y=shares, look="bars"),),
            sideways=True,
            note=f"{hidden} less used ones are not shown." if hidden else "",
        )
