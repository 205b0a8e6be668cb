"""Appearance of a plot's traces, independent of the drawing library."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tauloop.common.records import dataclass
from tauloop.display.palette import COLORS, MEASURED, PREDICTED, RESIDUAL, TEXT
from tauloop.display.pieces import Plot, PlotTrace

#: Dashes and markers for traces whose colors repeat.
DASHES = ("solid", "dash", "dot", "dashdot")
MARKERS = ("circle", "diamond-open", "square", "triangle-up-open", "x", "cross")
#: Lines closer than this fraction of the range of a plot's lines cover each other.
COVERING_DISTANCE = 5e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Appearance:
    """Appearance of a trace.

    Attributes:
        color: color of lines and markers.
        width: width of the line, points; 0 without a line.
        dash: one of `DASHES`.
        marker: one of `MARKERS`, or ``triangle-down``, ``circle-open`` or ``plus``; "" for none.
        size: size of the marker, points.
        opacity: opacity from 0 to 1.
    """

    color: str = ""
    width: float = 0.0
    dash: str = "solid"
    marker: str = ""
    size: float = 5.0
    opacity: float = 1.0


#: Styles whose colors have a meaning. The colors differ in lightness, for gray prints.
FIXED = {
    "measured": Appearance(color=MEASURED, width=2.4),
    "predicted": Appearance(color=PREDICTED, width=0.9),
    "residual": Appearance(color=RESIDUAL, width=0.8),
    "limit": Appearance(color=RESIDUAL, width=0.9, dash="dash"),
    "before": Appearance(color=MEASURED, marker="circle", size=6.0),
    "after": Appearance(color=PREDICTED, marker="diamond", size=4.0),
    "dots": Appearance(color="#b4bac4", marker="circle", size=2.5),
    "marks": Appearance(color="#8a9099", marker="triangle-down", size=5.0),
    "rings": Appearance(color=RESIDUAL, marker="circle-open", size=10.0),
    "cross": Appearance(color=TEXT, marker="plus", size=9.0),
}
#: Styles that use the next color of the palette.
_PALETTE = {
    "line": Appearance(width=1.2),
    "thin": Appearance(width=0.6, opacity=0.75),
    "dotted": Appearance(width=0.9, dash="dot"),
    "step": Appearance(width=1.1),
    "band": Appearance(width=1.1),
    "linked": Appearance(width=1.2, marker="circle", size=4.0),
    "points": Appearance(),
    "bars": Appearance(),
}


def appearances(plot: Plot) -> list[Appearance]:
    """Return the appearance of each trace of a plot.

    A line that covers an earlier line is dashed, so that both are visible.
    """
    number = 0
    result = []
    for trace, covered_count in zip(plot.traces, _covered_lines(plot), strict=True):
        appearance = _appearance(trace, number, sideways=plot.sideways)
        if appearance.width > 0.0 and appearance.dash == "solid":
            appearance = replace(appearance, dash=DASHES[covered_count % len(DASHES)])
        result.append(appearance)
        number += trace.style not in FIXED and not trace.color
    return result


def _covered_lines(plot: Plot) -> list[int]:
    """Return the number of earlier lines that each trace covers along its whole length."""
    lines = [_points(trace) if trace.style == "line" else None for trace in plot.traces]
    values = [line[1] for line in lines if line is not None]
    tolerance = COVERING_DISTANCE * float(np.ptp(np.concatenate(values))) if values else 0.0
    covered = []
    for index, line in enumerate(lines):
        earlier = [other for other in lines[:index] if other is not None]
        covered.append(
            0 if line is None else sum(_coincide(line, other, tolerance) for other in earlier)
        )
    return covered


def _points(trace: PlotTrace) -> np.ndarray | None:
    """Return the points (2, N) of a line; None if it has gaps or texts, or if x decreases."""
    if len(trace.x) < 2 or not all(
        isinstance(value, float | int) for value in (*trace.x, *trace.y)
    ):
        return None
    points = np.array([trace.x, trace.y], dtype=float)
    return points if (np.diff(points[0]) >= 0.0).all() else None


def _coincide(line: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Return whether two lines (2, N) have the same range of x and agree within a tolerance."""
    if (line[0, [0, -1]] != other[0, [0, -1]]).any():
        return False
    return bool(
        (np.abs(np.interp(line[0], *other) - line[1]) <= tolerance).all()
        and (np.abs(np.interp(other[0], *line) - other[1]) <= tolerance).all()
    )


def _appearance(trace: PlotTrace, number: int, *, sideways: bool) -> Appearance:
    """Return the appearance of a trace; `number` counts earlier traces with palette colors."""
    if trace.style in FIXED:
        fixed = FIXED[trace.style]
        return replace(fixed, color=trace.color) if trace.color else fixed
    base = replace(_PALETTE[trace.style], color=trace.color or COLORS[number % len(COLORS)])
    if trace.style == "points" or (sideways and trace.style != "bars"):
        return replace(base, width=0.0, marker=MARKERS[number % len(MARKERS)])
    if trace.style == "line" and not trace.color:
        return replace(base, dash=DASHES[number // len(COLORS) % len(DASHES)])
    return base
