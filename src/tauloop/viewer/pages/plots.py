"""Plots of a record as figures of Plotly: plain data, every word in them escaped."""

from __future__ import annotations

import html
from itertools import count
from typing import Any

from tauloop.display.figures import COLOURS, FAINT, MEASURED, PREDICTED, RESIDUAL, TEXT
from tauloop.display.pieces import Plot, PlotTrace

#: Colour, width and dashes of traces whose meaning is fixed; lightness differs, so that they
#: survive grey printing.
_FIXED: dict[str, dict[str, Any]] = {
    "measured": {"color": MEASURED, "width": 3.5},
    "predicted": {"color": PREDICTED, "width": 1.2},
    "residual": {"color": RESIDUAL, "width": 1.0},
    "limit": {"color": RESIDUAL, "width": 1.2, "dash": "dash"},
}
#: Likewise of points: size and symbol.
_POINTS: dict[str, dict[str, Any]] = {
    "before": {"color": MEASURED, "size": 9, "symbol": "circle"},
    "after": {"color": PREDICTED, "size": 6, "symbol": "diamond"},
}
#: Of the others: those of one colour differ by their dashes too.
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "diamond-open", "square", "triangle-up-open", "x", "cross")
#: Height of a plot, and of one row of names at the side, pixels.
HEIGHT, ROW = 290, 22
#: Widest margin for names at the side, characters.
NAMES = 44


def figure(plot: Plot) -> dict[str, Any]:
    """Data and layout of Plotly."""
    numbers = count()
    data = [_trace(trace, plot, numbers) for trace in plot.traces]
    if plot.grid:
        data.insert(0, _map(plot))
    x, y = _axis(plot.x, plot.log_x), _axis(plot.y, plot.log_y)
    if plot.y_range:
        y["range"] = list(plot.y_range)
    height = HEIGHT
    if plot.sideways:
        names = [str(name) for trace in plot.traces for name in trace.x]
        height = max(200, 110 + ROW * len(dict.fromkeys(names)))
        x, y = (
            y,
            x
            | {
                "autorange": "reversed",
                "type": "category",
                "title": None,
                "automargin": True,
                "dtick": 1,
            },
        )
    elif any(isinstance(value, str) for trace in plot.traces for value in trace.x):
        x["type"] = "category"
    if plot.equal:
        y |= {"scaleanchor": "x"}
        height = round(1.6 * HEIGHT)
    layout = {
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
        "showlegend": len(plot.traces) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "font": {"size": 11}},
        "hovermode": "closest" if plot.sideways or plot.grid else "x unified",
        "barmode": "group",
        "xaxis": x,
        "yaxis": y,
    }
    return {"data": data, "layout": layout}


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


def _trace(trace: PlotTrace, plot: Plot, numbers: count[int]) -> dict[str, Any]:
    words = [_text(value) if isinstance(value, str) else value for value in trace.x]
    across, up = (trace.y, words) if plot.sideways else (words, trace.y)
    base: dict[str, Any] = {"name": _text(trace.name), "x": list(across), "y": list(up)}
    fixed = _FIXED.get(trace.look) or _POINTS.get(trace.look)
    number = 0 if fixed else next(numbers)
    colour = fixed["color"] if fixed else COLOURS[number % len(COLOURS)]
    if trace.deviation:
        bars = {
            "type": "data",
            "array": list(trace.deviation),
            "thickness": 1.6,
            "width": 4,
            "color": colour,
        }
        base["error_x" if plot.sideways else "error_y"] = bars
    if trace.labels:
        base |= {"text": [_text(label) for label in trace.labels], "textposition": "none"}
    if trace.look == "bars":
        return base | {
            "type": "bar",
            "orientation": "h" if plot.sideways else "v",
            "marker": {"color": colour, "line": {"color": "#fff", "width": 1}},
        }
    if trace.look in ("points", *_POINTS) or plot.sideways:
        marker = fixed or {"color": colour, "size": 7, "symbol": _SYMBOLS[number % len(_SYMBOLS)]}
        drawn: dict[str, Any] = {"mode": "markers", "marker": marker}
    elif trace.look == "thin":
        drawn = {"mode": "lines", "line": {"color": colour, "width": 0.8}, "opacity": 0.75}
    else:
        line = fixed or {"color": colour, "width": 1.6, "dash": _DASHES[number % len(_DASHES)]}
        drawn = {"mode": "lines", "line": line | ({"shape": "hv"} if trace.look == "step" else {})}
    return base | {"type": "scatter", "connectgaps": False, **drawn}


def _map(plot: Plot) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "x": list(plot.grid_x),
        "y": list(plot.grid_y),
        "z": [list(row) for row in plot.grid],
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": _text(plot.grid_name), "side": "right"}, "thickness": 14},
        "hoverongaps": False,
        "name": "",
    }


def _text(text: str) -> str:
    """A word as Plotly shows it: it reads tags, among them links."""
    return html.escape(text, quote=False)
