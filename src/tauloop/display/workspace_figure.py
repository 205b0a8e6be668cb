"""The picture of a workspace map: where the machine can work, and why not elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.errors import InputError
from tauloop.display.figures import (
    LARGE,
    MEASURED,
    NORMAL,
    PREDICTED,
    SMALL,
    TEXT,
    blank,
    clean,
    in_degrees,
)
from tauloop.kinematics.workspaces.map import Reason, Workspace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: One colour for each reason; usable poses are coloured by their measure instead.
COLOURS = {
    Reason.USABLE: "#2a7f9e",
    Reason.OUT_OF_REACH: "#f1f2f4",
    Reason.JOINT_LIMIT: "#d9dce1",
    Reason.SINGULAR: "#c8553d",
    Reason.INTERFERENCE: "#e3a857",
    Reason.TENSION: "#8a6fb0",
    Reason.CUT_OFF: "#b4b9c2",
}
#: What the machine cannot pass for a singularity, though it could be there.
BEYOND_SINGULAR = (Reason.SINGULAR, Reason.CUT_OFF)
#: Width of a picture, inches.
WIDTH = 8.6
#: Points of a picture along its axes, and width of the border, points.
FINE, BORDER = 900, 1.3
#: Names beside each other.
MOST_NAMES = 4

#: Measures that may colour the usable poses, and what their scale is called.
MEASURES = {
    "parallel": "distance to type 2 (parallel) singularities [1]",
    "serial": "distance to type 1 (serial) singularities [1]",
    "constraint": "distance to constraint singularities [1]",
    "clearance": "least distance of rod centre lines [m]",
    "tension": "margin of all tensions to their bounds [N]",
}


def section_figure(workspace: Workspace, measure: str = "parallel") -> Figure:
    """The picture over the first two positions, others next to their reference, or over the only one.

    Args:
        workspace: a map.
        measure: one of `MEASURES`, which colours a section; along a line all are drawn.

    Raises:
        InputError: the measure is unknown.
    """
    if measure not in MEASURES:
        raise InputError.of("measure", f"{measure!r} is unknown", ", ".join(MEASURES))
    section = workspace.section()
    return line_figure(workspace) if section is None else workspace_figure(section, measure=measure)


def line_figure(workspace: Workspace) -> Figure:
    """A map over a line: distances to singularities along it, and what excludes poses behind them."""
    from matplotlib.patches import Patch

    k = int(np.argmax([len(axis) for axis in workspace.axes.values()]))
    name, unit = tuple(workspace.axes)[k], workspace.units[k]
    shown, x = in_degrees(unit, workspace.axes[name])
    _, (reference,) = in_degrees(unit, np.array([workspace.reference[k]]))
    reasons = workspace.reason.ravel()
    figure = blank(WIDTH, 3.6)
    axes = figure.add_subplot()
    clean(axes)
    changes = np.flatnonzero(np.diff(reasons))
    is_cut = (
        workspace.border.labels.ravel()[changes] != workspace.border.labels.ravel()[changes + 1]
    )
    shares = np.full(len(changes), 0.5)
    shares[is_cut] = workspace.border.share(changes[is_cut], changes[is_cut] + 1)
    ends = [x[0], *(x[changes] + shares * (x[changes + 1] - x[changes])), x[-1]]
    present = []
    for start, end, reason in zip(ends[:-1], ends[1:], reasons[[*changes, -1]], strict=True):
        if reason != Reason.USABLE:
            axes.axvspan(start, end, color=COLOURS[Reason(reason)], linewidth=0.0)
            present.append(Reason(reason))
    lines = [
        axes.plot(
            x,
            workspace.figures[measure].ravel(),
            color=colour,
            linewidth=1.4,
            label=f"{measure} [1]",
        )[0]
        for measure, colour in (("serial", PREDICTED), ("parallel", MEASURED), ("constraint", TEXT))
    ]
    lines[-1].set_linestyle("--")
    lines.append(
        axes.axvline(reference, color=TEXT, linewidth=0.8, linestyle=":", label="reference pose")
    )
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(f"{name} [{shown}]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("distance to singularities [1]", fontsize=SMALL, color=TEXT)
    patches = [Patch(color=COLOURS[reason], label=reason.text) for reason in dict.fromkeys(present)]
    axes.legend(
        handles=[*lines, *patches],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        fontsize=SMALL,
        frameon=False,
    )
    _head(axes, workspace)
    figure.subplots_adjust(left=0.08, right=0.76, bottom=0.14, top=0.82)
    return figure


def _head(axes: Axes, workspace: Workspace) -> None:
    """Name the machine above axes, what is held, and how much is usable."""
    axes.set_title(
        f"Workspace of {workspace.provenance.inputs['machine']}",
        fontsize=LARGE,
        color=TEXT,
        loc="left",
        pad=22,
    )
    note = "; ".join(filter(None, (workspace.held, f"usable {workspace.size_text}")))
    axes.text(0.0, 1.015, note, transform=axes.transAxes, fontsize=SMALL, color=TEXT)


def sampled_measure(workspace: Workspace, measure: str, count: int) -> tuple[np.ndarray, ...]:
    """A section on a finer grid, as its border has it.

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
    return (
        x,
        y,
        reasons,
        np.where(reasons == 0, np.where(weights > 0, values * weights, 0.0).sum(axis=-1), np.nan),
    )


def workspace_figure(workspace: Workspace, *, measure: str = "parallel") -> Figure:
    """A section: usable poses coloured by a measure, the others by the reason that excludes them.

    Args:
        workspace: a map over two positions.
        measure: one of `MEASURES`.

    Raises:
        InputError: the map has not two axes, or the measure is unknown.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    names = tuple(workspace.axes)
    if len(workspace.border.axes) != 2:
        raise InputError.of(
            "workspace", f"varies {len(workspace.border.axes)} positions", "draw sections of two"
        )
    if measure not in MEASURES:
        raise InputError.of("measure", f"{measure!r} is unknown", ", ".join(MEASURES))
    units = workspace.units
    scales = np.array([180.0 / np.pi if unit == "rad" else 1.0 for unit in units])
    x, y = (scale * axis for axis, scale in zip(workspace.axes.values(), scales, strict=True))
    aspect = np.clip(np.ptp(y) / np.ptp(x) if units[0] == units[1] else 0.8, 0.4, 1.8)
    figure = blank(WIDTH, 1.9 + 6.2 * aspect)
    axes = figure.add_subplot()
    clean(axes)
    axes.grid(False)
    _, _, reasons, values = sampled_measure(workspace, measure, FINE)
    palette = ListedColormap([COLOURS[reason] for reason in Reason])
    place: dict[str, Any] = {
        "extent": (x[0], x[-1], y[0], y[-1]),
        "origin": "lower",
        "interpolation": "nearest",
    }
    axes.imshow(reasons.T, cmap=palette, vmin=-0.5, vmax=len(Reason) - 0.5, aspect="auto", **place)
    shown = axes.imshow(
        np.ma.masked_invalid(values.T), cmap="viridis", vmin=0.0, aspect="auto", **place
    )
    for points, beyond in workspace.border.lines:
        pieces = np.stack([points[:-1], points[1:]], axis=1)[beyond >= 0] * scales
        colours = [
            COLOURS[Reason.SINGULAR] if reason in BEYOND_SINGULAR else TEXT
            for reason in beyond[beyond >= 0]
        ]
        axes.add_collection(
            LineCollection(list(pieces), colors=colours, linewidths=BORDER, capstyle="round")
        )
    if units[0] == units[1]:
        axes.set_aspect("equal")
    shown_units = ["deg" if unit == "rad" else unit for unit in units]
    axes.set_xlabel(f"{names[0]} [{shown_units[0]}]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel(f"{names[1]} [{shown_units[1]}]", fontsize=NORMAL, color=TEXT)
    if workspace.usable.any():
        bar = figure.colorbar(shown, cax=axes.inset_axes((1.03, 0.0, 0.04, 1.0)))
        bar.set_label(f"usable: {MEASURES[measure]}", fontsize=SMALL, color=TEXT)
        bar.ax.tick_params(labelsize=SMALL)
    x_0, y_0 = (scale * value for value, scale in zip(workspace.reference, scales, strict=True))
    axes.plot(
        [x_0],
        [y_0],
        marker="+",
        color="white",
        markersize=11,
        markeredgewidth=3.0,
        linestyle="none",
    )
    (reference,) = axes.plot(
        [x_0], [y_0], marker="+", color="black", markersize=9, linestyle="none"
    )
    present = [
        reason
        for reason in Reason
        if reason != Reason.USABLE and (workspace.reason == reason).any()
    ]
    handles = [
        Patch(facecolor=COLOURS[reason], edgecolor="#8a9099", linewidth=0.5) for reason in present
    ]
    figure.legend(
        [*handles, reference],
        [*(reason.text for reason in present), "reference pose"],
        loc="lower left",
        bbox_to_anchor=(0.09, 0.005),
        ncols=min(len(present) + 1, MOST_NAMES),
        fontsize=SMALL,
        frameon=False,
        columnspacing=1.2,
        handlelength=1.2,
    )
    _head(axes, workspace)
    height = figure.get_figheight()
    figure.subplots_adjust(
        left=0.1,
        right=0.86,
        bottom=(0.95 if len(present) < 4 else 1.15) / height,
        top=1 - 0.75 / height,
    )
    return figure
