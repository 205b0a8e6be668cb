"""A workspace on a page: the machine along its border, the section by its measures, and why poses are left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tauloop.display.figures import in_degrees
from tauloop.display.pieces import STATES, Piece, Plot, PlotTrace, by_name, motion, rounded
from tauloop.display.workspace_figure import MEASURES, sampled_measure
from tauloop.kinematics.singularities import KINDS
from tauloop.kinematics.workspaces.map import Reason, Workspace

#: Values of a map along its longer direction: what a screen shows.
FINEST = 120
#: How long the machine takes along the border, s.
WALK = 12.0


def workspace_page(workspace: Workspace) -> Iterator[Piece]:
    """Measures over the first two positions; others that vary stay at their value next to the reference."""
    q = workspace.walk(STATES)
    section = workspace.section()
    title = (
        "The machine along the line"
        if section is None
        else "The machine along the border of its workspace"
    )
    yield from motion(workspace.model, np.linspace(0.0, WALK, len(q)), q, title)
    if section is not None:
        for measure, label in MEASURES.items():
            if np.isfinite(section.figures[measure][section.usable]).any():
                yield _map(section, measure, label)
    else:
        yield _line(workspace)
    counts = {reason.text: int((workspace.reason == reason).sum()) for reason in Reason}
    kept = {text: count for text, count in counts.items() if count}
    yield by_name(
        "Why poses are left out", "poses", kept, {"poses": list(kept.values())}, look="bars"
    )


def _line(workspace: Workspace) -> Plot:
    """Distances to singularities along the only position that varies."""
    k = int(np.argmax([len(axis) for axis in workspace.axes.values()]))
    name, axis = list(workspace.axes.items())[k]
    shown, x = in_degrees(workspace.units[k], axis)
    measures = {
        kind: np.where(workspace.usable, workspace.figures[kind], np.nan).ravel() for kind in KINDS
    }
    return Plot(
        title="Usable poses: distance to singularities",
        x=f"{name} [{shown}]",
        y="distance [1]",
        traces=tuple(
            PlotTrace(name=kind, x=rounded(x), y=rounded(values))
            for kind, values in measures.items()
        ),
        note="; ".join(filter(None, (workspace.held, f"usable {workspace.size_text}"))),
    )


def _map(section: Workspace, measure: str, label: str) -> Plot:
    x, y, _, values = sampled_measure(section, measure, FINEST)
    scales = [180.0 / np.pi if unit == "rad" else 1.0 for unit in section.units]
    shown = ["deg" if unit == "rad" else unit for unit in section.units]
    names = list(section.axes)
    gap = np.full((1, 2), np.nan)  # between two lines
    lines = (
        np.concatenate([gap, *(part for line, _ in section.border.lines for part in (line, gap))])
        * scales
    )
    reference = np.array(section.reference) * scales
    return Plot(
        title=f"Usable poses: {label.rpartition(' [')[0]}",
        x=f"{names[0]} [{shown[0]}]",
        y=f"{names[1]} [{shown[1]}]",
        traces=(
            PlotTrace(name="border", x=rounded(lines[:, 0]), y=rounded(lines[:, 1])),
            PlotTrace(
                name="reference pose",
                x=rounded(reference[:1]),
                y=rounded(reference[1:]),
                look="points",
            ),
        ),
        grid=tuple(map(rounded, values.T)),
        grid_x=rounded(scales[0] * x),
        grid_y=rounded(scales[1] * y),
        grid_name=f"[{label.rpartition(' [')[2]}",
        equal=section.units[0] == section.units[1],
        note="; ".join(filter(None, (section.held, f"usable {section.size_text}"))),
    )
