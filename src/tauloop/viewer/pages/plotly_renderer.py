"""Plots as figures for Plotly: plain data with escaped texts."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator
from typing import Any

from tauloop.display.palette import FAINT, TEXT
from tauloop.display.pieces import Plot, PlotSpan, PlotTrace
from tauloop.display.renderers.appearance import Appearance, appearances

#: Pixels per point.
PIXELS = 4 / 3
_MARKERS = {"plus": "cross-thin", "triangle-down": "triangle-down"}

#: Height of a plot, pixels.
FIGURE_HEIGHT = 290
#: Height of one row of names in a sideways plot, pixels.
ROW_HEIGHT = 22
#: Number of decades of a logarithmic axis from which on only the digits 1, 2 and 5 have labels.
MIN_SPARSE_DECADES = 0.7
#: Number of decades of a logarithmic axis from which on only powers of ten have labels.
FEW_DECADES = 2.5


def figure(plot: Plot) -> dict[str, Any]:
    """Return the data and the layout of a plot for Plotly."""
    data = [*_maps(plot)]
    for trace, appearance in zip(plot.traces, appearances(plot), strict=True):
        if trace.style == "band" and trace.deviation:
            data.append(_band(trace, appearance))
        data.append(_trace(trace, appearance, plot))
    data += [_class_entry(item.name, item.color) for item in plot.classes]
    layout = _layout(plot)
    layout["showlegend"] = _legend_entries(plot) > 1
    return {"data": data, "layout": layout}


def _legend_entries(plot: Plot) -> int:
    """Return the number of entries of a plot's legend."""
    spans = {span.name for span in plot.spans}
    return len(plot.traces) + len(plot.classes) + len(spans)


def _layout(plot: Plot) -> dict[str, Any]:
    x, y = _axis(plot.x, plot.log_x), _axis(plot.y, plot.log_y)
    if plot.y_range and plot.log_y is False:
        y["range"] = list(plot.y_range)
    height = FIGURE_HEIGHT
    if plot.sideways:
        names = [str(name) for trace in plot.traces for name in trace.x]
        height = max(200, 110 + ROW_HEIGHT * len(dict.fromkeys(names)))
        category = {
            "autorange": "reversed",
            "type": "category",
            "title": None,
            "automargin": True,
            "dtick": 1,
        }
        x, y = y, x | category
    elif any(isinstance(value, str) for trace in plot.traces for value in trace.x):
        x["type"] = "category"
    if any(isinstance(value, str) for value in plot.grid_y):
        y |= {"autorange": "reversed", "type": "category"}
    if plot.log_y and _decades(plot) >= MIN_SPARSE_DECADES:
        # Labels of all digits would overlap; D2 labels only 1, 2 and 5.
        values = x if plot.sideways else y
        values["dtick"] = "D2" if _decades(plot) < FEW_DECADES else 1
    if plot.equal:
        y |= {"scaleanchor": "x"}
    if plot.equal or plot.grid or plot.polar:
        height = round(1.6 * FIGURE_HEIGHT)
    layout: dict[str, Any] = {
        "height": height,
        "margin": {"l": 64, "r": 34, "t": 34, "b": 46},
        "modebar": {
            "orientation": "v",
            "bgcolor": "rgba(0,0,0,0)",
            "color": FAINT,
            "activecolor": TEXT,
        },
        "font": {
            "family": "system-ui, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
            "size": 12,
            "color": TEXT,
        },
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 11}},
        "hovermode": "closest" if plot.sideways or plot.grid or plot.polar else "x unified",
        "barmode": "overlay" if any(trace.base for trace in plot.traces) else "group",
        "shapes": [*_shapes(plot.spans)],
        "annotations": [_annotation(span) for span in plot.spans if span.label],
    }
    if plot.polar:
        radial = {"range": list(plot.y_range), "gridcolor": "#e8ebee", "tickfont": {"size": 10}}
        return layout | {"polar": {"radialaxis": radial, "angularaxis": {"gridcolor": "#e8ebee"}}}
    return layout | {"xaxis": x, "yaxis": y}


def _decades(plot: Plot) -> float:
    """Return the number of decades between the smallest and largest value of a plot."""
    values = [value for trace in plot.traces for value in trace.y if value is not None]
    positive = [value for value in values if value > 0.0]
    return math.log10(max(positive) / min(positive)) if positive else 0.0


def _axis(title: str, is_log: bool) -> dict[str, Any]:
    return {
        "title": {"text": _text(title), "font": {"size": 12}, "standoff": 8},
        "type": "log" if is_log else "-",
        "gridcolor": "#e8ebee",
        "linecolor": FAINT,
        "zerolinecolor": FAINT,
        "ticks": "outside",
        "tickcolor": FAINT,
        "ticklen": 3,
        "exponentformat": "power",
        "minexponent": 4,
        "tickformat": "~g" if is_log else "",
        "automargin": True,
        "hoverformat": ".5g",
    }


def _trace(trace: PlotTrace, appearance: Appearance, plot: Plot) -> dict[str, Any]:
    texts = _texts(trace.x)
    horizontal, vertical = (trace.y, texts) if plot.sideways else (texts, trace.y)
    base: dict[str, Any] = {
        "name": _text(trace.name),
        "x": list(horizontal),
        "y": list(vertical),
    }
    if plot.polar:
        base = {"name": base["name"], "theta": list(trace.x), "r": list(trace.y)}
    if trace.deviation and trace.style != "band":
        bars = {
            "type": "data",
            "array": list(trace.deviation),
            "thickness": 1.6,
            "width": 4,
            "color": appearance.color,
        }
        base["error_x" if plot.sideways else "error_y"] = bars
    if trace.labels:
        base |= {"text": [_text(label) for label in trace.labels], "textposition": "none"}
    if trace.style == "bars":
        return base | _bars(trace, appearance, plot)
    modes = (("lines", appearance.width > 0), ("markers", bool(appearance.marker)))
    drawn: dict[str, Any] = {"mode": "+".join(mode for mode, is_used in modes if is_used)}
    if appearance.marker:
        size = PIXELS * appearance.size
        marker: dict[str, Any] = {
            "color": appearance.color,
            "size": size,
            "symbol": _MARKERS.get(appearance.marker, appearance.marker),
        }
        if appearance.marker == "plus":
            marker["line"] = {"color": appearance.color, "width": 2}
        drawn["marker"] = marker
    if appearance.width:
        shape = {"shape": "hv"} if trace.style == "step" else {}
        width = PIXELS * appearance.width
        drawn["line"] = {"color": appearance.color, "width": width, "dash": appearance.dash} | shape
    if appearance.opacity < 1:
        drawn["opacity"] = appearance.opacity
    trace_type = "scatterpolar" if plot.polar else "scatter"
    return base | {"type": trace_type, "connectgaps": False, **drawn}


def _bars(trace: PlotTrace, appearance: Appearance, plot: Plot) -> dict[str, Any]:
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h" if plot.sideways else "v",
        "marker": {"color": appearance.color, "line": {"color": "#fff", "width": 1}},
    }
    if trace.base:
        ends = zip(trace.y, trace.base, strict=True)
        lengths = [None if y is None or start is None else y - start for y, start in ends]
        bars |= {"base": list(trace.base), "x" if plot.sideways else "y": lengths}
    return bars


def _band(trace: PlotTrace, appearance: Appearance) -> dict[str, Any]:
    """Return the area between the values plus and minus their deviations."""
    points = [
        (x, y, half)
        for x, y, half in zip(trace.x, trace.y, trace.deviation, strict=True)
        if y is not None and half is not None
    ]
    upper = [y + half for _, y, half in points]
    lower = [y - half for _, y, half in points]
    x = [x for x, _, _ in points]
    return {
        "type": "scatter",
        "name": _text(trace.name),
        "x": [*x, *reversed(x)],
        "y": [*upper, *reversed(lower)],
        "mode": "lines",
        "line": {"width": 0, "color": appearance.color},
        "fill": "toself",
        "fillcolor": _transparent(appearance.color, 0.25),
        "showlegend": False,
        "hoverinfo": "skip",
    }


def _transparent(color: str, opacity: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _shapes(spans: tuple[PlotSpan, ...]) -> Iterator[dict[str, Any]]:
    """Yield the shaded ranges; the first of each name has an entry in the legend."""
    names = set[str]()
    for span in spans:
        value, other = ("y", "x") if span.across else ("x", "y")
        yield {
            "type": "rect",
            "layer": "below",
            f"{value}0": span.start,
            f"{value}1": span.end,
            f"{other}ref": f"{other} domain",
            f"{other}0": 0,
            f"{other}1": 1,
            "fillcolor": span.color,
            "opacity": span.opacity,
            "line": {"width": 0},
            "name": _text(span.name),
            "showlegend": span.name not in names,
            "legendgroup": _text(span.name),
        }
        names.add(span.name)


def _annotation(span: PlotSpan) -> dict[str, Any]:
    return {
        "x": span.start,
        "y": 1,
        "yref": "y domain",
        "text": _text(span.label),
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "top",
        "font": {"size": 10},
    }


def _maps(plot: Plot) -> Iterator[dict[str, Any]]:
    """Yield the classes of a map, its values, and their contours."""
    axes = {"x": _texts(plot.grid_x), "y": _texts(plot.grid_y), "name": ""}
    if plot.class_grid:
        count = len(plot.classes)
        scale = []
        for k, item in enumerate(plot.classes):
            scale += [[k / count, item.color], [(k + 1) / count, item.color]]
        yield axes | {
            "type": "heatmap",
            "z": [list(row) for row in plot.class_grid],
            "colorscale": scale,
            "zmin": -0.5,
            "zmax": count - 0.5,
            "showscale": False,
            "hoverinfo": "skip",
        }
    if plot.grid:
        values = axes | {"z": [list(row) for row in plot.grid]}
        limits = dict(zip(("zmin", "zmax"), plot.grid_range, strict=False))
        title = {"text": _text(plot.grid_name), "side": "right"}
        yield (
            values
            | limits
            | {
                "type": "heatmap",
                "colorscale": "Viridis",
                "colorbar": {"title": title, "thickness": 14},
                "hoverongaps": False,
            }
        )
        if plot.contours:
            yield values | {
                "type": "contour",
                "colorscale": [[0, "#fff"], [1, "#fff"]],
                "contours": {
                    "coloring": "lines",
                    "showlabels": True,
                    "labelfont": {"color": "#fff"},
                },
                "ncontours": 6,
                "showscale": False,
                "hoverinfo": "skip",
            }


def _class_entry(name: str, color: str) -> dict[str, Any]:
    """Return a trace without points, which adds an entry to the legend."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": _text(name),
        "x": [None],
        "y": [None],
        "marker": {"color": color, "symbol": "square", "size": 10},
    }


def _texts(values: Iterable[Any]) -> list[Any]:
    """Return numbers as they are, and texts escaped."""
    return [_text(value) if isinstance(value, str) else value for value in values]


def _text(text: str) -> str:
    """Return an escaped text: Plotly interprets tags, including links."""
    return html.escape(text, quote=False)
