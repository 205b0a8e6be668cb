"""Plots of a workspace: sections colored by measures, and the reasons for excluded poses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.display.palette import COLORS, MEASURED, PREDICTED, TEXT
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotClass, PlotSpan, PlotTrace
from tauloop.display.plots.building import MAX_SCENE_STATES, by_name, motion, rounded
from tauloop.display.plots.motion.machine_outline import outline_traces
from tauloop.display.sampling import in_degrees
from tauloop.kinematics.workspaces.map import OUTPUT, Reason, Workspace, output_units
from tauloop.mechanism.suggestions import listing

#: One color for each reason; usable poses are colored by their measure instead.
REASON_COLORS = {
    Reason.USABLE: "#2a7f9e",
    Reason.OUT_OF_REACH: "#f1f2f4",
    Reason.JOINT_LIMIT: "#d9dce1",
    Reason.SINGULAR: "#c8553d",
    Reason.INTERFERENCE: "#e3a857",
    Reason.TENSION: "#8a6fb0",
    Reason.CUT_OFF: "#b4b9c2",
}
#: Reasons beyond a border where poses are singular, or reachable only through a singular pose.
BEYOND_SINGULAR = (Reason.SINGULAR, Reason.CUT_OFF)
#: Labels of the measures that may color the usable poses.
MEASURE_LABELS = {
    "parallel": "distance to type 2 (parallel) singularities [1]",
    "serial": "distance to type 1 (serial) singularities [1]",
    "constraint": "distance to constraint singularities [1]",
    "clearance": "smallest distance between rod center lines [m]",
    "tension": "margin of all tensions to their bounds [N]",
}
#: Number of points of a map along its longer direction on a page.
PAGE_POINTS = 120
#: Number of points of a map along its longer direction in a figure.
FIGURE_POINTS = 900
#: Maximum number of elements that the legend names for each reason.
MAX_NAMED_ELEMENTS = 3
#: Maximum number of characters of these elements.
MAX_ELEMENT_CHARACTERS = 28
#: Duration of the animation along the border, s.
BORDER_DURATION = 12.0


@dataclass(frozen=True, slots=True)
class Measure:
    """A property of poses that colors a map.

    Attributes:
        name: key in `Workspace.arrays`.
        label: label of its color scale, with the unit in brackets.
        factor: factor from SI to the unit of the label.
        from_zero: whether the color scale starts at zero.
    """

    name: str
    label: str
    factor: float = 1.0
    from_zero: bool = True


def measure_named(workspace: Workspace, name: str) -> Measure:
    """Return a measure by its name in `MEASURE_LABELS` or `quantities`, or an output of the file.

    Raises:
        InputError: the name is unknown.
    """
    if name in MEASURE_LABELS:
        return Measure(name, MEASURE_LABELS[name])
    quantities = {quantity.name: quantity for quantity in workspace.quantities}
    if name in quantities:
        quantity = quantities[name]
        label = f"{quantity.label} [{quantity.shown_unit}]"
        return Measure(name, label, quantity.factor, from_zero=False)
    units = output_units(workspace.model)
    outputs = [key.removeprefix(OUTPUT) for key in units]
    if name not in outputs:
        known = [*MEASURE_LABELS, *quantities, *outputs]
        raise InputError.of("measure", f"{name!r} is unknown", f"choose among {listing(known, 24)}")
    key = OUTPUT + name
    is_angle = units[key] == "rad"
    display_unit = "deg" if is_angle else units[key]
    factor = float(np.degrees(1.0)) if is_angle else 1.0
    return Measure(key, f"{name} [{display_unit}]", factor, from_zero=False)


def workspace_scene(workspace: Workspace) -> Iterator[Piece]:
    """Yield the machine moving along the border of its workspace."""
    q = workspace.walk(MAX_SCENE_STATES)
    is_line = workspace.section() is None
    title = "The machine along the "
    title += "line" if is_line else "border of its workspace"
    yield from motion(workspace.model, np.linspace(0.0, BORDER_DURATION, len(q)), q, title)


def workspace_plots(workspace: Workspace) -> Iterator[Paragraph | Plot]:
    """Yield plots of the measures over the first two positions, and of reasons for exclusion."""
    section = workspace.section()
    if section is None:
        yield line_plot(workspace)
    else:
        known = [
            measure
            for measure in MEASURE_LABELS
            if np.isfinite(section.arrays[measure][section.usable]).any()
        ]
        for number, measure in enumerate(known or ["parallel"]):
            yield section_plot(section, measure, has_classes=number == 0)
    others = [quantity.name for quantity in workspace.quantities]
    others += [output.name for output in workspace.model.mechanism.outputs]
    for name in others:
        if section is None:
            yield line_plot(workspace, name)
        else:
            yield section_plot(section, name, has_classes=False)
    counts = {reason.text: int((workspace.reason == reason).sum()) for reason in Reason}
    present = {text: count for text, count in counts.items() if count}
    yield by_name(
        "Reasons for excluded poses",
        "poses",
        present,
        {"poses": list(present.values())},
        style="bars",
    )


def line_plot(workspace: Workspace, measure: str = "parallel") -> Plot:
    """Return a plot over the only varied position, with excluded ranges.

    Args:
        workspace: a map over one position.
        measure: an output of the machine file. For one of `MEASURE_LABELS`, the distances to all
            kinds of singularities are drawn.

    Raises:
        InputError: the measure is unknown.
    """
    k = int(np.argmax([len(axis) for axis in workspace.axes.values()]))
    name = tuple(workspace.axes)[k]
    unit = workspace.units[k]
    display_unit, x = in_degrees(unit, workspace.axes[name])
    _, (reference,) = in_degrees(unit, np.array([workspace.reference[k]]))
    drawn_measure = measure_named(workspace, measure)
    if drawn_measure.from_zero:
        title, y_label = "Distance to singularities", "distance [1]"
        colors = {"serial": PREDICTED, "parallel": MEASURED, "constraint": COLORS[2]}
        drawn = [
            PlotTrace(
                name=kind, x=rounded(x), y=rounded(workspace.arrays[kind].ravel()), color=color
            )
            for kind, color in colors.items()
        ]
    else:
        title, y_label = measure, drawn_measure.label
        values = rounded(drawn_measure.factor * workspace.arrays[drawn_measure.name].ravel())
        drawn = [PlotTrace(name=measure, x=rounded(x), y=values, color=MEASURED)]
    low, top = _limits(drawn, from_zero=drawn_measure.from_zero)
    ends = rounded([reference, reference])
    drawn.append(
        PlotTrace(name="reference pose", x=ends, y=rounded([low, top]), style="dotted", color=TEXT)
    )
    return Plot(
        title=title,
        x=f"{name} [{display_unit}]",
        y=y_label,
        traces=tuple(drawn),
        spans=tuple(_excluded_ranges(workspace, x)),
        y_range=(low, top + 0.05 * (top - low)),
        note=_note(workspace),
    )


def _limits(traces: Iterable[PlotTrace], *, from_zero: bool) -> tuple[float, float]:
    """Return the smallest (or zero) and the largest value of traces; the range is never empty."""
    values = np.array([value for trace in traces for value in trace.y], dtype=float)
    if from_zero:
        return 0.0, float(np.nanmax(values, initial=0.0)) or 1.0
    finite = values[np.isfinite(values)]
    low, top = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    return (low, top) if top > low else (low - 1.0, top + 1.0)


def _excluded_ranges(workspace: Workspace, x: np.ndarray) -> Iterator[PlotSpan]:
    """Yield the ranges of the varied position in which no pose is usable."""
    reasons, labels = workspace.reason.ravel(), workspace.border.labels.ravel()
    changes = np.flatnonzero(np.diff(reasons))
    # Without a computed border, a range ends at the midpoint between two grid points.
    has_border = labels[changes] != labels[changes + 1]
    fractions = np.full(len(changes), 0.5)
    fractions[has_border] = workspace.border.share(changes[has_border], changes[has_border] + 1)
    ends = [x[0], *(x[changes] + fractions * (x[changes + 1] - x[changes])), x[-1]]
    for start, end, reason in zip(ends[:-1], ends[1:], reasons[[*changes, -1]], strict=True):
        if reason != Reason.USABLE:
            yield PlotSpan(
                name=Reason(reason).text,
                start=float(start),
                end=float(end),
                color=REASON_COLORS[Reason(reason)],
                opacity=1.0,
            )


def _note(workspace: Workspace) -> str:
    return "; ".join(filter(None, (workspace.held, f"usable {workspace.size_text}")))


def sampled_measure(workspace: Workspace, measure: str, count: int) -> tuple[np.ndarray, ...]:
    """Return a section interpolated on a finer grid, with the reasons divided along its border.

    Args:
        workspace: a map over two positions.
        measure: key in `Workspace.arrays`.
        count: number of points along the longer axis.

    Returns:
        Values of the axes (n_x,) and (n_y,), about `count` along the longer axis.
        Reasons (n_x, n_y).
        The measure (n_x, n_y), NaN at poses that are not usable.
    """
    axes = list(workspace.axes.values())
    spans = [np.ptp(axis) for axis in axes]
    counts = [count for _ in spans]
    if workspace.units[0] == workspace.units[1]:
        counts = [max(round(count * span / max(spans)), 2) for span in spans]
    x, y = (np.linspace(axis[0], axis[-1], n) for axis, n in zip(axes, counts, strict=True))
    reasons, grid_points, weights = workspace.border.sampled(x, y)
    values = workspace.arrays[measure].ravel()[grid_points]
    weighted = np.where(weights > 0, values * weights, 0.0).sum(axis=-1)
    return x, y, reasons, np.where(reasons == 0, weighted, np.nan)


def section_plot(
    section: Workspace,
    measure: str = "parallel",
    points: int = PAGE_POINTS,
    *,
    has_classes: bool = True,
) -> Plot:
    """Return a map of a section: usable poses by a measure, others by the reason for exclusion.

    Args:
        section: a map over two positions.
        measure: one of `MEASURE_LABELS`, or an output of the machine file.
        points: number of points of the map along its longer direction.
        has_classes: whether the reasons are shown.

    Raises:
        InputError: the map does not have two axes, or the measure is unknown.
    """
    if len(section.border.axes) != 2:
        what = f"varies {len(section.border.axes)} positions"
        raise InputError.of("workspace", what, "draw sections over two positions")
    drawn_measure = measure_named(section, measure)
    x, y, reasons, values = sampled_measure(section, drawn_measure.name, points)
    values = drawn_measure.factor * values
    scales = np.array([180.0 / np.pi if unit == "rad" else 1.0 for unit in section.units])
    units = ["deg" if unit == "rad" else unit for unit in section.units]
    names = list(section.axes)
    classes, class_grid = _classes(section, reasons)
    label, _, unit = drawn_measure.label.rpartition(" [")
    return Plot(
        title=f"Usable poses: {label}",
        x=f"{names[0]} [{units[0]}]",
        y=f"{names[1]} [{units[1]}]",
        traces=(
            *_borders(section, scales),
            *outline_traces(section, scales),
            _reference(section, scales),
        ),
        grid=tuple(map(rounded, values.T)),
        grid_x=rounded(scales[0] * x),
        grid_y=rounded(scales[1] * y),
        grid_name=f"[{unit}" if points == PAGE_POINTS else f"usable: {drawn_measure.label}",
        grid_range=_grid_range(values, from_zero=drawn_measure.from_zero),
        equal=section.units[0] == section.units[1],
        note=_note(section),
        classes=classes if has_classes else (),
        class_grid=class_grid if has_classes else (),
    )


def _grid_range(values: np.ndarray, *, from_zero: bool) -> tuple[float, ...]:
    """Return the limits of the color scale, from zero or from the smallest value."""
    if not np.isfinite(values).any():
        return ()
    top = float(np.nanmax(values))
    if not from_zero:
        low = float(np.nanmin(values))
        return (low, top) if top > low else ()
    return (0.0, top) if top > 0 else ()


def _classes(
    section: Workspace, reasons: np.ndarray
) -> tuple[tuple[PlotClass, ...], tuple[tuple[float | None, ...], ...]]:
    """Return the reasons that exclude poses as classes of a map, and the class of each point."""
    present = [
        reason for reason in Reason if reason != Reason.USABLE and (section.reason == reason).any()
    ]
    if not present:
        return (), ()
    numbers = {int(reason): k for k, reason in enumerate(present)}
    classes = tuple(
        PlotClass(name=region_name(section, item), color=REASON_COLORS[item]) for item in present
    )
    return classes, tuple(tuple(map(numbers.get, row)) for row in reasons.T.tolist())


def region_name(workspace: Workspace, reason: Reason) -> str:
    """Return the text of a reason with the elements that exclude most poses, such as stops."""
    blame = workspace.arrays["blame"][workspace.reason == reason]
    counts = np.bincount(blame[blame >= 0].astype(int), minlength=len(workspace.elements))
    order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
    names = [workspace.elements[k].removesuffix(" singularity") for k in order]
    shown_names = names[:MAX_NAMED_ELEMENTS]
    while len(shown_names) > 1 and len(", ".join(shown_names)) > MAX_ELEMENT_CHARACTERS:
        shown_names.pop()
    if len(names) > len(shown_names):
        shown_names.append(f"{len(names) - len(shown_names)} more")
    return f"{reason.text}: {', '.join(shown_names)}" if shown_names else reason.text


def _borders(section: Workspace, scales: np.ndarray) -> Iterator[PlotTrace]:
    """Yield the lines of the border; parts beyond which the machine is singular are separate."""
    gap = np.full((1, 2), np.nan)  # between two lines
    singular, other = [gap], [gap]
    for points, beyond in section.border.lines:
        for k, reason in enumerate(beyond):
            if reason >= 0:
                segments = singular if reason in BEYOND_SINGULAR else other
                if np.array_equal(segments[-1][-1], points[k]):
                    segments.append(points[k + 1 : k + 2])
                else:
                    segments += [gap, points[k : k + 2]]
    for name, color, segments in (
        ("border", TEXT, other),
        ("border, singular beyond", REASON_COLORS[Reason.SINGULAR], singular),
    ):
        if len(segments) > 1:
            lines = np.concatenate(segments) * scales
            x, y = rounded(lines[:, 0]), rounded(lines[:, 1])
            yield PlotTrace(name=name, x=x, y=y, color=color)


def _reference(section: Workspace, scales: np.ndarray) -> PlotTrace:
    reference = np.array(section.reference) * scales
    x, y = rounded(reference[:1]), rounded(reference[1:])
    return PlotTrace(name="reference pose", x=x, y=y, style="cross")
