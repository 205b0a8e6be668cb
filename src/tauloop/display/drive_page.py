"""Drive lines on a page: a step, with torques, speeds and deflections; laps of a circle with their deviations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.pieces import Piece, Plot, Words, channels_over_time, motion, over_time, traces
from tauloop.drives import CircleTest, DriveStep

#: Parts of the signals' names by which they share a plot, and what the plot is called; lengths in
#: mm.
KINDS = (
    ("position", "Position"),
    ("velocity", "Speed"),
    ("torque", "Torque"),
    ("deflection", "Deflection"),
    ("force", "Force"),
)
#: What stands where other pages have the machine.
ALONE = (
    "A drive line alone, of no machine that could be shown in motion: `tauloop accuracy ballbar` drives a machine with its "
    "lines, and its page shows that."
)


def drive_page(step: DriveStep) -> Iterator[Piece]:
    """What is judged beside its reference, and every other signal by its kind."""
    yield Words(text=ALONE, tone="note")
    record, judged = step.record, step.line.performance.of
    signals = {name.partition(" [")[0]: name for name in record.signals}
    unit = signals[f"{judged}.position"].partition(" [")[2].removesuffix("]")
    factor, shown = (1e3, "mm") if unit == "m" else (1.0, unit)
    error = factor * (record.signal(f"{judged}.position") - record.reference)
    title = f"What is left to the reference, {judged}"
    yield from over_time(title, record.time, (judged,), (shown,), (error,))
    for ending, title in KINDS:
        yield from channels_over_time(title, record, ending)


def circle_page(test: CircleTest) -> Iterator[Piece]:
    """The machine on its circle, and radial deviations of all variations."""
    if test.laps and test.model is not None:
        lap = next(iter(test.laps.values()))
        track = test.model.platform.track(lap.motion.position)
        yield from motion(test.model, lap.motion.time, track.q)
    drawn = [
        traces(
            np.degrees(lap.angle),
            {f"{variation.label}: {1e6 * lap.deviation:.3g} µm": 1e6 * lap.radial},
        )
        for variation, lap in test.laps.items()
    ]
    first, second = test.circle.columns
    yield Plot(
        title="Radial deviation on the circle",
        x="angle on the circle [deg]",
        y="radial deviation [µm]",
        traces=tuple(trace for part in drawn for trace in part),
        note=f"0 deg lies along {first}, 90 deg along {second}; the legend has each circular deviation.",
    )
