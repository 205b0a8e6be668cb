"""The picture of a workspace map: where the machine can work, and why not elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.errors import InputError
from tauloop.kinematics.workspace_map import Reason, Workspace
from tauloop.report.figures import LARGE, NORMAL, SMALL, TEXT, blank, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: One colour for each reason; usable poses are coloured by their measure instead.
COLOURS = {
    Reason.USABLE: "#2a7f9e",
    Reason.OUT_OF_REACH: "#f1f2f4",
    Reason.JOINT_LIMIT: "#d9dce1",
    Reason.SINGULAR: "#c8553d",
    Reason.INTERFERENCE: "#e3a857",
    Reason.TENSION: "#8a6fb0",
}

#: Measures that may colour the usable poses, and what their scale is called.
MEASURES = {
    "parallel": "distance to type 2 (parallel) singularities [1]",
    "serial": "distance to type 1 (serial) singularities [1]",
    "constraint": "distance to constraint singularities [1]",
    "clearance": "least distance of rod centre lines [m]",
    "tension": "margin of all tensions to their bounds [N]",
}


def section_figure(workspace: Workspace) -> Figure | None:
    """The picture over the first two positions, others next to their reference; None of a map over a line."""
    names = list(workspace.axes)
    if len(names) < 2:
        return None
    places = zip(list(workspace.axes.values())[2:], workspace.reference[2:], strict=True)
    place = [int(np.abs(axis - at).argmin()) for axis, at in places]
    index: tuple[Any, ...] = (..., *place)
    held = {name: float(workspace.axes[name][k]) for name, k in zip(names[2:], place, strict=True)}
    section = replace(
        workspace,
        figures={name: values[index] for name, values in workspace.figures.items()},
        axes={name: workspace.axes[name] for name in names[:2]},
        units=workspace.units[:2],
        reference=workspace.reference[:2],
        fixed=workspace.fixed | held,
        fixed_units=workspace.fixed_units + workspace.units[2:],
    )
    return workspace_figure(section)


def workspace_figure(workspace: Workspace, *, measure: str = "parallel") -> Figure:
    """A section: usable poses coloured by a measure, the others by the reason that excludes them.

    Args:
        workspace: a map over two positions.
        measure: one of `MEASURES`.

    Raises:
        InputError: the map has not two axes, or the measure is unknown.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    names = tuple(workspace.axes)
    if len(names) != 2:
        raise InputError.of("workspace", f"varies {len(names)} positions", "draw sections of two")
    if measure not in MEASURES:
        raise InputError.of("measure", f"{measure!r} is unknown", ", ".join(MEASURES))
    units = workspace.units
    scales = [180.0 / np.pi if unit == "rad" else 1.0 for unit in units]
    x, y = (scale * axis for axis, scale in zip(workspace.axes.values(), scales, strict=True))
    width = 8.6
    aspect = np.clip(np.ptp(y) / max(np.ptp(x), 1e-12), 0.4, 1.8)
    figure = blank(width, 1.6 + 6.2 * aspect)
    axes = figure.add_subplot()
    clean(axes)
    axes.grid(False)
    reasons = np.ma.masked_equal(workspace.reason.T, int(Reason.USABLE))
    palette = ListedColormap([COLOURS[reason] for reason in Reason])
    axes.pcolormesh(x, y, reasons, cmap=palette, vmin=-0.5, vmax=len(Reason) - 0.5, shading="nearest", rasterized=True)
    values = np.ma.masked_where(~workspace.usable.T, workspace.figures[measure].T)
    shown = axes.pcolormesh(x, y, values, cmap="viridis", vmin=0.0, shading="nearest", rasterized=True)
    if units[0] == units[1]:
        axes.set_aspect("equal")
    shown_units = ["deg" if unit == "rad" else unit for unit in units]
    axes.set_xlabel(f"{names[0]} [{shown_units[0]}]", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel(f"{names[1]} [{shown_units[1]}]", fontsize=NORMAL, color=TEXT)
    if workspace.usable.any():
        bar = figure.colorbar(shown, ax=axes, fraction=0.05, pad=0.03)
        bar.set_label(f"usable: {MEASURES[measure]}", fontsize=SMALL, color=TEXT)
        bar.ax.tick_params(labelsize=SMALL)
    x_0, y_0 = (scale * value for value, scale in zip(workspace.reference, scales, strict=True))
    axes.plot([x_0], [y_0], marker="+", color="white", markersize=11, markeredgewidth=3.0, linestyle="none")
    (reference,) = axes.plot([x_0], [y_0], marker="+", color="black", markersize=9, linestyle="none")
    present = [reason for reason in Reason if reason != Reason.USABLE and (workspace.reason == reason).any()]
    handles = [Patch(facecolor=COLOURS[reason], edgecolor="#8a9099", linewidth=0.5) for reason in present]
    figure.legend(
        [*handles, reference],
        [*(reason.text for reason in present), "reference pose"],
        loc="lower left",
        bbox_to_anchor=(0.09, 0.005),
        ncols=len(present) + 1,
        fontsize=SMALL,
        frameon=False,
        columnspacing=1.2,
        handlelength=1.2,
    )
    axes.set_title(
        f"Workspace of {workspace.provenance.inputs['machine']}", fontsize=LARGE, color=TEXT, loc="left", pad=22
    )
    if workspace.fixed:
        axes.text(0.0, 1.015, workspace.held, transform=axes.transAxes, fontsize=SMALL, color=TEXT)
    height = figure.get_figheight()
    figure.subplots_adjust(left=0.1, right=0.93, bottom=0.95 / height, top=1 - 0.75 / height)
    return figure
