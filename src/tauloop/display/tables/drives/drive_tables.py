"""Tables of drive lines: criteria of a step, laps of a circle, backlash at the tool."""

from __future__ import annotations

from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.display.pieces import Printed
from tauloop.display.tables import doubts, table
from tauloop.drives import CircleTest, DriveStep, PlayMap
from tauloop.drives.criteria import criteria_units

#: Heads of the columns by the name of the deviation.
COLUMNS = {
    "circular_deviation": "circular\ndeviation",
    "radius_error": "radius\nerror",
    "out_of_plane": "out of\nplane",
    "following_error": "following\nerror",
    "following_rms": "following,\nRMS",
}
#: Maximum number of listed elements that exclude poses.
MAX_LISTED_ELEMENTS = 6


def drive_tables(step: DriveStep) -> Iterator[Printed]:
    """Yield the criteria of a step, and its limit cycle."""
    line = step.line
    criteria, units = step.record.criteria, criteria_units(line)
    if step.outcome.is_success:
        rows = (
            (name.replace("_", " "), getattr(criteria, name)[0], unit)
            for name, unit in units.items()
        )
        title = f"{line.name}: step of {step.options.step:g}"
        yield table(title, "criterion", ("value", ".6g"), "unit", rows=rows)
        if not criteria.settled[0]:
            yield "not settled: outside the band at the end, so the settling time is the duration"
    else:
        yield f"{line.name}: {step.outcome.label.replace('_', ' ')} at {criteria.end[0]:.4g} s"
    yield from (occurrence.words for occurrence in step.record.occurrences)
    yield f"{counted(criteria.steps[0], 'step')}, {counted(criteria.events[0], 'event')}"
    if step.predicted is not None:
        cycles = [("simulated", step.measured)]
        cycles += [("describing function", cycle) for cycle in step.predicted or (None,)]
        cells = (
            (name, *(("none", "") if cycle is None else (cycle.frequency, cycle.amplitude)))
            for name, cycle in cycles
        )
        yield table(
            "Limit cycle",
            "route",
            ("frequency [Hz]", ".4g"),
            (f"amplitude [{units['swing']}]", ".4g"),
            rows=cells,
        )


def circle_tables(test: CircleTest) -> Iterator[Printed]:
    """Yield the deviations of each lap, and the reasons why laps ended early."""
    circle = test.circle
    title = f"{test.machine}: circle of {1e3 * circle.radius:g} mm in {', '.join(circle.columns)}"
    heads = ((head, ".2f") for head in COLUMNS.values())
    rows = []
    for variation, lap in test.laps.items():
        deviations = (lap.deviations[key] for key in COLUMNS)
        rows.append((variation.label, *deviations))
    yield table(f"{title} at {circle.speed:g} m/s [um]", "drives", *heads, rows=rows)
    for variation, reason in test.ends.items():
        yield f"{variation.label}: {reason}"
    for variation, occurrences in test.occurrences.items():
        yield from (f"{variation.label}: {item.words}" for item in occurrences)
    yield from doubts(test)


def play_tables(play: PlayMap) -> Iterator[Printed]:
    """Yield the tool's displacement due to the backlash of each actuator and of all actuators.

    The elements that exclude poses are listed below.
    """
    cells: list[tuple[object, ...]] = []
    for name, values in play.displacements().items():
        displacements = [1e6 * values[key] for key in ("least", "median", "largest")]
        if name in play.backlash:
            backlash = 1e6 * play.backlash[name]
            ratio = displacements[-1] / backlash if backlash else None
            cells.append((name, backlash, f"u{play.units[name]}", *displacements, ratio))
        else:
            cells.append(("all, worst case", None, "", *displacements, None))
    yield table(
        f"{play.machine}: displacement of the tool due to play, over "
        f"{counted(int(play.workspace.usable.sum()), 'pose')}",
        *("play of", ("play", "g"), "unit"),
        *(
            (head, ".3g")
            for head in ("smallest\n[um]", "median\n[um]", "largest\n[um]", "largest\n/ play")
        ),
        rows=cells,
        unbroken=(0,),
    )
    axes = (
        f"{name} {low:g} to {high:g}"
        for name, (low, high) in play.volume.items()
        if name in play.data.dims
    )
    yield f"workspace: {', '.join(axes)}"
    for name, count in list(play.workspace.excluded_by().items())[:MAX_LISTED_ELEMENTS]:
        yield f"excluded by {name}: {counted(count, 'pose')}"
    yield str(play.diagnostics[-1])
    yield from doubts(play)
