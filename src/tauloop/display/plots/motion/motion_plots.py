"""Plots of planned motions: strokes, forces, speeds, and fractions of limits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.palette import COLORS, TEXT
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotSpan, PlotTrace
from tauloop.display.plots.building import (
    MAX_SCENE_STATES,
    channels_over_time,
    motion,
    over_time,
    rounded,
    traces,
)
from tauloop.motion.free.rows import names_of
from tauloop.motion.planning import PlannedMotion
from tauloop.simulation.planned.cycles import Cycle
from tauloop.simulation.planned.fastest import FastestMotion
from tauloop.simulation.planned.transfers import Transfer

#: Colors of motors and of limits.
PALETTE = (*COLORS, "#5f8a8b", "#a05070")
#: Number of times at which forces are computed.
N_TIMES = 1501


def motion_scene(planned: PlannedMotion | FastestMotion | Cycle) -> Iterator[Piece]:
    """Yield the machine in motion."""
    trajectory = planned.trajectory
    time = np.linspace(0.0, trajectory.total, 2 * MAX_SCENE_STATES + 1)
    yield from motion(trajectory.stroke.model, time, trajectory.states(time).q)


def motion_plots(planned: PlannedMotion) -> Iterator[Paragraph | Plot]:
    """Yield positions, velocities, accelerations and forces."""
    yield from _stroke(planned)
    yield from channels_over_time("Velocity", planned, "velocity")
    yield from channels_over_time("Acceleration", planned, "acceleration")
    yield from channels_over_time("Actuator force", planned, "force")


def fastest_plots(result: FastestMotion) -> Iterator[Paragraph | Plot]:
    """Yield the stroke, forces, limits with the times at which they are reached, and the path."""
    yield Paragraph(text=f"Motion of {1e3 * result.duration:.4g} ms.", tone="note")
    time = np.linspace(0.0, result.duration, N_TIMES)
    yield from _stroke(result)
    yield _speed(result, time)
    yield from channels_over_time("Actuator force", result, "force")
    yield from _force_fractions(result, time)
    table = {variable.name: variable for variable in result.variables()}
    yield from over_time(
        "Limits",
        table["time"].array(),
        ["largest fraction of a limit"],
        ["1"],
        [table["share"].array()],
        spans=_active_limits(result),
    )
    yield _path(result)


def cycle_plots(result: Cycle) -> Iterator[Paragraph | Plot]:
    """Yield the stroke and forces of a cycle; the times at stations are shaded."""
    text = f"Cycle of {1e3 * result.time:.4g} ms; the times at stations are shaded."
    yield Paragraph(text=text, tone="note")
    time = np.linspace(0.0, result.time, N_TIMES)
    dwells = _dwells(result)
    yield from _stroke(result)
    yield _speed(result, time, dwells)
    yield from channels_over_time("Actuator force", result, "force", spans=dwells)
    yield from _motor_loads(result, time, dwells)


def _stroke(planned: PlannedMotion | FastestMotion | Cycle) -> Iterator[Plot]:
    name = planned.trajectory.stroke.functions.ports.name
    yield from channels_over_time(f"Stroke of the {name}", planned, "position")


def _speed(
    planned: FastestMotion | Cycle, time: np.ndarray, spans: tuple[PlotSpan, ...] = ()
) -> Plot:
    """Return a plot of the linear speed, or of the angular speed if only angles change."""
    trajectory = planned.trajectory
    velocity = trajectory.at(time).velocity
    units = trajectory.stroke.functions.ports.velocity.units
    linear = [i for i, unit in enumerate(units) if unit == "m/s"]
    translates = bool(linear) and bool(velocity[:, linear].any())
    speed = np.linalg.norm(velocity[:, linear] if translates else velocity, axis=1)
    return Plot(
        title="Speed",
        x="time [s]",
        y="speed [m/s]" if translates else "speed [rad/s]",
        traces=traces(time, {"speed": speed}),
        spans=spans,
        over_time=True,
    )


def _force_limits(planned: FastestMotion | Cycle) -> np.ndarray:
    """Return the force limit of each motor (n,); infinite if it has none."""
    model = planned.trajectory.stroke.model
    return np.array([actuator.force for actuator in model.mechanism.actuators])


def _limit_lines(time: np.ndarray, limit: float) -> Iterator[PlotTrace]:
    ends = rounded(time[[0, -1]])
    for name, sign in (("limit", 1.0), ("limit, negative", -1.0)):
        y = (sign * limit, sign * limit)
        yield PlotTrace(name=name, x=ends, y=y, style="limit")


def _force_fractions(result: FastestMotion, time: np.ndarray) -> Iterator[Plot]:
    """Yield a plot of the forces with the payload, as fractions of their limits."""
    limits = _force_limits(result)
    if not np.isfinite(limits).all():
        return
    trajectory, load = result.trajectory, result.limits.payload
    start = trajectory.stroke.start(trajectory.places(time))
    samples = trajectory.at(time)
    dynamics = trajectory.stroke.functions.inverse_dynamics
    forces = dynamics(*samples.states, start=start, payload=load).force
    names = trajectory.stroke.model.output_ports("actuators")[0]
    drawn = [
        PlotTrace(
            name=name,
            x=trace.x,
            y=trace.y,
            color=PALETTE[k % len(PALETTE)],
        )
        for k, name in enumerate(names)
        for trace in traces(time, {name: forces[:, k] / limits[k]})
    ]
    yield Plot(
        title="Force / limit" + (", with payload" if load else ""),
        x="time [s]",
        y="fraction of the limit [1]",
        traces=(*drawn, *_limit_lines(time, result.limits.force)),
        over_time=True,
    )


def _motor_loads(result: Cycle, time: np.ndarray, dwells: tuple[PlotSpan, ...]) -> Iterator[Plot]:
    """Yield plots of forces with RMS and rated values, relative to limits if all have one."""
    forces = result.trajectory.forces(time)
    limits = _force_limits(result)
    has_limits = bool(np.isfinite(limits).all())
    units = ["1" if has_limits else motor.unit for motor in result.motors]
    ends = rounded(time[[0, -1]])
    for unit in dict.fromkeys(units):
        drawn: list[PlotTrace] = []
        for k, motor in enumerate(result.motors):
            if units[k] != unit:
                continue
            scale = limits[k] if has_limits else 1.0
            color = PALETTE[k % len(PALETTE)]
            for trace in traces(time, {motor.actuator: forces[:, k] / scale}):
                drawn.append(PlotTrace(name=trace.name, x=trace.x, y=trace.y, color=color))
            levels = {"RMS": motor.rms, "rated": motor.rated}
            for name, level in levels.items():
                if level is not None:
                    y = rounded([level / scale] * 2)
                    name = f"{motor.actuator}, {name}"
                    style = "dotted" if name.endswith("RMS") else "limit"
                    drawn.append(PlotTrace(name=name, x=ends, y=y, style=style, color=color))
        if has_limits:
            drawn += _limit_lines(time, result.limits.force)
        yield Plot(
            title="Force / limit" if has_limits else "Force and its root mean square",
            x="time [s]",
            y="fraction of the limit [1]" if has_limits else f"force [{unit}]",
            traces=tuple(drawn),
            spans=dwells,
            over_time=True,
        )


def _dwells(result: Cycle) -> tuple[PlotSpan, ...]:
    """Return the intervals at stations; a station without a dwell time is a thin line."""
    times = result.planned.meetings.tolist()
    return tuple(
        PlotSpan(
            name="at a station",
            start=time,
            end=time + max(stop.dwell, 2e-3 * result.time),
            color=TEXT,
            label=stop.name,
            opacity=0.12,
        )
        for stop, time in zip(result.planned.stops, times, strict=True)
    )


def _active_limits(result: FastestMotion) -> tuple[PlotSpan, ...]:
    """Return the intervals in which a limit is reached, in the color of its motor."""
    names = result.trajectory.stroke.model.output_ports("actuators")[0]
    intervals = [interval for interval in result.active if interval.limit]
    limits = list(dict.fromkeys(interval.limit for interval in intervals))
    spans = []
    for interval in intervals:
        owners = [k for k, name in enumerate(names) if interval.limit.startswith(name)]
        k = owners[0] if owners else len(names) + limits.index(interval.limit)
        spans.append(
            PlotSpan(
                name=interval.limit,
                start=interval.start,
                end=interval.end,
                color=PALETTE[k % len(PALETTE)],
                opacity=0.5,
            )
        )
    return tuple(spans)


def _path(planned: FastestMotion) -> Plot:
    """Return a plot of tool path and obstacles, in the plane in which the path is longest."""
    platform = planned.trajectory.stroke.functions
    time = np.linspace(0.0, planned.trajectory.total, 2 * MAX_SCENE_STATES + 1)
    q = planned.trajectory.states(time).q
    position = platform.tool(platform.ports.at(q), start=q).place
    i, j = sorted(np.argsort(np.ptp(position, axis=0), kind="stable")[-2:].tolist())
    obstacles = planned.obstacles if isinstance(planned, Transfer) else ()
    lines = {"tool": position[:, [i, j]]}
    for name, item in zip(names_of(obstacles), obstacles, strict=True):
        lines[name] = item.outline(i, j)
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
