"""Plots of an excitation: positions, speeds, accelerations, and the used range of each limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.palette import MEASURED, PREDICTED
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotTrace
from tauloop.display.plots.building import motion, over_time, rounded
from tauloop.identification.excitation.result import PLOT_POINTS, Excitation, LimitUse

#: Maximum number of limits that are shown.
MAX_LIMITS = 16
#: A limit counts as reached if more than this fraction is used.
REACHED_FRACTION = 0.99


def excitation_scene(excitation: Excitation) -> Iterator[Piece]:
    """Yield the machine in motion, over one period."""
    if excitation.model is not None:
        sampled = excitation.series.sample(np.linspace(0.0, excitation.series.period, PLOT_POINTS))
        track = excitation.model.functions(excitation.task.channels).track(sampled.position)
        yield from motion(excitation.model, sampled.time, track.q)


def excitation_plots(excitation: Excitation) -> Iterator[Paragraph | Plot]:
    """Yield one period of the channels that move, and the use of the limits."""
    random = excitation.random
    yield Paragraph(
        text=f"Condition number of {counted(excitation.base.rank, 'base parameter')}: "
        f"{excitation.conditions.si:.3g} in SI units (best of {random.tried} random series "
        f"{random.best_si:.3g}), {excitation.conditions.unit_norm:.3g} with unit-norm columns "
        f"({random.best_unit_norm:.3g}).",
        tone="note",
    )
    sampled = excitation.series.sample(np.linspace(0.0, excitation.series.period, PLOT_POINTS))
    fixed = excitation.task.hold
    moving = [i for i, name in enumerate(excitation.channels) if name not in fixed]
    names = [excitation.channels[i] for i in moving]
    for title, values, suffix in (
        ("Position from the center", sampled.position - excitation.series.center, ""),
        ("Speed", sampled.velocity, "/s"),
        ("Acceleration", sampled.acceleration, "/s²"),
    ):
        units = [f"{excitation.units[i]}{suffix}" for i in moving]
        yield from over_time(title, sampled.time, names, units, values.T[moving])
    if excitation.limits:
        yield _limit_plot(excitation)


def _limit_plot(excitation: Excitation) -> Plot:
    """Return a plot of the range of every bounded quantity, scaled to limits of -1 and 1."""
    limits = sorted(excitation.limits, key=used_fraction, reverse=True)[:MAX_LIMITS]
    names = tuple(limit.name for limit in limits)
    ranges = np.array([_scaled_range(limit) for limit in limits])
    is_reached = np.array([used_fraction(limit) > REACHED_FRACTION for limit in limits])
    drawn = []
    for name, is_drawn, color in (
        ("limit reached", is_reached, PREDICTED),
        ("within the limits", ~is_reached, MEASURED),
    ):
        low, high = (np.where(is_drawn, values, np.nan) for values in ranges.T)
        if is_drawn.any():
            drawn.append(
                PlotTrace(
                    name=name,
                    x=names,
                    y=rounded(high),
                    base=rounded(low),
                    style="bars",
                    color=color,
                )
            )
    ends = (names[0], names[-1])
    for name, value in (("upper limit", 1.0), ("lower limit", -1.0)):
        drawn.append(PlotTrace(name=name, x=ends, y=(value, value), style="limit"))
    hidden = len(excitation.limits) - len(limits)
    note = "A distance that has only a lower limit is drawn as limit / value."
    if hidden:
        note += f" Limits that are used less and not shown: {hidden}."
    return Plot(
        title="Use of every limit",
        x="",
        y="range, from lower limit (-1) to upper limit (1) [1]",
        traces=tuple(drawn),
        sideways=True,
        y_range=(-1.1, 1.1),
        note=note,
    )


def _scaled_range(limit: LimitUse) -> tuple[float, float]:
    """Return the extremes of a quantity, scaled to limits of -1 and 1.

    If there is only a positive lower limit, the scaled values are -limit / value.
    """
    if limit.lower is not None and limit.upper is not None:
        middle = 0.5 * (limit.upper + limit.lower)
        half = 0.5 * (limit.upper - limit.lower)
        return (limit.least - middle) / half, (limit.greatest - middle) / half
    if limit.upper is None and limit.lower is not None and limit.lower > 0:
        return -limit.lower / limit.least, -limit.lower / limit.greatest
    bound = limit.lower if limit.upper is None else limit.upper
    scale = abs(bound or 0.0) or 1.0
    return limit.least / scale, limit.greatest / scale


def used_fraction(limit: LimitUse) -> float:
    """Return the used fraction of a limit; 1 if the limit is reached."""
    return max(abs(value) for value in _scaled_range(limit))
