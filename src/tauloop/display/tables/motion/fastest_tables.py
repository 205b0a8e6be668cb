"""Tables of a fastest motion: gains over other laws, active limits, and the simulation."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import table
from tauloop.simulation.planned.cycles import Cycle
from tauloop.simulation.planned.fastest import FastestMotion


def fastest_tables(result: FastestMotion) -> Iterator[Printed]:
    """Yield duration, gains, active limits, the simulation, and the worst condition number."""
    stroke, limits = result.trajectory.stroke, result.limits
    total = (
        f" ({result.trajectory.total:.6g} s there and back)" if result.trajectory.returns else ""
    )
    yield f"Motion of {result.duration:.6g} s{total}"
    load = f", payload 0 to {limits.payload.mass:g} kg" if limits.payload else ""
    without_reserve = (
        f"; with all of them {result.without_reserve:.6g} s"
        if result.without_reserve < result.duration
        else ""
    )
    yield f"planned with {limits.force:.0%} of the forces{load}{without_reserve}"
    rows = ((name, duration, result.gains[name]) for name, duration in result.laws.items())
    if result.laws:
        yield table(
            "Other laws under these limits",
            "law",
            ("duration [s]", ".6g"),
            ("gain", ".1%"),
            rows=rows,
        )
    intervals = (
        (1e3 * item.start, 1e3 * item.end, item.first, item.last, item.limit or "-")
        for item in result.active
    )
    columns = (
        ("from [ms]", ".1f"),
        ("to [ms]", ".1f"),
        ("path from", ".1%"),
        ("to", ".1%"),
        "limit",
    )
    yield table("Times at which limits are reached", *columns, rows=intervals)
    yield simulation_table(result)
    yield f"worst condition number {stroke.condition:.3g} at {stroke.place(stroke.worst)}"


def simulation_table(result: FastestMotion | Cycle) -> Printed:
    """Return a table of the errors and forces of the simulated motion under the controller."""
    law, frequency = result.controller
    note = ", which does not know the payload" if any(run.payload for run in result.tried) else ""
    rotation_heads = [("turn [mrad]", ".3g")] if any(run.peak_turn for run in result.tried) else []
    rows = []
    for run in result.tried:
        peaks = [1e3 * run.peak_error]
        if rotation_heads:
            peaks.append(1e3 * run.peak_turn)
        rows.append((run.payload, run.peak_share, run.saturated, *peaks, run.end or "-"))
    heads = (
        ("payload [kg]", "g"),
        ("peak force", ".1%"),
        ("saturated", ".1%"),
        ("error [mm]", ".3g"),
        *rotation_heads,
    )
    return table(f"Under {law} at {frequency:g} Hz{note}", *heads, "ended early", rows=rows)
