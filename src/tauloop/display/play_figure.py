"""The picture of a play map: sections of the work volume, coloured by how far the tool moves in the play."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tauloop.common.errors import InputError
from tauloop.display.figures import NORMAL, SMALL, TEXT, blank, clean
from tauloop.drives.machine.play import PlayMap

if TYPE_CHECKING:
    from matplotlib.contour import QuadContourSet
    from matplotlib.figure import Figure

PANEL, MOST_COLUMNS = 3.1, 4
#: A label lies at least this share of a panel's width and height inside.
INSIDE = 0.08


def section_figure(play: PlayMap) -> Figure | None:
    """The picture over the first two positions, half way along the others; None of a map over a line."""
    names = list(play.space.axes)
    if len(names) < 2:
        return None
    section = play.data.isel({name: play.data.sizes[name] // 2 for name in names[2:]})
    at = "".join(
        f", {name} = {float(section[name]):.4g} {section[name].attrs['units']}"
        for name in names[2:]
    )
    return play_figure(
        replace(play, data=section), title=f"{play.machine}: tool displacement by play [um]{at}"
    )


def play_figure(play: PlayMap, *, title: str) -> Figure:
    """A panel for the play of each actuator, and one for all in the worst combination; one scale of colours each.

    Args:
        play: a map over two positions.
        title: heading.

    Raises:
        InputError: the map has not two axes, or no usable pose.
    """
    names = [str(name) for name in play.data["worst"].dims]
    if len(names) != 2:
        raise InputError.of("play map", f"varies {len(names)} positions", "draw sections of two")
    each, worst = (1e6 * play.data[key].to_numpy() for key in ("each", "worst"))
    if not np.isfinite(worst).any():
        raise InputError.of("play map", "has no usable pose", "another section")
    x, y = (play.data[name].to_numpy() for name in names)
    units = [play.data[name].attrs["units"] for name in names]
    panels = [(name, values) for name, values in zip(play.play, each, strict=True)] + [
        ("all, worst case", worst)
    ]
    columns = min(len(panels), MOST_COLUMNS)
    rows = -(-len(panels) // columns)
    aspect = (
        float(np.clip(np.ptp(y) / max(np.ptp(x), 1e-12), 0.6, 1.5)) if units[0] == units[1] else 0.9
    )
    height = 1.1 + rows * (0.72 * PANEL * aspect + 0.9)
    figure = blank(columns * PANEL + 1.0, height, title, play.space.held, left=0.03)
    low, high = float(np.nanmin(each)), float(np.nanmax(each))
    grid = figure.add_gridspec(
        rows,
        columns,
        left=0.08,
        right=0.94,
        top=1 - 1.05 / height,
        bottom=0.6 / height,
        wspace=0.5,
        hspace=0.5,
    )
    for k, (name, values) in enumerate(panels):
        axes = figure.add_subplot(grid[k // columns, k % columns])
        clean(axes)
        axes.grid(False)
        is_all = k == len(panels) - 1
        shown = axes.pcolormesh(x, y, values.T, cmap="viridis", shading="nearest", rasterized=True)
        if not is_all:
            shown.set_clim(low, high)
        if np.ptp(values[np.isfinite(values)]) > 0:
            lines = axes.contour(x, y, values.T, levels=5, colors="white", linewidths=0.6)
            axes.clabel(lines, fontsize=SMALL - 1.5, fmt="%.3g", manual=_inner_points(lines, x, y))
        if units[0] == units[1]:
            axes.set_aspect("equal")
        usable = values[np.isfinite(values)]
        text = (
            f"{name}\n{usable.min():.3g} to {usable.max():.3g} um, median {np.median(usable):.3g}"
        )
        axes.set_title(text, fontsize=SMALL, color=TEXT, loc="left")
        axes.set_xlabel(f"{names[0]} [{units[0]}]", fontsize=NORMAL, color=TEXT)
        if k % columns == 0:
            axes.set_ylabel(f"{names[1]} [{units[1]}]", fontsize=NORMAL, color=TEXT)
        bar = figure.colorbar(shown, cax=axes.inset_axes((1.04, 0.0, 0.05, 1.0)))
        bar.ax.tick_params(labelsize=SMALL - 1)
    return figure


def _inner_points(lines: QuadContourSet, x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """The point of each line that is farthest from the panel's edges, where its label is whole."""
    low, span = np.array([x.min(), y.min()]), np.array([np.ptp(x), np.ptp(y)])
    points = []
    for segments in lines.allsegs:
        vertices = np.concatenate([*segments, np.empty((0, 2))])
        share = (vertices - low) / span
        inside = np.minimum(share, 1.0 - share).min(axis=1, initial=1.0)
        if len(vertices) and inside.max() > INSIDE:
            points.append(tuple(vertices[inside.argmax()]))
    return points
