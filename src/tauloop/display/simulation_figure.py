"""Figures of simulations: motions and energies, errors of several routes beside each other, and round trips."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tauloop.display.figures import (
    COLOURS,
    FAINT,
    MEASURED,
    NORMAL,
    PREDICTED,
    RESIDUAL,
    SMALL,
    TEXT,
    blank,
    clean,
    in_degrees,
    thin,
)
from tauloop.simulation import CableSimulation, RoundTrip, Simulation, SwingComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, ROW, HEAD = 9.5, 2.1, 0.75
#: Errors below this are drawn at it: it is rounding, and a logarithm has no zero.
ROUNDING = 1e-17


def any_figure(simulation: Simulation | CableSimulation | SwingComparison | RoundTrip) -> Figure:
    """The figure of a simulation of any kind, with the machine's name in its heading."""
    if isinstance(simulation, CableSimulation):
        return cable_figure(simulation, title=f"Simulation of {simulation.machine}")
    if isinstance(simulation, SwingComparison):
        return comparison_figure(
            simulation.routes, title=f"Conservative swing of {simulation.machine}"
        )
    if isinstance(simulation, RoundTrip):
        return round_trip_figure(simulation, title=f"Round trip of {simulation.simulation.machine}")
    return simulation_figure(simulation, title=f"Simulation of {simulation.machine}")


def simulation_figure(result: Simulation, *, title: str = "Simulation") -> Figure:
    """Coordinates that the platform entry names, energies, and forces against time.

    Args:
        result: the simulation.
        title: heading.
    """
    model = result.system.model
    entry = model.platform.ports
    figure, panels = _panels(3, title, _summary(result))
    names = [result.coordinate_names[i] for i in entry.q]
    _lines(
        panels[0], "position", result.time, names, entry.position.units, result.q.T[list(entry.q)]
    )
    for values, name, colour in (
        (result.kinetic, "kinetic", RESIDUAL),
        (result.potential - result.potential[0], "potential, from its start", PREDICTED),
        (result.work, "work of actuators and tool", "#6a9a5b"),
        (-result.loss, "lost in friction", MEASURED),
    ):
        if np.isfinite(values).all() and values.any():
            panels[1].plot(*thin(result.time, values), color=colour, linewidth=1.2, label=name)
    panels[1].set_ylabel("energy [J]", fontsize=SMALL)
    units = model.output_ports("actuators")[1]
    _lines(panels[2], "actuator force", result.time, result.actuator_names, units, result.force.T)
    return _finished(figure, panels)


def cable_figure(result: CableSimulation, *, title: str = "Simulation") -> Figure:
    """Coordinates that the platform entry names, and tensions of cables, against time; marks where cables go slack.

    Args:
        result: the simulation.
        title: heading.
    """
    entry = result.platform
    count = sum(event.is_slack for event in result.events)
    what = (
        f"{result.machine}: {result.time[-1]:.4g} of {result.duration:g} s "
        f"({result.ending.value}), slack {count} times"
    )
    figure, panels = _panels(2, title, what)
    columns = [result.coordinate(name) for name in entry.columns]
    _lines(panels[0], "position", result.time, entry.columns, entry.units, columns)
    for k, name in enumerate(result.cable_names):
        style = ("-", "--", ":")[k // len(COLOURS) % 3]
        colour = COLOURS[k % len(COLOURS)]
        panels[1].plot(
            *thin(result.time, result.tension[:, k]), style, color=colour, linewidth=1.2, label=name
        )
    slack = sorted({event.time for event in result.events if event.is_slack})
    panels[1].plot(slack, np.zeros(len(slack)), "v", color=FAINT, markersize=4, clip_on=False)
    panels[1].set_ylabel("tension [N]", fontsize=SMALL)
    return _finished(figure, panels)


def comparison_figure(
    results: Mapping[str, Simulation], *, title: str = "Simulation by several routes"
) -> Figure:
    """One motion by several routes: the first one's positions, then energy errors and loop residuals of all.

    Args:
        results: simulations of the same start, by the name of their route.
        title: heading.
    """
    first = next(iter(results.values()))
    entry = first.system.model.platform.ports
    figure, panels = _panels(
        3, title, f"{first.machine}: {first.duration:g} s; all routes from the same start"
    )
    names, moved = (
        [first.coordinate_names[i] for i in entry.q],
        (first.q - first.q[0]).T[list(entry.q)],
    )
    _lines(panels[0], "displacement", first.time, names, entry.position.units, moved)
    for (name, result), colour in zip(results.items(), COLOURS, strict=False):
        if np.isfinite(result.kinetic).all():
            error = np.abs(result.energy_error) / result.kinetic.max()
            panels[1].semilogy(
                *_above_rounding(result.time, error), color=colour, linewidth=0.8, label=name
            )
        panels[2].semilogy(
            *_above_rounding(result.time, result.residual), color=colour, linewidth=0.8, label=name
        )
    panels[1].axhline(1e-8, color=FAINT, linewidth=1.0, linestyle="--")
    panels[1].set_ylabel("energy error,\nof largest kinetic energy", fontsize=SMALL)
    panels[2].axhline(1e-10, color=FAINT, linewidth=1.0, linestyle="--")
    panels[2].set_ylabel("loop residual [m]", fontsize=SMALL)
    return _finished(figure, panels)


def round_trip_figure(result: RoundTrip, *, title: str = "Round trip") -> Figure:
    """The wanted positions, what came back less what was wanted (NUWAR paper, Figure 3), and the forces.

    Args:
        result: the round trip.
        title: heading.
    """
    simulation = result.simulation
    figure, panels = _panels(
        3, title, f"largest position error {result.position_error:.2g} m; {_summary(simulation)}"
    )
    moved, columns = (result.wanted - result.wanted[0]).T, (result.columns, result.units)
    drives = (simulation.actuator_names, simulation.system.model.output_ports("actuators")[1])
    for axes, what, (names, units), values in zip(
        panels,
        ("displacement", "error of the round trip", "actuator force"),
        (columns, columns, drives),
        (moved, result.error.T, simulation.force.T),
        strict=True,
    ):
        _lines(axes, what, simulation.time, names, units, values)
    return _finished(figure, panels)


def _lines(
    axes: Axes,
    what: str,
    time: np.ndarray,
    names: Iterable[str],
    units: Iterable[str],
    values: Iterable[np.ndarray],
) -> None:
    """The first few of several quantities against time, angles in degrees."""
    for name, unit, line, colour in zip(names, units, values, COLOURS, strict=False):
        unit, line = in_degrees(unit, line)
        axes.plot(
            *thin(time, line),
            color=colour,
            linewidth=1.2,
            label=name + ("" if unit == "1" else f" [{unit}]"),
        )
    axes.set_ylabel(what, fontsize=SMALL)


def _above_rounding(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return thin(time, np.maximum(values, ROUNDING))


def _panels(rows: int, title: str, summary: str) -> tuple[Figure, Sequence[Axes]]:
    height = HEAD + rows * ROW + 0.5
    figure = blank(WIDTH, height, title, summary)
    grid = figure.add_gridspec(
        rows, 1, left=0.09, right=0.78, top=1 - HEAD / height, bottom=0.5 / height, hspace=0.16
    )
    panels = [figure.add_subplot(grid[i]) for i in range(rows)]
    return figure, panels


def _finished(figure: Figure, panels: Sequence[Axes]) -> Figure:
    for i, axes in enumerate(panels):
        clean(axes)
        axes.sharex(panels[0])
        if axes.get_legend_handles_labels()[0]:
            axes.legend(
                loc="upper left",
                bbox_to_anchor=(1.005, 1.0),
                fontsize=SMALL,
                labelcolor=TEXT,
                frameon=False,
            )
        axes.tick_params(labelbottom=i == len(panels) - 1)
    panels[-1].set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)
    return figure


def _summary(result: Simulation) -> str:
    return (
        f"{result.machine}, {type(result.system.route).__name__}: {len(result.steps)} steps to "
        f"{result.time[-1]:.4g} of {result.duration:g} s ({result.ending.value})"
    )
