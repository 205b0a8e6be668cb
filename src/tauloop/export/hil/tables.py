"""Tables of a plant's run: numbers of packets, and times."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import table
from tauloop.export.hil import PlantRun

_TIME_LABELS = {
    "lateness": "lateness of waking up",
    "empty_loop": "lateness of an empty loop",
    "computing": "computing a step, processor time",
    "computing_by_the_clock": "computing a step, elapsed time",
}


def plant_run_tables(run: PlantRun) -> Iterator[Printed]:
    """Yield counts, times, and features that the system did not allow."""
    yield table(
        f"Plant {run.machine}",
        "",
        ("", ""),
        rows=[(k.replace("_", " "), v) for k, v in run.counts.items()],
    )
    heads = [(f"{head}, us", ".1f") for head in ("median", "99 %", "99.9 %", "largest")]
    keys = ("median_s", "p99_s", "p999_s", "largest_s")
    rows = []
    for kind, times in run.times.items():
        if times["count"]:
            label = _TIME_LABELS.get(kind, kind)
            rows.append((label, *(1e6 * times[key] for key in keys)))
    if rows:
        period = 1e6 * run.options.period
        yield table(f"Times (the period is {period:g} us)", "", *heads, rows=rows)
    yield from (f"{feature}: {answer}" for feature, answer in run.allowed.items())
    if run.counts["brakings"]:
        yield Paragraph(text="the brakes held while commands were missing", tone="failed")
