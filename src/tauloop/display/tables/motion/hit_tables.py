"""A blow at a moving platform for the terminal: thresholds and how soon each observer notices it."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.simulation.observers import CollisionDetection


def hit_tables(result: CollisionDetection) -> Iterator[Printed]:
    """Delays of all observers, the thresholds of their alarms, and what was varied."""
    cells = []
    for name, item in result.observers.items():
        delays = (item.quantile(0.5), item.quantile(0.9))
        shown = ("-" if delay is None else f"{1e3 * delay:.3g}" for delay in delays)
        cells.append((name, item.detected, *shown))
    yield table(
        f"{result.model.mechanism.name}: a blow at {result.at:.4g} s, noticed by",
        *("observer", ("noticed", ".0%"), "delay,\nmedian [ms]", "90 % [ms]"),
        rows=cells,
    )
    names, units = result.freedoms
    yield table(
        "Least force that raises an alarm; in brackets the noise from the encoders, root mean square",
        *("freedom", "unit", *result.observers),
        rows=[
            (
                name,
                unit,
                *(
                    f"{item.threshold[k]:.3g} ({item.noise[k]:.2g})"
                    for item in result.observers.values()
                ),
            )
            for k, (name, unit) in enumerate(zip(names, units, strict=True))
        ],
    )
    yield f"varied from machine to machine: {', '.join(result.varied) or 'nothing, for no mass is a parameter'}"
    yield from doubts(result)
