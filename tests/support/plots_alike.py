"""Whether Matplotlib and Plotly draw the same traces, points and labels of a plot."""

from __future__ import annotations

import html
from typing import Any

from matplotlib.figure import Figure

from tauloop.display import Plot, draw_plot
from tauloop.viewer.pages import plotly_renderer


def in_matplotlib(plot: Plot) -> tuple[dict[str, int], tuple[str, str]]:
    """Points of each named trace, and the labels of the axes."""
    options = {"projection": "polar"} if plot.polar else {}
    axes: Any = Figure().add_subplot(**options)
    draw_plot(axes, plot)
    traces = {line.get_label(): len(line.get_xdata()) for line in axes.lines}
    traces |= {bars.get_label(): len(bars) for bars in axes.containers if hasattr(bars, "patches")}
    names = {trace.name for trace in plot.traces}
    named = {name: count for name, count in traces.items() if name in names}
    labels = axes.get_xlabel(), axes.get_ylabel()
    return named, labels[::-1] if plot.sideways else labels


def in_plotly(plot: Plot) -> tuple[dict[str, int], tuple[str, str]]:
    """The same in the figure of a page."""
    drawn = plotly_renderer.figure(plot)
    names = {trace.name for trace in plot.traces}
    traces = {}
    for item in drawn["data"]:
        name = html.unescape(item["name"])
        if name in names and item.get("fill") != "toself":
            traces[name] = len(item.get("y", item.get("r")))
    if plot.polar:
        return traces, ("", "")
    across, up = (drawn["layout"][axis]["title"] for axis in ("xaxis", "yaxis"))
    if plot.sideways:
        return traces, (plot.x, html.unescape(across["text"]))
    return traces, (html.unescape(across["text"]), html.unescape(up["text"]))


def require_alike(plot: Plot) -> None:
    drawn, labels = in_matplotlib(plot)
    assert drawn == in_plotly(plot)[0] == {trace.name: len(trace.y) for trace in plot.traces}
    if not plot.polar:
        assert labels == in_plotly(plot)[1] == (plot.x, plot.y)
