"""Simulations for the terminal: where they went, by which evidence, and what happened on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType

from tauloop.report.tables import doubts, table
from tauloop.simulation import CableSimulation, RoundTrip, Simulation, SwingComparison
from tauloop.simulation.round_trip import RETURNED
from tauloop.simulation.swing_comparison import ENERGY_KEPT, EXACT, LOOPS_KEPT

#: Changes of cables that are shown; all of them are in JSON.
SHOWN = 20


def simulation_tables(
    found: Simulation | CableSimulation | SwingComparison | RoundTrip,
) -> Iterator[RenderableType]:
    """What there is to see of a simulation of any kind."""
    if isinstance(found, CableSimulation):
        yield from _cables(found)
    elif isinstance(found, SwingComparison):
        yield from _swing(found)
    elif isinstance(found, RoundTrip):
        yield from _simulation(found.simulation)
        yield from _round_trip(found)
    else:
        yield from _simulation(found)


def _simulation(found: Simulation) -> Iterator[RenderableType]:
    ports = found.system.model.platform.ports
    rows = (
        (found.coordinate_names[i], found.q[0, i], found.q[-1, i], unit)
        for i, unit in zip(ports.q, ports.position.units, strict=True)
    )
    yield table(_ended(found), "coordinate", ("start", ".6g"), ("end", ".6g"), "unit", rows=rows)
    yield from (str(item) for item in found.evidence if item.is_good)
    yield from doubts(found)
    yield from (occurrence.words for occurrence in found.occurrences)
    steps = found.steps
    yield f"{len(steps)} steps, {steps.rejected} rejected, {steps.evaluations} evaluations"
    if found.problem is not None:
        yield str(found.problem)


def _ended(found: Simulation | CableSimulation) -> str:
    return f"{found.machine}: {found.time[-1]:.6g} of {found.duration:g} s, {found.ending.value}"


def _round_trip(found: RoundTrip) -> Iterator[RenderableType]:
    rows = zip(found.columns, np.abs(found.error).max(axis=0), found.units, strict=True)
    title = "Round trip: inverse, then forward dynamics"
    yield table(title, "coordinate", ("largest error", ".1e"), "unit", rows=rows)
    yield f"largest distance {found.position_error:.1e} m (limit {RETURNED:.0e} m)"


def _swing(found: SwingComparison) -> Iterator[RenderableType]:
    springs = (
        (spring.freedom, spring.stiffness, spring.unit, spring.rest, "rad" if spring.unit.endswith("rad") else "m")
        for spring in found.springs
    )
    heads = ("freedom", ("stiffness", ".5g"), "unit", ("rest position", ".5g"), "unit")
    yield table("Springs at the drives", *heads, rows=springs)
    cells = []
    for name, result in found.routes.items():
        verdict = ("keeps" if found.keeps(name) else "FAILS") if name in EXACT else "reported"
        if result.problem is not None:
            verdict = f"{result.problem.where}: {result.ending.value}"
        errors = (result.relative_energy_error, result.residual.max())
        cells.append((name, *errors, len(result.steps), result.steps.evaluations, verdict))
    yield table(
        f"Conservative swing of {found.machine}, {found.duration:g} s",
        *("route", ("energy error,\nof largest kinetic", ".1e"), ("largest loop\nresidual [m]", ".1e")),
        *(("steps", ""), ("evaluations", ""), ""),
        rows=cells,
    )
    for name, reason in found.left_out.items():
        yield f"not run: {name}: {reason}"
    yield f"Limits: energy {ENERGY_KEPT:.0e}, loops {LOOPS_KEPT:.0e} m, for {' and '.join(EXACT)}."
    yield from doubts(found)


def _cables(found: CableSimulation) -> Iterator[RenderableType]:
    yield _ended(found)
    rows = (
        (name, tension[0], tension.min(), tension.max(), tension[-1], "N")
        for name, tension in zip(found.cable_names, found.tension.T, strict=True)
    )
    heads = ((head, ".6g") for head in ("start", "least", "largest", "end"))
    yield table("Tensions of cables", "cable", *heads, "unit", rows=rows)
    for event in found.events[:SHOWN]:
        impact = f", at {event.speed:.4g} m/s with {event.impulse:.4g} N s" if event.impulse else ""
        yield f"{event.time:.9g} s: {event.cable} becomes {'slack' if event.is_slack else 'taut'}{impact}"
    if len(found.events) > SHOWN:
        yield f"and {len(found.events) - SHOWN} more"
    yield from (occurrence.words for occurrence in found.occurrences)
    yield from (str(item) for item in found.evidence[:4] if item.is_good)
    yield from doubts(found)
    if found.problem is not None:
        yield str(found.problem)
