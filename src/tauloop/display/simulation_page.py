"""Simulations on a page: the machine in motion, positions, forces, energies, and how well the equations are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tauloop.display.pieces import Piece, Plot, channels_over_time, motion, over_time, traces
from tauloop.simulation import CableSimulation, RoundTrip, Simulation, SwingComparison

#: Errors below this are rounding, and a logarithm has no zero.
ROUNDING = 1e-17


def simulation_page(
    simulation: Simulation | CableSimulation | SwingComparison | RoundTrip,
) -> Iterator[Piece]:
    """What there is to see of a simulation of any kind."""
    if isinstance(simulation, CableSimulation):
        yield from _cables(simulation)
    elif isinstance(simulation, SwingComparison):
        yield from _swing(simulation)
    elif isinstance(simulation, RoundTrip):
        yield from _positions(simulation.simulation)
        yield from channels_over_time("What came back, less what was wanted", simulation, "error")
        yield from channels_over_time("Actuator force", simulation, "force")
    else:
        yield from _positions(simulation)
        yield from channels_over_time("Actuator force", simulation, "force")
        yield from _energies(simulation)
        yield _errors(
            {"loop residual [m]": simulation.residual},
            simulation.time,
            "How well the loops stay closed",
        )


def _positions(run: Simulation) -> Iterator[Piece]:
    yield from motion(run.system.model, run.time, run.q)
    yield from channels_over_time("Position of the platform", run, "position")


def _energies(run: Simulation) -> Iterator[Piece]:
    energies = {
        "kinetic": run.kinetic,
        "potential, from its start": run.potential - run.potential[0],
        "work of actuators and tool": run.work,
        "lost in friction": -run.loss,
    }
    kept = {
        name: values
        for name, values in energies.items()
        if np.isfinite(values).all() and values.any()
    }
    yield from over_time("Energy", run.time, kept, ("J",) * len(kept), kept.values())


def _errors(errors: Mapping[str, np.ndarray], time: np.ndarray, title: str, y: str = "") -> Plot:
    """Sizes of errors on a logarithmic axis."""
    sizes = {name: np.maximum(np.abs(values), ROUNDING) for name, values in errors.items()}
    return Plot(
        title=title,
        x="time [s]",
        y=y or next(iter(errors)),
        traces=traces(time, sizes),
        over_time=True,
        log_y=True,
    )


def _swing(comparison: SwingComparison) -> Iterator[Piece]:
    first = next(iter(comparison.routes.values()))
    yield from _positions(first)
    drawn: dict[str, list[Plot]] = {}
    for name, run in comparison.routes.items():
        if np.isfinite(run.kinetic).all() and run.kinetic.any():
            title = "Energy error, of the largest kinetic energy"
            drawn.setdefault(title, []).append(
                _errors({name: run.energy_error / run.kinetic.max()}, run.time, title, "[1]")
            )
        title = "Loop residual"
        drawn.setdefault(title, []).append(
            _errors({name: run.residual}, run.time, title, "residual [m]")
        )
    for title, plots in drawn.items():
        together = tuple(trace for plot in plots for trace in plot.traces)
        yield Plot(
            title=title, x="time [s]", y=plots[0].y, traces=together, over_time=True, log_y=True
        )


def _cables(run: CableSimulation) -> Iterator[Piece]:
    if len(run.parts) == 1:  # slack cables make a machine of other coordinates
        part = run.parts[0].simulation
        yield from motion(part.system.model, part.time, part.q)
    yield from channels_over_time("Position of the platform", run, "position")
    yield from channels_over_time("Tension of cables", run, "tension")
