"""Drawings of plots with Matplotlib."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.display.palette import FAINT, LARGE, NORMAL, SMALL, TEXT
from tauloop.display.pieces import Paragraph, Picture, Plot, PlotSpan, PlotTrace
from tauloop.display.renderers.appearance import Appearance, appearances
from tauloop.display.renderers.figure_style import blank, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from tauloop.display.pieces import MotionScene, Table

#: Width of a figure with one column of plots, inches.
FIGURE_WIDTH = 9.5
#: Width of a figure with several columns, inches.
WIDE_FIGURE_WIDTH = 14.0
#: Width of each of several maps, inches.
MAP_WIDTH = 3.9
#: Height of a plot over time, inches.
PLOT_HEIGHT = 2.1
#: Height of a plot that is not over time, inches.
TALL_PLOT_HEIGHT = 2.8
#: Height of a map, inches.
MAP_HEIGHT = 5.4
#: Height of a row of names, inches.
ROW_HEIGHT = 0.2
#: Height of the frame around rows of names, inches.
FRAME_HEIGHT = 0.8
#: Height of a line of text or of an entry of a legend, inches.
LINE_HEIGHT = 0.18
#: More plots than this are drawn in two columns.
MAX_PLOTS_IN_COLUMN = 4
#: More maps than this are drawn in several rows.
MAX_MAPS_IN_ROW = 4
#: Maximum number of characters of a name at an axis; longer names are cut.
MAX_LABEL_LENGTH = 60
#: A logarithmic axis over fewer decades than this has plain numbers at 1, 2 and 5.
FEW_DECADES = 2.5
#: Offset of a note from the axes, below the numbers and the name of the axis, points.
NOTE_OFFSET = -30.0
#: Offset of the legend of a map from the axes, points.
LEGEND_OFFSET = -26.0
#: Plots are next to each other if their heights differ by less than this ratio.
MAX_HEIGHT_RATIO = 1.6
#: Number of characters of a title or note in an inch.
CHARACTERS_PER_INCH = 14.5
#: Maximum number of entries next to each other in a legend below a map.
LEGEND_COLUMNS = 3
#: Largest total number of characters of entries next to each other.
LEGEND_CHARACTERS = 90

#: Styles of lines that reach from one side of the axes to the other.
FULL_WIDTH_STYLES = {
    "line",
    "thin",
    "step",
    "band",
    "dotted",
    "marks",
    "measured",
    "predicted",
    "residual",
    "limit",
}
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_MARKERS = {
    "circle": "o",
    "circle-open": "o",
    "diamond": "D",
    "diamond-open": "D",
    "square": "s",
    "triangle-up-open": "^",
    "triangle-down": "v",
    "x": "x",
    "cross": "P",
    "plus": "+",
}


def plots_figure(
    title: str,
    pieces: Iterable[Paragraph | Table | Plot | MotionScene | Picture],
    columns: int | None = None,
) -> Figure:
    """Return a figure of plots, with paragraphs below its heading.

    Args:
        title: heading.
        pieces: the plots and paragraphs of a result; other pieces are ignored.
        columns: number of columns; default: a number that is easy to read.
    """
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    all_pieces = list(pieces)
    plots = [piece for piece in all_pieces if isinstance(piece, Plot)]
    are_maps = all(plot.grid for plot in plots)
    if columns is None:
        columns = 1 if len(plots) <= MAX_PLOTS_IN_COLUMN else 2
        if are_maps:
            columns = min(len(plots), MAX_MAPS_IN_ROW)
    width = FIGURE_WIDTH if columns == 1 else WIDE_FIGURE_WIDTH
    if are_maps and columns > 1:
        width = columns * MAP_WIDTH + 0.6
    texts = [piece.text for piece in all_pieces if isinstance(piece, Paragraph)]
    summary = "\n".join(textwrap.fill(text, int(CHARACTERS_PER_INCH * width)) for text in texts)
    rows = _rows(plots, columns, width / columns)
    lines = summary.count("\n") + 1 if summary else 0
    total = sum(_row_heights(rows, columns, width)) + 0.45 + LINE_HEIGHT * lines
    figure = blank(width, total, layout=ConstrainedLayoutEngine(h_pad=0.07, hspace=0.02))
    figure.suptitle(
        title + "\n" * lines,
        fontsize=LARGE,
        fontweight="bold",
        color=TEXT,
        x=0.01,
        ha="left",
        parse_math=False,
    )
    figure.text(0.01, 1 - 0.34 / total, summary, fontsize=NORMAL, color=TEXT, va="top")
    # Names at the left of a plot would push the plots above and below it to the right.
    blocks = [list(block) for _, block in groupby(rows, lambda row: row[0].sideways)]
    sizes = [sum(_row_heights(block, columns, width)) for block in blocks]
    outer = figure.add_gridspec(len(blocks), 1, height_ratios=sizes)
    first_axes: dict[str, Any] = {}
    for number, block in enumerate(blocks):
        _draw_block(figure, outer[number, 0], block, columns, width, first_axes)
    return figure


def _row_heights(rows: Sequence[list[Plot]], columns: int, width: float) -> list[float]:
    """Return the heights of rows of plots in a figure of a width, inches."""
    return [_row_height(row, _plot_width(row, columns, width)) for row in rows]


def _row_height(row: list[Plot], width: float) -> float:
    """Return the height of the highest plot in a row, inches."""
    return max(_height(plot, width) for plot in row)


def _plot_width(row: list[Plot], columns: int, width: float) -> float:
    """Return the width of each plot of a row, inches; a single plot spans both of two columns."""
    is_spanning = columns == 2 and len(row) == 1
    return width if is_spanning else width / columns


def _draw_block(
    figure: Figure,
    pane: SubplotSpec,
    rows: Sequence[list[Plot]],
    columns: int,
    width: float,
    first_axes: dict[str, Any],
) -> None:
    """Draw rows of plots whose axes are aligned.

    Args:
        figure: the figure.
        pane: the part of the figure for these rows.
        rows: the plots.
        columns: number of columns.
        width: width of the figure, inches.
        first_axes: the first axes over time by the text of their x axis, which later axes share.
    """
    heights = _row_heights(rows, columns, width)
    grid = pane.subgridspec(len(rows), columns, height_ratios=heights)
    for number, row in enumerate(rows):
        for column, plot in enumerate(row):
            is_spanning = columns == 2 and len(row) == 1
            cell = grid[number, :] if is_spanning else grid[number, column]
            options: dict[str, Any] = {"projection": "polar"} if plot.polar else {}
            axes = figure.add_subplot(cell, **options)
            draw_plot(axes, plot, _plot_width(row, columns, width))
            if plot.over_time:  # zooming one plot zooms all plots over time
                axes.sharex(first_axes.setdefault(plot.x, axes))


def _rows(plots: Sequence[Plot], columns: int, width: float) -> list[list[Plot]]:
    """Return the plots in rows; plots of very different heights are not next to each other."""
    rows: list[list[Plot]] = []
    for plot in plots:
        last = rows[-1] if rows else []
        heights = [_height(other, width) for other in (*last, plot)]
        has_same_form = bool(last) and plot.sideways is last[0].sideways
        if has_same_form and len(last) < columns and max(heights) < MAX_HEIGHT_RATIO * min(heights):
            last.append(plot)
        else:
            rows.append([plot])
    return rows


def _height(plot: Plot, width: float) -> float:
    """Return the height of a plot of a width, inches."""
    if plot.sideways:
        names = dict.fromkeys(value for trace in plot.traces for value in trace.x)
        return max(1.5, ROW_HEIGHT * len(names) + FRAME_HEIGHT)
    if plot.grid and plot.equal:
        x_range = float(np.ptp(_coordinates(plot.grid_x)))
        y_range = float(np.ptp(_coordinates(plot.grid_y)))
        aspect = float(np.clip(y_range / x_range if x_range else 1.0, 0.4, 1.6))
        map_width = width - 2.0 if width > MAP_WIDTH else 0.62 * width
        return map_width * aspect + 1.3
    if plot.equal:
        x, y = _all_numbers(plot, "x"), _all_numbers(plot, "y")
        aspect = float(np.ptp(y) / np.ptp(x)) if x.size and y.size and np.ptp(x) else 1.0
        return float(np.clip(0.7 * width * aspect + 1.0, PLOT_HEIGHT, MAP_HEIGHT))
    if plot.grid or plot.polar:
        return min(MAP_HEIGHT, 0.9 * width)
    height = PLOT_HEIGHT if plot.over_time else TALL_PLOT_HEIGHT
    entries = len(plot.traces) + len({span.name for span in plot.spans})
    return max(height, LINE_HEIGHT * entries + FRAME_HEIGHT) + (0.2 if plot.note else 0.0)


def draw_plot(axes: Any, plot: Plot, width: float | None = None) -> None:
    """Draw a plot into Matplotlib axes.

    Args:
        axes: Matplotlib axes, polar for a polar plot.
        plot: plot as data.
        width: width for the title and the note, inches; default: the width of the axes.
    """
    if not plot.polar:
        clean(axes)
    if width is None:
        width = axes.get_position().width * axes.get_figure(root=True).get_figwidth()
    _write_heading(axes, plot, max(int(CHARACTERS_PER_INCH * (width - 1.0)), 20))
    if plot.polar:
        _draw_polar(axes, plot)
        return
    if plot.grid or plot.class_grid:
        _draw_map(axes, plot)
    names = _name_positions(plot)
    bars = [trace for trace in plot.traces if trace.style == "bars"]
    for trace, appearance in zip(plot.traces, appearances(plot), strict=True):
        x = np.array([names[value] for value in trace.x]) if names else _numbers(trace.x)
        y = _numbers(trace.y)
        if trace.style == "bars":
            _draw_bars(axes, plot, trace, appearance, x, bars)
        else:
            _draw_line(axes, plot, trace, appearance, x, y)
    for span in plot.spans:
        _draw_span(axes, span, plot)
    _set_axes(axes, plot, names)
    _add_legend(axes, plot)


def _write_heading(axes: Any, plot: Plot, length: int) -> None:
    """Write the title, and the note above a map or below another plot, in lines of a length."""
    lines = textwrap.wrap(plot.note, length)
    is_above = bool(plot.grid or plot.class_grid)
    has_span_labels = any(span.label for span in plot.spans)
    lines_below_title = len(lines) if is_above else int(has_span_labels)
    title = "\n".join(textwrap.fill(line, length) for line in plot.title.split("\n"))
    pad = 6.0 + 11.0 * lines_below_title
    axes.set_title(title, fontsize=NORMAL, color=TEXT, loc="left", pad=pad, parse_math=False)
    if lines:
        axes.annotate(
            "\n".join(lines),
            (0.0, 1.0 if is_above else 0.0),
            xytext=(0.0, 4.0 if is_above else NOTE_OFFSET),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom" if is_above else "top",
            fontsize=SMALL,
            color=TEXT,
            parse_math=False,
        )


def _numbers(values: Sequence[Any]) -> np.ndarray:
    """Return numbers as an array, with NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _all_numbers(plot: Plot, name: str) -> np.ndarray:
    """Return the finite values of x or y of all traces."""
    parts = [_numbers(getattr(trace, name)) for trace in plot.traces]
    values = np.concatenate([np.empty(0), *parts])
    return values[np.isfinite(values)]


def _name_positions(plot: Plot) -> dict[Any, int]:
    """Return the position of each text of x; empty if x are numbers."""
    values = dict.fromkeys(value for trace in plot.traces for value in trace.x)
    has_texts = any(isinstance(value, str) for value in values)
    return {value: k for k, value in enumerate(values)} if has_texts else {}


def _style(appearance: Appearance) -> dict[str, Any]:
    """Return the options of Matplotlib's `plot` for an appearance."""
    marker = _MARKERS.get(appearance.marker, "")
    is_open = appearance.marker.endswith("-open")
    return {
        "color": appearance.color,
        "linewidth": appearance.width,
        "linestyle": _DASHES[appearance.dash] if appearance.width else "none",
        "marker": marker,
        "markersize": appearance.size,
        "markerfacecolor": "none" if is_open else appearance.color,
        "markeredgewidth": 1.0 if is_open or marker in "+x" else 0.0,
        "alpha": appearance.opacity,
    }


def _draw_line(
    axes: Any, plot: Plot, trace: PlotTrace, appearance: Appearance, x: np.ndarray, y: np.ndarray
) -> None:
    """Draw a line with its band or error bars."""
    style = _style(appearance) | {"label": trace.name}
    if len(x) == 1 and not style["marker"]:
        style |= {"marker": "o"}
    if trace.style == "step":
        style["drawstyle"] = "steps-post"
    if trace.style == "cross":  # a white rim, visible on every color of a map
        halo = style | {"color": "white", "markersize": appearance.size + 2, "label": "_halo"}
        axes.plot(x, y, **halo | {"markeredgewidth": 3.0})
    points = (y, x) if plot.sideways else (x, y)
    deviation = _numbers(trace.deviation)
    if trace.style == "band" and deviation.size:
        axes.fill_between(
            x, y - deviation, y + deviation, color=appearance.color, alpha=0.25, linewidth=0
        )
    elif deviation.size:
        bars = {"fmt": "none", "ecolor": appearance.color, "elinewidth": 1.2, "capsize": 2.0}
        errors = {"xerr": deviation} if plot.sideways else {"yerr": deviation}
        axes.errorbar(*points, **errors, **bars)
    axes.plot(*points, **style)


def _draw_bars(
    axes: Any,
    plot: Plot,
    trace: PlotTrace,
    appearance: Appearance,
    x: np.ndarray,
    bars: Sequence[PlotTrace],
) -> None:
    """Draw bars next to the bars of other traces, or in the same row if they have start values."""
    y, base = _numbers(trace.y), _numbers(trace.base)
    count = 1 if base.size else len(bars)
    height = 0.8 / count
    offset = 0.0 if base.size else (bars.index(trace) - (count - 1) / 2) * height
    centers = x + offset
    start = base if base.size else 0.0
    style = {"color": appearance.color, "label": trace.name}
    if plot.sideways:
        axes.barh(centers, y - start, left=start, height=0.8 * height, **style)
    else:
        axes.bar(centers, y - start, bottom=start, width=0.8 * height, **style)


def _draw_span(axes: Any, span: PlotSpan, plot: Plot) -> None:
    """Shade a span of an axis; spans of the same name have a single legend entry."""
    is_first = next(other for other in plot.spans if other.name == span.name) is span
    label = span.name if is_first else "_again"
    shade = axes.axhspan if span.across else axes.axvspan
    shade(
        span.start,
        span.end,
        color=span.color,
        alpha=span.opacity,
        linewidth=0,
        label=label,
        zorder=0.5,
    )
    if span.label:
        axes.text(
            span.start,
            1.01,
            span.label,
            transform=axes.get_xaxis_transform(),
            fontsize=SMALL,
            color=TEXT,
        )


def _draw_map(axes: Any, plot: Plot) -> None:
    """Draw a map of values, of classes, or of both, with contours."""
    from matplotlib.colors import ListedColormap

    axes.grid(False)
    x, y = _coordinates(plot.grid_x), _coordinates(plot.grid_y)
    options: dict[str, Any] = {"shading": "nearest", "rasterized": True}
    if plot.class_grid:
        values = np.array([_numbers(row) for row in plot.class_grid])
        colors = ListedColormap([item.color for item in plot.classes])
        axes.pcolormesh(
            x, y, values, cmap=colors, vmin=-0.5, vmax=len(plot.classes) - 0.5, **options
        )
    if plot.grid:
        values = np.array([_numbers(row) for row in plot.grid])
        low, high = plot.grid_range or (None, None)
        image = axes.pcolormesh(x, y, values, cmap="viridis", vmin=low, vmax=high, **options)
        finite = values[np.isfinite(values)]
        if finite.size:
            bar = axes.figure.colorbar(image, cax=axes.inset_axes((1.03, 0.0, 0.04, 1.0)))
            bar.set_label(plot.grid_name, fontsize=SMALL, color=TEXT)
            bar.ax.tick_params(labelsize=SMALL)
        if plot.contours and finite.size and np.ptp(finite) > 0:
            lines = axes.contour(x, y, values, levels=5, colors="white", linewidths=0.6)
            points = _label_points(lines, x, y)
            axes.clabel(lines, fontsize=SMALL - 1.5, fmt="%.3g", manual=points)


def _coordinates(values: Sequence[Any]) -> np.ndarray:
    """Return numbers as they are, and texts as their positions 0, 1, ..."""
    if any(isinstance(value, str) for value in values):
        return np.arange(float(len(values)))
    return _numbers(values)


def _set_names_of_map(axes: Any, plot: Plot) -> None:
    """Put texts at the axes of a map."""
    for axis, values in ((axes.xaxis, plot.grid_x), (axes.yaxis, plot.grid_y)):
        if any(isinstance(value, str) for value in values):
            axis.set_ticks(np.arange(len(values)), values, fontsize=SMALL, parse_math=False)
            if axis is axes.yaxis:
                axes.invert_yaxis()


#: Smallest distance of a contour's label from the edges, as a fraction of a map's width and height.
LABEL_MARGIN = 0.08


def _label_points(lines: Any, x: np.ndarray, y: np.ndarray) -> list[tuple[float, float]]:
    """Return the point of each contour farthest from the edges, where its label fits."""
    low, span = np.array([x.min(), y.min()]), np.array([np.ptp(x), np.ptp(y)])
    points = []
    for segments in lines.allsegs:
        vertices = np.concatenate([*segments, np.empty((0, 2))])
        fraction = (vertices - low) / span
        edge_distance = np.minimum(fraction, 1.0 - fraction).min(axis=1, initial=1.0)
        if len(vertices) and edge_distance.max() > LABEL_MARGIN:
            points.append(tuple(vertices[edge_distance.argmax()]))
    return points


def _draw_polar(axes: Any, plot: Plot) -> None:
    """Draw deviations from a circle; the center of the plot is the lower limit of y."""
    low, high = plot.y_range
    for trace, appearance in zip(plot.traces, appearances(plot), strict=True):
        style = _style(appearance) | {"label": trace.name}
        axes.plot(np.radians(_numbers(trace.x)), _numbers(trace.y), **style)
    axes.set_ylim(low, high)
    ring = round_down(0.8 * high)
    unit = plot.y.rpartition("[")[2].removesuffix("]")
    labels = [f"-{ring:g} {unit}", "0", f"+{ring:g} {unit}"]
    axes.set_yticks([-ring, 0.0, ring], labels, fontsize=SMALL, color=TEXT)
    axes.set_rlabel_position(67)
    axes.set_xticks(np.radians(np.arange(0, 360, 45)))
    axes.tick_params(labelsize=SMALL, labelcolor=TEXT)
    axes.grid(color=FAINT, linewidth=0.5)
    axes.spines["polar"].set_visible(False)
    _add_legend(axes, plot)


def round_down(value: float) -> float:
    """Return the largest number 1, 2 or 5 times a power of ten up to a positive value."""
    power = 10.0 ** np.floor(np.log10(max(value, 1e-12)))
    return float(max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-12)))


def _set_axes(axes: Any, plot: Plot, names: dict[Any, int]) -> None:
    """Set labels, scales, ticks and limits of the axes; `names` are the texts of x, if any."""
    value_axis = axes.xaxis if plot.sideways else axes.yaxis
    argument_axis = axes.yaxis if plot.sideways else axes.xaxis
    x_label = plot.y if plot.sideways else plot.x
    axes.set_xlabel(x_label, fontsize=SMALL, color=TEXT, parse_math=False)
    y_label = plot.x if plot.sideways else plot.y
    axes.set_ylabel(y_label, fontsize=SMALL, color=TEXT, parse_math=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.offsetText.set_fontsize(SMALL)
    if plot.log_x:
        _set_logarithmic(argument_axis)
    if plot.log_y:
        _set_logarithmic(value_axis)
        if any(trace.style == "bars" for trace in plot.traces):
            _start_at_a_decade(value_axis)
    if names:
        labels = [str(name)[:MAX_LABEL_LENGTH] for name in names]
        argument_axis.set_ticks(np.arange(len(names)), labels, fontsize=SMALL, parse_math=False)
        low, high = -0.6, len(names) - 0.4
        if plot.sideways:
            axes.set_ylim(high, low)  # from the top downwards
        else:
            axes.set_xlim(low, high)
    _set_names_of_map(axes, plot)
    if len(plot.y_range) == 2 and plot.y_range[0] < plot.y_range[1]:
        set_limits = axes.set_xlim if plot.sideways else axes.set_ylim
        set_limits(*plot.y_range)
    if plot.equal:
        axes.set_aspect("equal", adjustable="box" if plot.grid else "datalim")
    if {trace.style for trace in plot.traces} <= FULL_WIDTH_STYLES and not (names or plot.equal):
        _remove_x_margins(axes, plot)


def _remove_x_margins(axes: Any, plot: Plot) -> None:
    """Set the range of x to the range of the lines, without margins."""
    x = _all_numbers(plot, "x")
    if x.size and np.ptp(x) > 0:
        axes.set_xlim(x.min(), x.max())


def _set_logarithmic(axis: Any) -> None:
    """Make an axis logarithmic; over few decades its ticks are plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    low, high = axis.get_view_interval()
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", color=FAINT, length=2)
    if 0 < low < high and np.log10(high / low) < FEW_DECADES:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _start_at_a_decade(axis: Any) -> None:
    """Let a logarithmic axis with bars start at a power of ten, so that every bar has a length."""
    low, high = axis.get_data_interval()
    if 0 < axis.get_minpos() <= high:
        low = 10.0 ** np.floor(np.log10(axis.get_minpos()) - 1e-9)
        getattr(axis.axes, f"set_{axis.axis_name}lim")(low, 1.3 * high)


def _legend_columns(names: Sequence[str]) -> int:
    """Return the number of entries next to each other that fit below a map."""
    longest = max(len(name) for name in names)
    return min(max(LEGEND_CHARACTERS // longest, 1), LEGEND_COLUMNS)


def _add_legend(axes: Any, plot: Plot) -> None:
    """Place a legend outside the axes: to the right of lines, below maps."""
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    for item in plot.classes:
        unique[item.name] = Patch(facecolor=item.color, edgecolor="#8a9099", linewidth=0.5)
    if len(unique) < 2:
        return
    is_below = bool(plot.grid or plot.class_grid)
    below = ScaledTranslation(0.0, LEGEND_OFFSET / 72, axes.get_figure(root=True).dpi_scale_trans)
    axes.legend(
        list(unique.values()),
        list(unique),
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0) if is_below else (1.005, 1.0),
        bbox_transform=axes.transAxes + below if is_below else axes.transAxes,
        ncols=_legend_columns(list(unique)) if is_below else 1,
        fontsize=SMALL,
        labelcolor=TEXT,
        frameon=False,
    )
    for text in axes.get_legend().get_texts():
        text.set_parse_math(False)
