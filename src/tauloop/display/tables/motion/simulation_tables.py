"""Tables of simulations: start and end, checks, and events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.counts import counted
from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import doubts, table
from tauloop.integrate.sensitivity import sensitivity_rows
from tauloop.simulation import CableSimulation, FreeMotionComparison, RoundTrip, Simulation
from tauloop.simulation.free_motion_comparison import (
    COMPARISON_ENERGY_TOLERANCE,
    COMPARISON_LOOP_TOLERANCE,
    DRIFT_FREE_ROUTES,
)

if TYPE_CHECKING:
    import xarray as xr

#: Decimals of coordinates in m or rad; smaller values are rounding errors.
DIGITS = 12
#: Maximum number of cable events that are shown; the JSON file contains all of them.
MAX_EVENTS = 20


def simulation_tables(
    simulation: Simulation | CableSimulation | FreeMotionComparison | RoundTrip,
) -> Iterator[Printed]:
    """Yield the tables of a simulation of any kind."""
    if isinstance(simulation, CableSimulation):
        yield from _cables(simulation)
    elif isinstance(simulation, FreeMotionComparison):
        yield from _free_motion(simulation)
    elif isinstance(simulation, RoundTrip):
        yield from _simulation(simulation.simulation)
        yield from _round_trip(simulation)
    else:
        yield from _simulation(simulation)


def _simulation(simulation: Simulation) -> Iterator[Printed]:
    ports = simulation.system.model.platform.ports
    ends = np.round(simulation.q[[0, -1]], DIGITS) + 0.0
    rows = (
        (simulation.coordinate_names[i], *ends[:, i], unit)
        for i, unit in zip(ports.q, ports.position.units, strict=True)
    )
    yield table(
        _ended(simulation), "coordinate", ("start", ".6g"), ("end", ".6g"), "unit", rows=rows
    )
    yield from (str(item) for item in simulation.diagnostics if item.is_good)
    yield from doubts(simulation)
    yield from (occurrence.words for occurrence in simulation.occurrences)
    if simulation.sensitivities is not None:
        yield sensitivity_table("Derivatives of the platform's motion", simulation.sensitivities)
    steps = simulation.steps
    evaluations = counted(steps.evaluations, "evaluation")
    yield f"{counted(len(steps), 'step')}, {steps.rejected} rejected, {evaluations}"
    if simulation.problem is not None:
        yield Paragraph(text=str(simulation.problem), tone="doubtful")


def sensitivity_table(title: str, sensitivities: xr.Dataset) -> Printed:
    """Return a table of the derivatives of a motion: their largest values, and those at the end."""
    rows = [
        (
            row["of"],
            row["by"],
            *(np.round([row["largest"], row["largest_at_s"], row["end"]], DIGITS) + 0.0),
            row["unit"],
        )
        for row in sensitivity_rows(sensitivities)
    ]
    heads = ("of", "by", ("largest", ".5g"), ("at [s]", ".5g"), ("at the end", ".5g"), "unit")
    return table(title, *heads, rows=rows)


def _ended(simulation: Simulation | CableSimulation) -> str:
    return f"{simulation.machine}: {simulation.time[-1]:.6g} of {simulation.duration:g} s, {simulation.ending.value}"


def _round_trip(trip: RoundTrip) -> Iterator[Printed]:
    rows = zip(trip.columns, np.abs(trip.error).max(axis=0), trip.units, strict=True)
    title = "Round trip: inverse, then forward dynamics"
    yield table(title, "coordinate", ("largest error", ".1e"), "unit", rows=rows)
    yield f"largest distance {trip.position_error:.1e} m (limit {trip.limit:.0e} m)"


def _free_motion(comparison: FreeMotionComparison) -> Iterator[Printed]:
    springs = (
        (
            spring.freedom,
            spring.stiffness,
            spring.unit,
            spring.rest,
            "rad" if spring.unit.endswith("rad") else "m",
        )
        for spring in comparison.springs
    )
    heads = ("freedom", ("stiffness", ".5g"), "unit", ("rest position", ".5g"), "unit")
    yield table("Springs at the drives", *heads, rows=springs)
    cells = []
    for name, result in comparison.routes.items():
        verdict = "reported"
        if name in DRIFT_FREE_ROUTES:
            verdict = "passes" if comparison.is_within_limits(name) else "FAILS"
        if result.problem is not None:
            verdict = f"{result.problem.where}: {result.ending.value}"
        errors = (result.relative_energy_error, result.residual.max())
        cells.append((name, *errors, len(result.steps), result.steps.evaluations, verdict))
    yield table(
        f"Free motion of {comparison.machine}, {comparison.duration:g} s",
        *(
            "route",
            ("energy error /\nlargest kinetic", ".1e"),
            ("largest loop\nresidual [m]", ".1e"),
        ),
        *(("steps", ""), ("evaluations", ""), ""),
        rows=cells,
    )
    for name, reason in comparison.left_out.items():
        yield f"not run: {name}: {reason}"
    limits = f"energy {COMPARISON_ENERGY_TOLERANCE:.0e}, loops {COMPARISON_LOOP_TOLERANCE:.0e} m"
    yield f"Limits: {limits}, for {' and '.join(DRIFT_FREE_ROUTES)}."
    yield from doubts(comparison)


def _cables(simulation: CableSimulation) -> Iterator[Printed]:
    yield _ended(simulation)
    rows = (
        (name, tension[0], tension.min(), tension.max(), tension[-1], "N")
        for name, tension in zip(simulation.cable_names, simulation.tension.T, strict=True)
    )
    heads = ((head, ".6g") for head in ("start", "smallest", "largest", "end"))
    yield table("Tensions of cables", "cable", *heads, "unit", rows=rows)
    for event in simulation.events[:MAX_EVENTS]:
        impact = f", at {event.speed:.4g} m/s with {event.impulse:.4g} N s" if event.impulse else ""
        yield f"{event.time:.9g} s: {event.cable} becomes {'slack' if event.is_slack else 'taut'}{impact}"
    if len(simulation.events) > MAX_EVENTS:
        yield f"and {len(simulation.events) - MAX_EVENTS} more"
    yield from (occurrence.words for occurrence in simulation.occurrences)
    yield from (str(item) for item in simulation.diagnostics[:4] if item.is_good)
    yield from doubts(simulation)
    if simulation.problem is not None:
        yield Paragraph(text=str(simulation.problem), tone="doubtful")
