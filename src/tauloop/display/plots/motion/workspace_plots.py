"""Plots of a workspace: the section by its measures, and the reasons of excluded poses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.common.errors import InputError
from tauloop.display.palette import COLOURS, MEASURED, PREDICTED, TEXT
from tauloop.display.pieces import Paragraph, Piece, Plot, PlotClass, PlotSpan, PlotTrace
from tauloop.display.plots.building import MAX_SCENE_STATES, by_name, motion, rounded
from tauloop.display.sampling import in_degrees
from tauloop.kinematics.workspaces.map import Reason, Workspace

#: One color for each reason; usable poses are colored by their measure instead.
COLORS = {
    Reason.USABLE: "#2a7f9e",
    Reason.OUT_OF_REACH: "#f1f2f4",
    Reason.JOINT_LIMIT: "#d9dce1",
    Reason.SINGULAR: "#c8553d",
    Reason.INTERFERENCE: "#e3a857",
    Reason.TENSION: "#8a6fb0",
    Reason.CUT_OFF: "#b4b9c2",
}
#: Beyond a border of one of these reasons the machine is singular, or could not get there.
BEYOND_SINGULAR = (Reason.SINGULAR, Reason.CUT_OFF)
#: Measures that may color the usable poses, and what their scale is called.
MEASURES = {
    "parallel": "distance to type 2 (parallel) singularities [1]",
    "serial": "distance to type 1 (serial) singularities [1]",
    "constraint": "distance to constraint singularities [1]",
    "clearance": "least distance of rod center lines [m]",
    "tension": "margin of all tensions to their bounds [N]",
}
#: Points of a map along its longer direction: on a page, and in a figure.
PAGE_POINTS, FIGURE_POINTS = 120, 900
#: How long the machine takes along the border, s.
WALK = 12.0


def workspace_scene(workspace: Workspace) -> Iterator[Piece]:
    """Yield the machine along the border of its workspace."""
    q = workspace.walk(MAX_SCENE_STATES)
    is_line = workspace.section() is None
    title = "The machine along the "
    title += "line" if is_line else "border of its workspace"
    yield from motion(workspace.model, np.linspace(0.0, WALK, len(q)), q, title)


def workspace_plots(workspace: Workspace) -> Iterator[Paragraph | Plot]:
    """Yield the measures over the first two positions, the others next to the reference."""
    section = workspace.section()
    if section is None:
        yield line_plot(workspace)
    else:
        known = [
            measure
            for measure in MEASURES
            if np.isfinite(section.figures[measure][section.usable]).any()
        ]
        for measure in known or ["parallel"]:
            has_classes = measure == (known or ["parallel"])[0]
            yield section_plot(section, measure, has_classes=has_classes)
    counts = {reason.text: int((workspace.reason == reason).sum()) for reason in Reason}
    present = {text: count for text, count in counts.items() if count}
    yield by_name(
        "Reasons of excluded poses",
        "poses",
        present,
        {"poses": list(present.values())},
        style="bars",
    )


def line_plot(workspace: Workspace) -> Plot:
    """Return distances to singularities along the only varied position, and excluded ranges."""
    k = int(np.argmax([len(axis) for axis in workspace.axes.values()]))
    name, unit = tuple(workspace.axes)[k], workspace.units[k]
    shown, x = in_degrees(unit, workspace.axes[name])
    _, (reference,) = in_degrees(unit, np.array([workspace.reference[k]]))
    drawn = [
        PlotTrace(
            name=measure,
            x=rounded(x),
            y=rounded(workspace.figures[measure].ravel()),
            color=color,
        )
        for measure, color in (
            ("serial", PREDICTED),
            ("parallel", MEASURED),
            ("constraint", COLOURS[2]),
        )
    ]
    values = np.array([value for trace in drawn for value in trace.y], dtype=float)
    top = float(np.nanmax(values, initial=0.0)) or 1.0
    ends = rounded([reference, reference])
    y = (0.0, *rounded(top))
    drawn.append(PlotTrace(name="reference pose", x=ends, y=y, style="dotted", color=TEXT))
    return Plot(
        title="Distance to singularities",
        x=f"{name} [{shown}]",
        y="distance [1]",
        traces=tuple(drawn),
        spans=tuple(_excluded(workspace, x)),
        y_range=(0.0, 1.05 * top),
        note=_note(workspace),
    )


def _excluded(workspace: Workspace, x: np.ndarray) -> Iterator[PlotSpan]:
    """Yield the ranges of a line in which no pose is usable."""
    reasons, labels = workspace.reason.ravel(), workspace.border.labels.ravel()
    changes = np.flatnonzero(np.diff(reasons))
    is_cut = labels[changes] != labels[changes + 1]
    shares = np.full(len(changes), 0.5)
    shares[is_cut] = workspace.border.share(changes[is_cut], changes[is_cut] + 1)
    ends = [x[0], *(x[changes] + shares * (x[changes + 1] - x[changes])), x[-1]]
    for start, end, reason in zip(ends[:-1], ends[1:], reasons[[*changes, -1]], strict=True):
        if reason != Reason.USABLE:
            yield PlotSpan(
                name=Reason(reason).text,
                start=float(start),
                end=float(end),
                color=COLORS[Reason(reason)],
                opacity=1.0,
            )


def _note(workspace: Workspace) -> str:
    return "; ".join(filter(None, (workspace.held, f"usable {workspace.size_text}")))


def sampled_measure(workspace: Workspace, measure: str, count: int) -> tuple[np.ndarray, ...]:
    """Return a section on a finer grid, as its border has it.

    Returns:
        values of the axes (n_x,) and (n_y,), some `count` along the longer; reasons (n_x, n_y); the
        measure (n_x, n_y), NaN where no pose is usable.
    """
    axes = list(workspace.axes.values())
    spans = [np.ptp(axis) for axis in axes]
    alike = workspace.units[0] == workspace.units[1]
    counts = [max(round(count * span / max(spans)), 2) if alike else count for span in spans]
    x, y = (np.linspace(axis[0], axis[-1], n) for axis, n in zip(axes, counts, strict=True))
    reasons, corners, weights = workspace.border.sampled(x, y)
    values = workspace.figures[measure].ravel()[corners]
    weighted = np.where(weights > 0, values * weights, 0.0).sum(axis=-1)
    return x, y, reasons, np.where(reasons == 0, weighted, np.nan)


def section_plot(
    section: Workspace,
    measure: str = "parallel",
    points: int = PAGE_POINTS,
    *,
    has_classes: bool = True,
) -> Plot:
    """Return a section: usable poses colored by a measure, others by the reason of exclusion.

    Args:
        section: a map over two positions.
        measure: one of `MEASURES`.
        points: of the map along its longer direction.
        has_classes: whether the reasons are shown.

    Raises:
        InputError: the map has not two axes, or the measure is unknown.
    """
    if len(section.border.axes) != 2:
        what = f"varies {len(section.border.axes)} positions"
        raise InputError.of("workspace", what, "draw sections of two")
    if measure not in MEASURES:
        raise InputError.of("measure", f"{measure!r} is unknown", ", ".join(MEASURES))
    x, y, reasons, values = sampled_measure(section, measure, points)
    scales = np.array([180.0 / np.pi if unit == "rad" else 1.0 for unit in section.units])
    units = ["deg" if unit == "rad" else unit for unit in section.units]
    names = list(section.axes)
    classes, class_grid = _classes(section, reasons)
    label, _, unit = MEASURES[measure].rpartition(" [")
    return Plot(
        title=f"Usable poses: {label}",
        x=f"{names[0]} [{units[0]}]",
        y=f"{names[1]} [{units[1]}]",
        traces=(*_borders(section, scales), _reference(section, scales)),
        grid=tuple(map(rounded, values.T)),
        grid_x=rounded(scales[0] * x),
        grid_y=rounded(scales[1] * y),
        grid_name=f"[{unit}" if points == PAGE_POINTS else f"usable: {MEASURES[measure]}",
        grid_range=_grid_range(values),
        equal=section.units[0] == section.units[1],
        note=_note(section),
        classes=classes if has_classes else (),
        class_grid=class_grid if has_classes else (),
    )


def _grid_range(values: np.ndarray) -> tuple[float, ...]:
    """Return the limits of colors, from zero."""
    if not np.isfinite(values).any():
        return ()
    top = float(np.nanmax(values))
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
    classes = tuple(PlotClass(name=item.text, color=COLORS[item]) for item in present)
    return classes, tuple(tuple(map(numbers.get, row)) for row in reasons.T.tolist())


def _borders(section: Workspace, scales: np.ndarray) -> Iterator[PlotTrace]:
    """Yield the border, apart where the machine is singular beyond it."""
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
        ("border, singular beyond", COLORS[Reason.SINGULAR], singular),
    ):
        if len(segments) > 1:
            lines = np.concatenate(segments) * scales
            x, y = rounded(lines[:, 0]), rounded(lines[:, 1])
            yield PlotTrace(name=name, x=x, y=y, color=color)


def _reference(section: Workspace, scales: np.ndarray) -> PlotTrace:
    reference = np.array(section.reference) * scales
    x, y = rounded(reference[:1]), rounded(reference[1:])
    return PlotTrace(name="reference pose", x=x, y=y, style="cross")
