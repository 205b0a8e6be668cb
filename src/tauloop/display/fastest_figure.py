"""Figure of a fastest motion: its speed, forces as shares of their limits, and which limit is reached when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import COLOURS, NORMAL, SMALL, TEXT, blank, clean
from tauloop.simulation.planned.fastest import FastestMotion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT, TIMES = 9.5, 5.6, 1501
PALETTE = (*COLOURS, "#5f8a8b", "#a05070")


def fastest_figure(result: FastestMotion) -> Figure:
    """Speed along the path and forces over time; below, the limit that is reached."""
    trajectory, model = result.trajectory, result.trajectory.stroke.model
    time = np.linspace(0.0, result.duration, TIMES)
    motion, load = trajectory.at(time), result.limits.payload
    start = trajectory.stroke.start(trajectory.places(time))
    forces = trajectory.stroke.functions.inverse_dynamics(
        *motion.rates, start=start, payload=load
    ).force
    names, units = model.output_ports("actuators")
    size = np.array([actuator.force for actuator in model.mechanism.actuators])
    figure = blank(
        WIDTH, HEIGHT, f"{model.mechanism.name}: motion of {1e3 * result.duration:.4g} ms"
    )
    grid = figure.add_gridspec(
        3,
        1,
        left=0.09,
        right=0.76,
        top=0.92,
        bottom=0.1,
        hspace=0.14,
        height_ratios=(2.0, 2.6, 0.7),
    )
    speed, force, ribbon = (figure.add_subplot(grid[i]) for i in range(3))
    moved = [
        i
        for i, unit in enumerate(trajectory.stroke.functions.ports.velocity.units)
        if unit == "m/s"
    ]
    turns = not moved or not motion.velocity[:, moved].any()
    shown = slice(None) if turns else moved
    speed.plot(
        1e3 * time,
        np.linalg.norm(motion.velocity[:, shown], axis=1),
        color=COLOURS[0],
        label="speed",
    )
    speed.set_ylabel("speed [rad/s]" if turns else "speed [m/s]", fontsize=SMALL)
    shares = np.where(np.isfinite(size), forces / size, forces)
    for k, name in enumerate(names):
        force.plot(
            1e3 * time, shares[:, k], color=PALETTE[k % len(PALETTE)], linewidth=1.1, label=name
        )
    for side in (-1.0, 1.0):
        force.axhline(side * result.limits.force, color=TEXT, linewidth=0.6, linestyle="--")
    force.set_ylabel(
        "force over limit" + (",\nwith payload" if load else "")
        if np.isfinite(size).all()
        else f"force [{units[0]}]",
        fontsize=SMALL,
    )
    limits = [name for name in dict.fromkeys(part.limit for part in result.active) if name]
    for part in result.active:
        if part.limit:
            owner = next((k for k, name in enumerate(names) if part.limit.startswith(name)), None)
            k = len(names) + limits.index(part.limit) if owner is None else owner
            colour, label = PALETTE[k % len(PALETTE)], part.limit
            ribbon.axvspan(1e3 * part.start, 1e3 * part.end, color=colour, label=label, linewidth=0)
    ribbon.set_yticks([])
    ribbon.set_ylabel("limit", fontsize=SMALL)
    ribbon.set_xlabel("time [ms]", fontsize=NORMAL, color=TEXT)
    for axes in (speed, force, ribbon):
        clean(axes)
        axes.set_xlim(0.0, 1e3 * result.duration)
        axes.tick_params(labelbottom=axes is ribbon)
        lines, labels = axes.get_legend_handles_labels()
        kept = dict(zip(labels, lines, strict=True))
        if axes is not speed:
            legend = axes.legend(
                list(kept.values()),
                list(kept),
                labelcolor=TEXT,
                loc="upper left",
                bbox_to_anchor=(1.005, 1.05),
            )
            legend.set_frame_on(False)
            for text in legend.get_texts():
                text.set_fontsize(SMALL)
    return figure
