"""Contents of pages, terminals and figures as data: paragraphs, tables, plots, scenes.

The parts of a result (`ReportPart`) build these objects once. The modules of
`tauloop.display.renderers` print the objects with Rich and draw them with Matplotlib, and
`tauloop.viewer.pages` writes them as HTML with Plotly. A record contains them as plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tauloop.common.records import dataclass
from tauloop.common.result import Result, Status
from tauloop.common.shown import ReprMixin

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Styles of traces; styles with a fixed meaning have their own colors. A "band" is a line with
#: shaded deviations, "linked" points are joined by a line, "dots" are small points of a cloud, and
#: a "cross" marks the start pose of a machine.
TRACE_STYLES = (
    "line",
    "thin",
    "dotted",
    "step",
    "band",
    "linked",
    "points",
    "dots",
    "bars",
    "marks",
    "rings",
    "cross",
    "measured",
    "predicted",
    "residual",
    "before",
    "after",
    "limit",
)
#: Kinds of paragraphs: text, heading, list item, note, emphasized line, reason for doubt, verdict
#: (passed or failed), or code.
TONES = ("plain", "heading", "item", "note", "strong", "doubtful", "passed", "failed", "code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph(ReprMixin):
    """A paragraph.

    Attributes:
        text: text of the paragraph.
        tone: one of `TONES`.
    """

    text: str
    tone: str = "plain"

    def __rich__(self) -> RenderableType:
        from tauloop.display.renderers.terminal import printed_paragraph

        return printed_paragraph(self.text, self.tone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(ReprMixin):
    """A table.

    Attributes:
        title: heading.
        heads: heads of the columns, with units; line breaks are for the terminal. If all are empty,
            the terminal shows no heads.
        cells: rows of texts, one for each head; a page shows the second line of a cell darker.
        numeric: whether each column holds numbers, which are aligned to the right.
        unbroken: indices of further columns whose cells are never broken into several lines.
        note: text below the table.
    """

    title: str
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...] = ()
    unbroken: tuple[float, ...] = ()
    note: str = ""

    def __rich__(self) -> RenderableType:
        from tauloop.display.renderers.terminal import printed_table

        unbroken = [*map(int, self.unbroken)]
        unbroken += [k for k, is_number in enumerate(self.numeric) if is_number]
        return printed_table(
            self.title,
            self.heads,
            self.cells,
            numeric=self.numeric,
            unbroken=unbroken,
            note=self.note,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotTrace(ReprMixin):
    """One quantity of a plot.

    Attributes:
        name: name in the legend.
        x, y: coordinates of the points (N,). x may be texts, such as names of parameters. None is a
            gap.
        deviation: half lengths of error bars or of a band (N,); empty if there are none.
        style: one of `TRACE_STYLES`.
        labels: text at each point in addition to its numbers (N,); empty if there are none.
        color: color such as ``#16324f``; default: the color of the style, or the next of the
            palette.
        base: start of bars (N,); default: zero.
    """

    name: str
    x: tuple[float | str | None, ...]
    y: tuple[float | None, ...]
    deviation: tuple[float | None, ...] = ()
    style: str = "line"
    labels: tuple[str, ...] = ()
    color: str = ""
    base: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotSpan(ReprMixin):
    """A shaded range of a plot, such as held-out samples or a contact.

    Attributes:
        name: name in the legend, once for all ranges of this name.
        start, end: limits of the range, in the unit of its axis.
        color: color such as ``#16324f``.
        across: True for a range of y over all x, False for a range of x over all y.
        label: text at its start.
        opacity: opacity from 0 to 1.
    """

    name: str
    start: float
    end: float
    color: str
    across: bool = False
    label: str = ""
    opacity: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotClass(ReprMixin):
    """A class of the points of a map, such as poses out of reach.

    Attributes:
        name: name in the legend.
        color: color such as ``#16324f``.
    """

    name: str
    color: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot(ReprMixin):
    """A plot of lines, points, bars or a map.

    Attributes:
        title: heading.
        x, y: quantities of the axes, with units.
        traces: lines, points or bars; may be empty for a map.
        spans: shaded ranges.
        note: text below the plot.
        over_time: x is the time (s), or the number of the state, of the scene on the same page, so
            that a cursor follows the scene.
        log_x, log_y: logarithmic axes.
        sideways: horizontal rows: the texts of x are at the left, and y increases to the right.
        equal: both axes have the same scale.
        polar: x is an angle (deg), y a distance from a circle.
        y_range: limits of y if outliers would hide the rest; for a polar plot the radii of its
            center and its rim.
        grid: values z (n_y, n_x) of a map over `grid_x` and `grid_y`; None is an empty cell.
            `grid_name` labels the color scale. If `grid_y` are texts, they name rows from the top
            downwards; texts in `grid_x` name columns.
        grid_range: limits of the color scale; default: those of the values.
        contours: whether contour lines with labels are drawn over the map.
        classes: classes of points, drawn under the map.
        class_grid: index of the class of each point of the grid (n_y, n_x); None without a class.
    """

    title: str
    x: str
    y: str
    traces: tuple[PlotTrace, ...] = ()
    spans: tuple[PlotSpan, ...] = ()
    note: str = ""
    over_time: bool = False
    log_x: bool = False
    log_y: bool = False
    sideways: bool = False
    equal: bool = False
    polar: bool = False
    y_range: tuple[float, ...] = ()
    grid: tuple[tuple[float | None, ...], ...] = ()
    grid_x: tuple[float | str | None, ...] = ()
    grid_y: tuple[float | str | None, ...] = ()
    grid_name: str = ""
    grid_range: tuple[float, ...] = ()
    contours: bool = False
    classes: tuple[PlotClass, ...] = ()
    class_grid: tuple[tuple[float | None, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionScene(ReprMixin):
    """A machine in motion.

    Attributes:
        title: heading.
        machine: text of the machine file.
        time: times of the states (N,), s.
        q: coordinates of the machine in each state (N, n_q).
        note: text below the scene.
    """

    title: str
    machine: str
    time: tuple[float, ...]
    q: tuple[tuple[float, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture(ReprMixin):
    """A finished drawing.

    Attributes:
        svg: text of the SVG file.
        caption: text below the drawing.
    """

    svg: str
    caption: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyNumbers(ReprMixin):
    """The most important numbers of a result.

    Attributes:
        rows: name, value with unit, and remark of each number.
    """

    rows: tuple[tuple[str, ...], ...]


#: Contents that are printed in a terminal; a string is a plain paragraph.
Printed = Paragraph | Table | str


class PrintedPieces(tuple[Printed, ...]):
    """Several pieces; Rich prints them one below the other."""

    __slots__ = ()

    def __rich__(self) -> RenderableType:
        from rich.console import Group

        return Group(*self)


#: Contents of a page.
Piece = Paragraph | Table | Plot | MotionScene | Picture | KeyNumbers
#: Names of the pieces in JSON.
PIECES: Mapping[str, type] = {
    piece_class.__name__.lower(): piece_class
    for piece_class in (Paragraph, Table, Plot, MotionScene, Picture, KeyNumbers)
}
#: Head of a column, or head and number format.
Column = str | tuple[str, str]


def table(
    title: str,
    *columns: Column,
    rows: Iterable[Iterable[Any]] = (),
    note: str = "",
    unbroken: tuple[int, ...] = (),
) -> Table:
    """Return a table.

    Args:
        title: heading.
        columns: heads. A head with a format, such as ``("force", ".5g")``, belongs to a column of
            numbers, which are aligned to the right and never broken.
        rows: cells. Numbers are written in the format of their column, texts as they are, None as
            an empty cell.
        note: text below the table.
        unbroken: indices of further columns whose cells are never broken into several lines.
    """
    heads = [(column, "") if isinstance(column, str) else column for column in columns]
    formats = [number_format for _, number_format in heads]
    cells = []
    for row in rows:
        pairs = zip(row, formats, strict=True)
        cells.append(tuple(_cell(value, number_format) for value, number_format in pairs))
    return Table(
        title=title,
        heads=tuple(head for head, _ in heads),
        cells=tuple(cells),
        numeric=tuple(not isinstance(column, str) for column in columns),
        unbroken=unbroken,
        note=note,
    )


def _cell(value: Any, number_format: str) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else format(value, number_format)


def paragraphs(lines: Iterable[object], tone: str = "plain") -> Iterator[Paragraph]:
    """Yield a paragraph for each line."""
    for line in lines:
        yield Paragraph(text=str(line), tone=tone)


def status_line(result: Result) -> Paragraph:
    """Return a paragraph with the status of a result."""
    tone = "passed" if result.status is Status.OK else "doubtful"
    return Paragraph(text=f"status: {result.status.value}", tone=tone)


def doubts(result: Result) -> Iterator[Paragraph]:
    """Yield a paragraph for each diagnostic outside its limits."""
    yield from paragraphs((f"doubtful: {line}" for line in result.advice), "doubtful")
