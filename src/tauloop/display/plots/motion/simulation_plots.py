"""Plots of simulations: positions, forces, energies, and errors of the equations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotTrace
from tauloop.display.plots.building import channels_over_time, motion, over_time, rounded, traces
from tauloop.simulation import CableSimulation, FreeMotionComparison, RoundTrip, Simulation
from tauloop.simulation.free_motion_comparison import (
    COMPARISON_ENERGY_TOLERANCE,
    COMPARISON_LOOP_TOLERANCE,
)

#: Smallest drawn error, because a logarithmic axis has no zero; smaller errors are rounding errors.
MIN_SHOWN_ERROR = 1e-17


def simulation_scene(
    simulation: Simulation | CableSimulation | FreeMotionComparison | RoundTrip,
) -> Iterator[Piece]:
    """Yield the machine in motion for a simulation of any kind."""
    if isinstance(simulation, CableSimulation):
        if len(simulation.parts) > 1:  # a machine with slack cables has other coordinates
            return
        run = simulation.parts[0].simulation
    elif isinstance(simulation, FreeMotionComparison):
        run = next(iter(simulation.routes.values()))
    else:
        run = simulation.simulation if isinstance(simulation, RoundTrip) else simulation
    yield from motion(run.system.model, run.time, run.q)


def simulation_plots(
    simulation: Simulation | CableSimulation | FreeMotionComparison | RoundTrip,
) -> Iterator[Paragraph | Plot]:
    """Yield the plots of a simulation of any kind."""
    if isinstance(simulation, CableSimulation):
        yield from _cables(simulation)
    elif isinstance(simulation, FreeMotionComparison):
        yield from _free_motion(simulation)
    elif isinstance(simulation, RoundTrip):
        yield from _round_trip(simulation)
    else:
        yield Paragraph(text=_summary(simulation), tone="note")
        yield from channels_over_time("Position of the platform", simulation, "position")
        yield from channels_over_time("Actuator force", simulation, "force")
        yield from _energies(simulation)
        residuals = {"loop residual [m]": simulation.residual}
        yield _errors(residuals, simulation.time, "Loop residual")


def _summary(run: Simulation) -> str:
    return (
        f"{type(run.system.route).__name__}: {counted(len(run.steps), 'step')} to {run.time[-1]:.4g} of "
        f"{run.duration:g} s ({run.ending.value})"
    )


def _round_trip(trip: RoundTrip) -> Iterator[Paragraph | Plot]:
    run = trip.simulation
    text = f"Largest position error {trip.position_error:.2g} m. {_summary(run)}"
    yield Paragraph(text=text, tone="note")
    yield from channels_over_time("Position of the platform", run, "position")
    displacement = (trip.wanted - trip.wanted[0]).T
    title = "Reference displacement"
    yield from over_time(title, run.time, trip.columns, trip.units, displacement)
    yield from channels_over_time("Error of the round trip", trip, "error")
    yield from channels_over_time("Actuator force", trip, "force")


def _energies(run: Simulation) -> Iterator[Plot]:
    energies = {
        "kinetic": run.kinetic,
        "potential, relative to the start": run.potential - run.potential[0],
        "work of actuators and tool": run.work,
        "lost in friction": -run.loss,
    }
    known = {
        name: values
        for name, values in energies.items()
        if np.isfinite(values).all() and values.any()
    }
    yield from over_time("Energy", run.time, known, ("J",) * len(known), known.values())


def _errors(errors: Mapping[str, np.ndarray], time: np.ndarray, title: str, y: str = "") -> Plot:
    """Return a plot of the absolute values of errors on a logarithmic axis."""
    magnitudes = {
        name: np.maximum(np.abs(values), MIN_SHOWN_ERROR) for name, values in errors.items()
    }
    return Plot(
        title=title,
        x="time [s]",
        y=y or next(iter(errors)),
        traces=traces(time, magnitudes),
        over_time=True,
        log_y=True,
    )


def _free_motion(comparison: FreeMotionComparison) -> Iterator[Paragraph | Plot]:
    first = next(iter(comparison.routes.values()))
    text = f"{first.duration:g} s; all routes start at the same state."
    yield Paragraph(text=text, tone="note")
    yield from channels_over_time("Position of the platform", first, "position")
    ports = first.system.model.platform.ports
    names = [first.coordinate_names[i] for i in ports.q]
    displacement = (first.q - first.q[0]).T[list(ports.q)]
    title = "Displacement of the platform"
    yield from over_time(title, first.time, names, ports.position.units, displacement)
    energy: list[PlotTrace] = []
    residual: list[PlotTrace] = []
    for name, run in comparison.routes.items():
        if np.isfinite(run.kinetic).all() and run.kinetic.any():
            error = {name: run.energy_error / run.kinetic.max()}
            energy += _errors(error, run.time, "").traces
        residual += _errors({name: run.residual}, run.time, "").traces
    for title, y, drawn, limit in (
        (
            "Energy error / largest kinetic energy",
            "[1]",
            energy,
            COMPARISON_ENERGY_TOLERANCE,
        ),
        ("Loop residual", "residual [m]", residual, COMPARISON_LOOP_TOLERANCE),
    ):
        if drawn:
            ends = rounded(first.time[[0, -1]])
            line = PlotTrace(name="limit", x=ends, y=(limit, limit), style="limit")
            yield Plot(
                title=title,
                x="time [s]",
                y=y,
                traces=(*drawn, line),
                over_time=True,
                log_y=True,
            )


def _cables(run: CableSimulation) -> Iterator[Paragraph | Plot]:
    slack = [event.time for event in run.events if event.is_slack]
    text = (
        f"{run.time[-1]:.4g} of {run.duration:g} s ({run.ending.value}); cables become slack "
        f"{counted(len(slack), 'time')}."
    )
    yield Paragraph(text=text, tone="note")
    yield from channels_over_time("Position of the platform", run, "position")
    drawn = traces(run.time, dict(zip(run.cable_names, run.tension.T, strict=True)))
    if slack:
        times = rounded(sorted(set(slack)))
        marks = PlotTrace(name="becomes slack", x=times, y=(0.0,) * len(times), style="marks")
        drawn += (marks,)
    title = "Tension of cables"
    yield Plot(title=title, x="time [s]", y="tension [N]", traces=drawn, over_time=True)
