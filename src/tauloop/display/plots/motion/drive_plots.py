"""Plots of drive lines: steps, deviations from a circle, tool displacement due to backlash."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.errors import InputError
from tauloop.display.palette import MEASURED, PREDICTED, RESIDUAL
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotTrace
from tauloop.display.plots.building import channels_over_time, motion, rounded, traces
from tauloop.drives import CircleTest, DriveStep
from tauloop.drives.axis.simulation import Record
from tauloop.drives.machine.path import Variation
from tauloop.drives.machine.play import PlayMap

if TYPE_CHECKING:
    import xarray as xr

#: Range of the magnified error, as a multiple of the largest error in the last half of the run.
ERROR_RANGE = 1.6
#: Range of torques, as a multiple of their 98 % quantile. The derivative kick is cut off.
TORQUE_RANGE = 1.5
#: Smallest half range of an axis.
MIN_RANGE = 1e-12
#: Radius of a drawn circle, as a multiple of the largest deviation from it.
CIRCLE_SIZE = 2.2
#: Text in place of a machine in motion.
NO_SCENE = (
    "A drive line has no machine to show in motion. The page of `tauloop accuracy ballbar` shows a "
    "machine with its drive lines."
)
#: One color for each variation of a circular test.
COLORS = {
    Variation.AS_DESCRIBED: PREDICTED,
    Variation.ONE_MOTOR: RESIDUAL,
    Variation.NO_PLAY: "#6a9a5b",
    Variation.RIGID: MEASURED,
}


# Steps.


def step_scene(_: DriveStep) -> Iterator[Piece]:
    """Yield a note that there is no machine to show."""
    yield Paragraph(text=NO_SCENE, tone="note")


def step_plots(step: DriveStep, *others: DriveStep) -> Iterator[Paragraph | Plot]:
    """Yield the controlled position, its magnified error, and all other signals by quantity.

    Args:
        step: the step response that is drawn.
        others: step responses for comparison, whose plots have the same scales.
    """
    steps = (step, *others)
    yield Paragraph(text=_summary(step), tone="note")
    record, output = step.record, step.line.performance.of
    unit = _unit(record, f"{output}.position")
    factor, display_unit = (1e3, "mm") if unit == "m" else (1.0, unit)
    position = factor * record.signal(f"{output}.position")
    reference = factor * record.reference
    ends = rounded(record.time[[0, -1]])
    line = PlotTrace(name="reference", x=ends, y=rounded([reference] * 2), style="limit")
    yield Plot(
        title=f"Position of {output}",
        x="time [s]",
        y=f"position [{display_unit}]",
        traces=(*traces(record.time, {output: position}), line),
        over_time=True,
    )
    half_range = ERROR_RANGE * max(factor * _last_error(item) for item in steps)
    half_range = max(half_range, MIN_RANGE)
    yield Plot(
        title=f"Distance to the reference, {output}, magnified",
        x="time [s]",
        y=f"error [{display_unit}]",
        traces=traces(record.time, {output: position - reference}),
        over_time=True,
        y_range=(-half_range, half_range),
    )
    for quantity, title, scale in (
        ("torque", "Torque", 1.0),
        ("deflection", "Deflection", 1e3),
        ("force", "Force", 1.0),
        ("velocity", "Speed", 1.0),
        ("position", "Position", 1.0),
    ):
        yield from _signals(steps, quantity, title, scale)


def _signals(steps: Sequence[DriveStep], quantity: str, title: str, scale: float) -> Iterator[Plot]:
    """Yield a plot of a quantity for each unit; peaks of torque and deflection are cut off."""
    record = steps[0].record
    if quantity not in ("torque", "deflection"):
        yield from channels_over_time(title, record, quantity)
        return
    signals = _signals_by_element(record, quantity)
    for unit in dict.fromkeys(unit for _, unit in signals):
        levels = [
            scale * float(np.quantile(np.abs(values), 0.98))
            for step in steps
            for (_, other), values in _signals_by_element(step.record, quantity).items()
            if other == unit
        ]
        half_range = max(TORQUE_RANGE * max(levels), MIN_RANGE)
        columns = {
            name: scale * values for (name, other), values in signals.items() if other == unit
        }
        prefix = "m" if scale == 1e3 else ""
        yield Plot(
            title=title,
            x="time [s]",
            y=f"{title.lower()} [{prefix}{unit}]",
            traces=traces(record.time, columns),
            over_time=True,
            y_range=(-half_range, half_range),
        )


def _signals_by_element(record: Record, quantity: str) -> dict[tuple[str, str], np.ndarray]:
    """Return the signals of a quantity by element and unit."""
    signals = {}
    for full, values in record.signals.items():
        name, _, unit = full.partition(" [")
        if name.endswith(f".{quantity}"):
            signals[name.removesuffix(f".{quantity}"), unit.removesuffix("]")] = values
    return signals


def _unit(record: Record, name: str) -> str:
    for full in record.signals:
        signal, _, unit = full.partition(" [")
        if signal == name:
            return unit.removesuffix("]")
    return ""


def _last_error(step: DriveStep) -> float:
    """Return the largest error in the last half of a run."""
    record = step.record
    error = record.signal(f"{step.line.performance.of}.position") - record.reference
    return float(np.abs(error[len(error) // 2 :]).max())


def _summary(step: DriveStep) -> str:
    criteria = step.record.criteria
    output = step.line.performance.of
    unit = _unit(step.record, f"{output}.position")
    text = f"{step.line.name}, step of {step.options.step:g} {unit}: "
    if criteria.failed[0]:
        return f"{text}diverged or aborted."
    return f"{text}rise {criteria.rise_time[0]:.3f} s; swing at the end {criteria.swing[0]:.2g} {unit}."


# Circles.


def circle_scene(test: CircleTest) -> Iterator[Piece]:
    """Yield the machine moving along the circle."""
    if test.laps and test.model is not None:
        lap = next(iter(test.laps.values()))
        track = test.model.platform.track(lap.motion.position)
        yield from motion(test.model, lap.motion.time, track.q)


def circle_plots(test: CircleTest) -> Iterator[Paragraph | Plot]:
    """Yield the radial deviations of all variations, around the circle and over the angle."""
    circle = test.circle
    text = f"Circle of {1e3 * circle.radius:g} mm at {circle.speed:g} m/s."
    yield Paragraph(text=text, tone="note")
    first, second = circle.columns
    note = f"0 deg is along {first}, 90 deg along {second}"
    if test.laps:
        largest = max(1e6 * float(np.abs(lap.radial).max()) for lap in test.laps.values())
        largest = max(largest, MIN_RANGE)
        base = CIRCLE_SIZE * largest
        around = np.linspace(0.0, 360.0, 121)
        circle_line = PlotTrace(
            name="the circle", x=rounded(around), y=(0.0,) * len(around), style="limit"
        )
        yield Plot(
            title="Radial deviation, magnified on the circle",
            x="angle on the circle [deg]",
            y="radial deviation [µm]",
            traces=(*_laps(test, closed=True), circle_line),
            polar=True,
            y_range=(-base, 1.25 * largest),
            note=f"Deviation x {1e6 * circle.radius / base:.0f} on the circle; {note}.",
        )
    yield Plot(
        title="Radial deviation",
        x="angle on the circle [deg]",
        y="radial deviation [µm]",
        traces=tuple(_laps(test, closed=False)),
        note=f"{note}; the legend has each circular deviation.",
    )


def _laps(test: CircleTest, *, closed: bool) -> Iterator[PlotTrace]:
    for variation, lap in test.laps.items():
        angle, radial = np.degrees(lap.angle), 1e6 * lap.radial
        if closed:
            angle, radial = np.append(angle, angle[0] + 360.0), np.append(radial, radial[0])
        name = f"{variation.label}: {1e6 * lap.deviation:.3g} µm"
        for trace in traces(angle, {name: radial}):
            yield PlotTrace(name=name, x=trace.x, y=trace.y, color=COLORS[variation])


# Backlash.


def play_plots(play: PlayMap) -> Iterator[Paragraph | Plot]:
    """Yield a map for the backlash of each actuator, and one for the worst combination of all.

    The maps are over the first two positions, at the middle of the others. There are no plots for a
    backlash map over a single position.
    """
    names = list(play.workspace.axes)
    if len(names) < 2:
        return
    fixed = {name: play.data.sizes[name] // 2 for name in names[2:] if name in play.data.dims}
    section = play.data.isel(fixed)
    if play.workspace.held:
        yield Paragraph(text=f"{play.workspace.held}.", tone="note")
    if fixed:
        positions = (
            f"{name} = {float(section[name]):.4g} {section[name].attrs['units']}" for name in fixed
        )
        yield Paragraph(text=f"Section at {', '.join(positions)}.", tone="note")
    yield from _play_maps(play, section)


def _play_maps(play: PlayMap, section: xr.Dataset) -> Iterator[Plot]:
    """Yield the maps of a section over two positions.

    Raises:
        InputError: the section does not have two axes, or has no usable pose.
    """
    names = [str(name) for name in section["worst"].dims]
    if len(names) != 2:
        what = f"varies {len(names)} positions"
        raise InputError.of("backlash map", what, "draw sections over two positions")
    each = 1e6 * section["each"].to_numpy()
    worst = 1e6 * section["worst"].to_numpy()
    if not np.isfinite(worst).any():
        raise InputError.of("backlash map", "has no usable pose", "choose another plane")
    x, y = (section[name].to_numpy() for name in names)
    units = [section[name].attrs["units"] for name in names]
    low, high = float(np.nanmin(each)), float(np.nanmax(each))
    maps = dict(zip(play.backlash, each, strict=True)) | {"all, worst case": worst}
    for name, values in maps.items():
        is_single_actuator = name in play.backlash
        usable = values[np.isfinite(values)]
        text = f"{usable.min():.3g} to {usable.max():.3g} µm, median {np.median(usable):.3g}"
        yield Plot(
            title=f"{name}\n{text}",
            x=f"{names[0]} [{units[0]}]",
            y=f"{names[1]} [{units[1]}]",
            grid=tuple(map(rounded, values.T)),
            grid_x=rounded(x),
            grid_y=rounded(y),
            grid_name="[µm]",
            grid_range=(low, high) if is_single_actuator and low < high else (),
            contours=True,
            equal=units[0] == units[1],
        )
