"""A workspace on a page: the section that holds the reference pose, by its measures, and why poses are left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tauloop.kinematics.workspace_map import Reason, Workspace
from tauloop.report.pieces import Piece, Plot, PlotTrace, rounded
from tauloop.report.workspace_figure import MEASURES

#: Values of a map at most in each direction: what a screen shows.
FINEST = 160


def workspace_page(workspace: Workspace) -> Iterator[Piece]:
    """Measures over the first two positions; others that vary stay at their value next to the reference."""
    names = tuple(workspace.axes)
    if len(names) >= 2:
        for measure, label in MEASURES.items():
            if np.isfinite(workspace.figures[measure][workspace.usable]).any():
                yield _map(workspace, measure, label)
    counts = {reason.text: int((workspace.reason == reason).sum()) for reason in Reason}
    kept = {text: count for text, count in counts.items() if count}
    yield Plot(
        title="Why poses are left out",
        x="",
        y="poses",
        traces=(PlotTrace(name="poses", x=tuple(kept), y=rounded(list(kept.values())), look="bars"),),
        sideways=True,
    )


def _map(workspace: Workspace, measure: str, label: str) -> Plot:
    first, second, *others = workspace.axes.items()
    steps = [-(-len(values) // FINEST) for _, values in (first, second)]
    place = [int(np.abs(values - at).argmin()) for (_, values), at in zip(others, workspace.reference[2:], strict=True)]
    index: tuple[Any, ...] = (slice(None, None, steps[0]), slice(None, None, steps[1]), *place)
    values = np.where(workspace.usable, workspace.figures[measure], np.nan)[index]
    scales = [180.0 / np.pi if unit == "rad" else 1.0 for unit in workspace.units]
    shown = ["deg" if unit == "rad" else unit for unit in workspace.units]
    axes = [
        rounded(scale * values[::step])
        for (_, values), scale, step in zip((first, second), scales[:2], steps, strict=True)
    ]
    at = ", ".join(
        f"{name} = {scales[k + 2] * axis[place[k]]:.4g} {shown[k + 2]}" for k, (name, axis) in enumerate(others)
    )
    x, y = (scale * at for scale, at in zip(scales, workspace.reference[:2], strict=False))
    return Plot(
        title=f"Usable poses: {label.rpartition(' [')[0]}",
        x=f"{first[0]} [{shown[0]}]",
        y=f"{second[0]} [{shown[1]}]",
        traces=(PlotTrace(name="reference pose", x=rounded([x]), y=rounded([y]), look="points"),),
        grid=tuple(map(rounded, values.T)),
        grid_x=axes[0],
        grid_y=axes[1],
        grid_name=f"[{label.rpartition(' [')[2]}",
        equal=workspace.units[0] == workspace.units[1],
        note=", ".join(filter(None, (workspace.held, at))),
    )
