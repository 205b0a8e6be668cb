"""Tables of collision detection on a moving platform: thresholds and delays of each observer."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.simulation.observers import CollisionDetection


def collision_tables(result: CollisionDetection) -> Iterator[Printed]:
    """Yield delays of all observers, thresholds of their alarms, and the varied parameters."""
    cells = []
    for name, item in result.observers.items():
        delays = (item.quantile(0.5), item.quantile(0.9))
        delay_texts = ("-" if delay is None else f"{1e3 * delay:.3g}" for delay in delays)
        cells.append((name, item.detected, *delay_texts))
    yield table(
        f"{result.model.mechanism.name}: a collision at {result.at:.4g} s, detected by",
        *("observer", ("detected", ".0%"), "delay,\nmedian [ms]", "90 % [ms]"),
        rows=cells,
    )
    names, units = result.freedoms
    rows = []
    for k, (name, unit) in enumerate(zip(names, units, strict=True)):
        observed = result.observers.values()
        levels = (f"{item.threshold[k]:.3g} ({item.noise[k]:.2g})" for item in observed)
        rows.append((name, unit, *levels))
    title = "Smallest force that raises an alarm; in parentheses the RMS noise due to the encoders"
    yield table(title, "degree of freedom", "unit", *result.observers, rows=rows)
    varied = ", ".join(result.varied) or "nothing, because no mass is a parameter"
    yield f"varied from machine to machine: {varied}"
    yield from doubts(result)
