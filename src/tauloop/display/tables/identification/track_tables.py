"""Table of tracked parameters at the end of a log."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.identification.online.parameter_tracking import NORMAL_95, ParameterTrack


def track_tables(result: ParameterTrack) -> Iterator[Printed]:
    """Yield estimates at the end of the log with their intervals, and the delay of the filters."""
    yield table(
        f"{result.model.mechanism.name}: tracked parameters at {result.time[-1]:.4g} s",
        *("parameter", "unit", "estimate", "95 %\ninterval", "smallest", "largest", "frozen"),
        rows=[
            (
                name,
                unit,
                f"{result.estimates[-1, k]:.4g}",
                f"± {NORMAL_95 * result.deviations[-1, k]:.2g}",
                f"{result.estimates[:, k].min():.4g}",
                f"{result.estimates[:, k].max():.4g}",
                "yes" if result.frozen[-1, k] else "",
            )
            for k, (name, unit) in enumerate(zip(result.names, result.parameter_units, strict=True))
        ],
    )
    yield (
        f"an update every {1e3 * result.filters.interval * result.filters.period:.3g} ms; "
        f"the filters delay estimates by {1e3 * result.filters.delay:.3g} ms"
    )
    yield from doubts(result)
