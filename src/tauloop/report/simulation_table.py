"""Simulations for the terminal: where they went, by which evidence, and what happened on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.console import RenderableType
from rich.text import Text

from tauloop.report.tables import table
from tauloop.result import Evidence
from tauloop.simulation import CableSimulation, Occurrence, RoundTrip, Simulation, SwingComparison
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
    rows = table(
        f"{found.machine}: {found.time[-1]:.6g} of {found.duration:g} s, {found.ending.value}",
        *("coordinate", "start", "end", "unit"),
        numeric=(1, 2),
    )
    for i, unit in zip(ports.q, ports.position.units, strict=True):
        rows.add_row(found.coordinate_names[i], f"{found.q[0, i]:.6g}", f"{found.q[-1, i]:.6g}", unit)
    yield rows
    for item in found.evidence:
        yield Text(str(item))
    yield from _occurred(found.occurrences)
    steps = found.steps
    yield f"{len(steps)} steps, {steps.rejected} rejected, {steps.evaluations} evaluations"
    if found.problem is not None:
        yield str(found.problem)


def _occurred(occurrences: tuple[Occurrence, ...]) -> Iterator[str]:
    for event in occurrences:
        yield f"{event.time:.9g} s: {event.name}{', the end' if event.is_terminal else ''}"


def _doubts(evidence: tuple[Evidence, ...]) -> Iterator[Text]:
    for item in evidence:
        if not item.is_good:
            yield Text(str(item), style="yellow")


def _round_trip(found: RoundTrip) -> Iterator[RenderableType]:
    rows = table("Round trip: inverse, then forward dynamics", "coordinate", "largest error", "unit", numeric=(1,))
    for name, unit, column in zip(found.columns, found.units, np.abs(found.error).T, strict=True):
        rows.add_row(name, f"{column.max():.1e}", unit)
    yield rows
    yield f"largest distance {found.position_error:.1e} m (limit {RETURNED:.0e} m)"


def _swing(found: SwingComparison) -> Iterator[RenderableType]:
    springs = table("Springs at the drives", "freedom", "stiffness", "unit", "rest position", "unit", numeric=(1, 3))
    for spring in found.springs:
        of_rest = "rad" if spring.unit.endswith("rad") else "m"
        springs.add_row(spring.freedom, f"{spring.stiffness:.5g}", spring.unit, f"{spring.rest:.5g}", of_rest)
    yield springs
    rows = table(
        f"Conservative swing of {found.machine}, {found.duration:g} s",
        *("route", "energy error,\nof largest kinetic", "largest loop\nresidual [m]", "steps", "evaluations", ""),
        numeric=(1, 2, 3, 4),
    )
    for name, result in found.routes.items():
        verdict = ("keeps" if found.keeps(name) else "FAILS") if name in EXACT else "reported"
        rows.add_row(
            name,
            f"{result.relative_energy_error:.1e}",
            f"{result.residual.max():.1e}",
            str(len(result.steps)),
            str(result.steps.evaluations),
            verdict if result.problem is None else f"{result.problem.where}: {result.ending.value}",
        )
    yield rows
    for name, reason in found.left_out.items():
        yield f"not run: {name}: {reason}"
    yield f"Limits: energy {ENERGY_KEPT:.0e}, loops {LOOPS_KEPT:.0e} m, for {' and '.join(EXACT)}."
    yield from _doubts(found.evidence)


def _cables(found: CableSimulation) -> Iterator[RenderableType]:
    yield f"{found.machine}: {found.time[-1]:.6g} of {found.duration:g} s, {found.ending.value}"
    rows = table("Tensions of cables", "cable", "start", "least", "largest", "end", "unit", numeric=(1, 2, 3, 4))
    for name, tension in zip(found.cable_names, found.tension.T, strict=True):
        rows.add_row(name, *(f"{x:.6g}" for x in (tension[0], tension.min(), tension.max(), tension[-1])), "N")
    yield rows
    for event in found.events[:SHOWN]:
        impact = f", at {event.speed:.4g} m/s with {event.impulse:.4g} N s" if event.impulse else ""
        yield f"{event.time:.9g} s: {event.cable} becomes {'slack' if event.is_slack else 'taut'}{impact}"
    if len(found.events) > SHOWN:
        yield f"and {len(found.events) - SHOWN} more"
    yield from _occurred(found.occurrences)
    yield from map(str, found.evidence[:4])
    yield from _doubts(found.evidence[4:])
    if found.problem is not None:
        yield str(found.problem)
