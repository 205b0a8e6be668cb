"""A plant's run for the terminal: what came of packets, and where time went."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import table
from tauloop.hil import PlantRun

_WORDS = {
    "lateness": "lateness of waking",
    "empty_loop": "the same of an empty loop",
    "computing": "computing a step",
    "computing_by_the_clock": "the same by the clock",
}


def plant_run_tables(run: PlantRun) -> Iterator[Printed]:
    """Counts and times, and what the system did not allow."""
    yield table(
        f"Plant {run.machine}",
        "",
        ("", ""),
        rows=[(k.replace("_", " "), v) for k, v in run.counts.items()],
    )
    heads = [(f"{head}, us", ".1f") for head in ("median", "99 %", "99.9 %", "largest")]
    rows = [
        (
            _WORDS.get(kind, kind),
            *(1e6 * times[key] for key in ("median_s", "p99_s", "p999_s", "largest_s")),
        )
        for kind, times in run.times.items()
        if times["count"]
    ]
    if rows:
        yield table(f"Times, of a period of {1e6 * run.options.period:g} us", "", *heads, rows=rows)
    yield from (f"{what}: {answer}" for what, answer in run.allowed.items())
    if run.counts["brakings"]:
        yield Paragraph(text="brakes held while commands were missing", tone="failed")
