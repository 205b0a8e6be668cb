"""Figure of a cycle: the tool's speed, forces over their largest, and which limit is reached when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.fastest_figure import HEIGHT, PALETTE, TIMES, WIDTH
from tauloop.display.figures import COLOURS, NORMAL, SMALL, TEXT, blank, clean
from tauloop.simulation.planned.cycles import Cycle

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cycle_figure(result: Cycle) -> Figure:
    """Speed and forces over a cycle, stays shaded; root mean squares of forces as lines."""
    trajectory, model = result.trajectory, result.trajectory.stroke.model
    time = np.linspace(0.0, result.time, TIMES)
    motion, forces = trajectory.at(time), trajectory.forces(time)
    size = np.array([actuator.force for actuator in model.mechanism.actuators])
    figure = blank(WIDTH, HEIGHT, f"{model.mechanism.name}: cycle of {1e3 * result.time:.4g} ms")
    grid = figure.add_gridspec(
        2, 1, left=0.09, right=0.8, top=0.9, bottom=0.1, hspace=0.14, height_ratios=(2.0, 3.0)
    )
    speed, force = (figure.add_subplot(grid[i]) for i in range(2))
    moved = [
        i
        for i, unit in enumerate(trajectory.stroke.functions.ports.velocity.units)
        if unit == "m/s"
    ]
    shown = moved if moved and motion.velocity[:, moved].any() else slice(None)
    speed.plot(1e3 * time, np.linalg.norm(motion.velocity[:, shown], axis=1), color=COLOURS[0])
    speed.set_ylabel("speed [m/s]" if shown is moved else "speed [rad/s]", fontsize=SMALL)
    scale = np.where(np.isfinite(size), size, 1.0)
    for k, motor in enumerate(result.motors):
        colour = PALETTE[k % len(PALETTE)]
        force.plot(
            1e3 * time, forces[:, k] / scale[k], color=colour, linewidth=1.1, label=motor.actuator
        )
        force.axhline(motor.rms / scale[k], color=colour, linewidth=0.8, linestyle=":")
        if motor.rated is not None:
            force.axhline(motor.rated / scale[k], color=TEXT, linewidth=0.6, linestyle="-.")
    for side in (-1.0, 1.0):
        force.axhline(side * result.limits.force, color=TEXT, linewidth=0.6, linestyle="--")
    force.set_ylabel("force over limit" if np.isfinite(size).all() else "force", fontsize=SMALL)
    force.set_xlabel(
        "time [ms]; shaded: at stations; dotted: RMS; dash-dotted: rated; dashed: limit",
        fontsize=NORMAL,
        color=TEXT,
    )
    for stop, at in zip(
        result.planned.stops, (1e3 * result.planned.meetings).tolist(), strict=True
    ):
        speed.text(
            at, 1.02, stop.name, transform=speed.get_xaxis_transform(), fontsize=SMALL, color=TEXT
        )
        for axes in (speed, force):
            axes.axvspan(
                at,
                at + max(1e3 * stop.dwell, 2e-3 * 1e3 * result.time),
                color=TEXT,
                alpha=0.12,
                linewidth=0,
            )
    for axes in (speed, force):
        clean(axes)
        axes.set_xlim(0.0, 1e3 * result.time)
        axes.tick_params(labelbottom=axes is force)
    legend = force.legend(
        labelcolor=TEXT, loc="upper left", bbox_to_anchor=(1.005, 1.05), fontsize=SMALL
    )
    legend.set_frame_on(False)
    return figure
