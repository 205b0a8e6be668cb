"""A planned motion on a page: the machine as it moves, its stroke, its forces, and how near it comes to limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import (
    STATES,
    Piece,
    Plot,
    PlotTrace,
    channels_over_time,
    motion,
    over_time,
    rounded,
)
from tauloop.motion.free.rows import names_of
from tauloop.motion.planning import PlannedMotion
from tauloop.simulation.planned.cycles import Cycle
from tauloop.simulation.planned.fastest import FastestMotion
from tauloop.simulation.planned.transfers import Transfer


def motion_page(planned: PlannedMotion | FastestMotion | Cycle) -> Iterator[Piece]:
    """What there is to see of it."""
    trajectory = planned.trajectory
    model, functions = trajectory.stroke.model, trajectory.stroke.functions
    time = np.linspace(0.0, trajectory.total, 2 * STATES + 1)
    states = trajectory.states(time)
    yield from motion(model, time, states.q)
    yield from channels_over_time(f"Stroke of the {functions.ports.name}", planned, "position")
    yield from channels_over_time("Actuator force", planned, "force")
    if isinstance(planned, FastestMotion):
        table = {variable.name: variable for variable in planned.variables()}
        share = [table["share"].array()]
        yield from over_time(
            "Limits", table["time"].array(), ["largest share of a limit"], ["1"], share
        )
        yield _path(planned, states.q)


def _path(planned: FastestMotion, q: np.ndarray) -> Plot:
    """The tool's path in the plane in which it is longest, past obstacles."""
    platform = planned.trajectory.stroke.functions
    place = platform.tool(platform.ports.at(q), start=q).place
    i, j = sorted(np.argsort(np.ptp(place, axis=0), kind="stable")[-2:].tolist())
    obstacles = planned.obstacles if isinstance(planned, Transfer) else ()
    lines = {"tool": place[:, [i, j]]}
    lines |= {
        name: item.outline(i, j) for name, item in zip(names_of(obstacles), obstacles, strict=True)
    }
    drawn = (
        PlotTrace(name=name, x=rounded(line[:, 0]), y=rounded(line[:, 1]))
        for name, line in lines.items()
    )
    return Plot(
        title="Path of the tool",
        x=f"{'xyz'[i]} [m]",
        y=f"{'xyz'[j]} [m]",
        traces=tuple(drawn),
        equal=True,
    )
