"""Table of the two-run method."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.identification.preparation.two_runs import TwoRuns
from tauloop.logs import channels, units


def two_runs_tables(result: TwoRuns) -> Iterator[Printed]:
    """Yield the share subtracted from each force, the motion mismatch, and omitted channels."""
    forces, positions = units(result.log, "force"), units(result.log, "position")
    rows = (
        (
            *(name, share, f"{result.motion_mismatch[name]:.3g} {positions[name]}"),
            *(result.noise.get(name, "not known without --period"), forces[name]),
        )
        for name, share in result.removed.items()
    )
    heads = (
        ("own force / whole", ".1%"),
        ("motion mismatch", ""),
        ("noise of the structure's force", ".3g"),
    )
    yield table("Structure's forces", "actuator", *heads, "unit", rows=rows)
    averaged = (
        f"; averaged {result.periods[0]} and {result.periods[1]} periods" if result.noise else ""
    )
    yield f"the disconnected run is {1e3 * result.delay:.4g} ms late{averaged}"
    if velocities := channels(result.log, "velocity"):
        yield (
            f"velocities of the connected run are kept: {', '.join(velocities)}; runs are aligned by positions"
        )
    if result.dropped:
        yield f"left out, neither motion nor force: {', '.join(result.dropped)}"
    if result.unmatched:
        yield f"left out, measured in one run only: {', '.join(result.unmatched)}"
    yield from doubts(result)
