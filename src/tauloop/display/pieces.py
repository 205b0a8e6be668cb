"""What a page of a report is made of: words, tables, pictures to move about in, and the machine in motion.

A result is turned into pieces by its parts (`ReportPart.pieces`); a record is their plain form, in
JSON; a page is written of a record alone (`tauloop.viewer.pages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tauloop.common.datasets import Tabular
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.display.figures import in_degrees, thin
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.model import Model

if TYPE_CHECKING:
    from rich.console import RenderableType

#: States of a machine that a page plays, at most: 20 a second for eight seconds.
STATES = 160
#: Digits that a picture shows, and stretches of a record of which it shows the extremes.
DIGITS, STRETCHES = 6, 400
#: How a trace is drawn; those of fixed meaning have their own colours.
LOOKS = (
    "line",
    "thin",
    "step",
    "points",
    "bars",
    "measured",
    "predicted",
    "residual",
    "before",
    "after",
    "limit",
)
#: How words are meant: as they are, as a heading, as one of a list, quietly, loudly, as a doubt, or
#: as a command.
TONES = ("plain", "heading", "item", "note", "strong", "doubtful", "code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Words(Shown):
    """A paragraph.

    Attributes:
        text: what it says.
        tone: one of `TONES`.
    """

    text: str
    tone: str = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows(Shown):
    """A table.

    Attributes:
        title: heading.
        heads: of the columns, with units.
        cells: rows of texts, as many as there are heads; a second line in a cell stands below the
            first and is darker.
        numeric: which columns hold numbers, and so stand to the right.
        note: below the table.
    """

    title: str
    heads: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotTrace(Shown):
    """One quantity of a plot.

    Attributes:
        name: in the legend.
        x, y: its points (N,), numbers; x may be words, such as names of parameters. None is a gap.
        deviation: half lengths of bars of error (N,), or nothing.
        look: one of `LOOKS`.
        labels: what is said of each point beside its numbers (N,), or nothing.
    """

    name: str
    x: tuple[float | str | None, ...]
    y: tuple[float | None, ...]
    deviation: tuple[float | None, ...] = ()
    look: str = "line"
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot(Shown):
    """A picture to move about in.

    Attributes:
        title: heading.
        x, y: what the axes show, with units.
        traces: what is drawn; nothing where a map is.
        note: below it.
        over_time: x is the time (s) of the machine beside it, so that a cursor follows it.
        log_x, log_y: logarithmic axes.
        sideways: words stand at the left, one below the other, and y goes to the right.
        y_range: limits of y, where what is beyond would hide the rest.
        grid: values z (n_y, n_x) of a map over `grid_x` and `grid_y`, with `grid_name` for their
            scale; None is empty.
    """

    title: str
    x: str
    y: str
    traces: tuple[PlotTrace, ...] = ()
    note: str = ""
    over_time: bool = False
    log_x: bool = False
    log_y: bool = False
    sideways: bool = False
    equal: bool = False
    y_range: tuple[float, ...] = ()
    grid: tuple[tuple[float | None, ...], ...] = ()
    grid_x: tuple[float | None, ...] = ()
    grid_y: tuple[float | None, ...] = ()
    grid_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionScene(Shown):
    """A machine in motion.

    Attributes:
        title: heading.
        machine: its description, the text of a machine file.
        time: of its states (N,), s.
        q: its coordinates at these (N, n_q).
        note: below it.
    """

    title: str
    machine: str
    time: tuple[float, ...]
    q: tuple[tuple[float, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture(Shown):
    """A drawing as it is.

    Attributes:
        svg: its text.
        caption: below it.
    """

    svg: str
    caption: str


#: What a page is made of.
Piece = Words | Rows | Plot | MotionScene | Picture
#: Names of the pieces in JSON.
PIECES: Mapping[str, type] = {
    kind.__name__.lower(): kind for kind in (Words, Rows, Plot, MotionScene, Picture)
}


def printed(items: Iterable[RenderableType]) -> Iterator[Piece]:
    """What is printed in a terminal, as pieces: tables of Rich, groups of them, texts and lines."""
    from rich.console import Group
    from rich.table import Table

    for item in items:
        if isinstance(item, Group):
            yield from printed(item.renderables)
        elif isinstance(item, Table):
            yield _rows(item)
        else:
            style = str(getattr(item, "style", ""))  # of the whole; a part of it has one of its own
            tone = "doubtful" if "yellow" in style else "strong" if "bold" in style else "plain"
            lines = [line.strip() for line in str(item).splitlines()]
            for text in [" ".join(lines)] if tone == "doubtful" else lines:
                yield Words(text=text, tone=tone)


def _rows(table: Any) -> Rows:
    columns = table.columns
    cells = zip(*(map(str, column.cells) for column in columns), strict=True)
    return Rows(
        title=str(table.title or ""),
        heads=tuple(" ".join(str(column.header).replace("-\n", "").split()) for column in columns),
        cells=tuple(cells),
        numeric=tuple(column.justify == "right" for column in columns),
        note=str(table.caption or ""),
    )


def rounded(values: Any) -> tuple[float | None, ...]:
    """Numbers of a picture, to as many digits as it can show; None for those that are not finite."""
    flat = np.asarray(values, dtype=float).ravel()
    return tuple(float(f"{x:.{DIGITS}g}") if np.isfinite(x) else None for x in flat)


def traces(x: Any, columns: Mapping[str, Any], look: str = "line") -> tuple[PlotTrace, ...]:
    """Quantities (N,) over one x (N,), long ones by their extremes; without those that are known nowhere."""
    drawn = []
    for name, values in columns.items():
        y = np.asarray(values, dtype=float)
        if not np.isfinite(y).any():
            continue
        points = thin(np.asarray(x, dtype=float), y, STRETCHES)
        drawn.append(PlotTrace(name=name, x=rounded(points[0]), y=rounded(points[1]), look=look))
    return tuple(drawn)


def by_name(
    title: str,
    y: str,
    names: Iterable[str],
    columns: Mapping[str, Any],
    *,
    deviation: Any = (),
    look: str,
    **more: Any,
) -> Plot:
    """Columns of figures (n,) of n things with names, one thing below the other.

    Args:
        title: heading.
        y: what the figures are, with their unit.
        names: of the things.
        columns: figures by the name of their trace.
        deviation: half lengths of the bars, of every trace.
        look: of every trace, see `LOOKS`.
        more: what else `Plot` takes.
    """
    labels, bars = tuple(names), rounded(deviation)
    drawn = (
        PlotTrace(name=name, x=labels, y=rounded(values), deviation=bars, look=look)
        for name, values in columns.items()
    )
    return Plot(title=title, x="", y=y, traces=tuple(drawn), sideways=True, **more)


def by_unit(
    names: Iterable[str], units: Iterable[str], columns: Iterable[Any]
) -> dict[str, dict[str, Any]]:
    """Columns by their unit, and below it by name: what has one axis."""
    groups: dict[str, dict[str, Any]] = {}
    for name, unit, values in zip(names, units, columns, strict=True):
        groups.setdefault("" if unit == "1" else unit, {})[name] = values
    return groups


def over_time(
    title: str,
    time: Any,
    names: Iterable[str],
    units: Iterable[str],
    columns: Iterable[Any],
    **more: Any,
) -> Iterator[Plot]:
    """Quantities against time, one plot for each unit.

    Args:
        title: of the plots; the unit stands at the axis.
        time: (N,), s.
        names, units, columns: of the quantities; each (N,).
        more: further attributes of `Plot`.
    """
    shown = [
        in_degrees(unit, np.asarray(values, dtype=float))
        for unit, values in zip(units, columns, strict=True)
    ]
    for unit, group in by_unit(names, *zip(*shown, strict=True)).items() if shown else ():
        what = title.partition(",")[0].partition(":")[0]
        label = f"{what} [{unit}]" if unit else what
        if drawn := traces(time, group, more.get("look", "line")):
            rest = {name: value for name, value in more.items() if name != "look"}
            yield Plot(title=title, x="time [s]", y=label, traces=drawn, over_time=True, **rest)


def channels_over_time(title: str, table: Tabular, quantity: str, **more: Any) -> Iterator[Plot]:
    """All channels of one of the quantities that a result has over time; see `over_time`."""
    variables = {variable.name: variable for variable in table.variables()}
    chosen = [variable for variable in variables.values() if variable.quantity == quantity]
    names, units = [v.name.partition(".")[2] for v in chosen], [str(v.unit) for v in chosen]
    yield from over_time(
        title, variables["time"].array(), names, units, [v.array() for v in chosen], **more
    )


def at_rest(model: Model, title: str = "The machine at its reference pose") -> MotionScene:
    """The machine of a result that has no motion, to be looked at from all sides."""
    return _scene(model, np.array([0.0, 1.0]), np.tile(model.assembly.q, (2, 1)), title)


def _scene(model: Model, time: np.ndarray, q: np.ndarray, title: str) -> MotionScene:
    states = tuple(tuple(float(f"{x:.10g}") for x in row) for row in q)
    return MotionScene(
        title=title, machine=dumps(model.mechanism), time=tuple(map(float, time)), q=states
    )


def motion(
    model: Model, time: Any, q: Any, title: str = "The machine in motion", *, is_motion: bool = True
) -> Iterator[Piece]:
    """The machine as it moves, and how far it is from its singularities meanwhile; nothing of a machine at rest.

    Args:
        model: the machine.
        time: of its states (N,), s; numbers of poses where these follow from each other in no time.
        q: its coordinates at these (N, n_q).
        title: heading.
        is_motion: these are states at times, so that conditioning is drawn over it.
    """
    from tauloop.kinematics.singularities import singularities

    time, q = np.asarray(time, dtype=float), np.asarray(q, dtype=float)
    known = np.isfinite(q).all(axis=1)
    time, q = time[known], q[known]
    if len(time) < 2:
        return
    wanted = np.linspace(time[0], time[-1], min(len(time), STATES))
    shown = np.unique(np.abs(np.searchsorted(0.5 * (time[1:] + time[:-1]), wanted)))
    yield _scene(model, time[shown], q[shown], title)
    if not is_motion:
        return
    far = singularities(model, q[shown])
    kinds = {
        "serial (type 1)": far.serial,
        "parallel (type 2)": far.parallel,
        "constraint": far.constraint,
    }
    yield Plot(
        title="Conditioning along the motion",
        x="time [s]",
        y="distance from singularity [1]",
        traces=traces(time[shown], kinds),
        over_time=True,
        y_range=(0.0, 1.02),
        note="1 is as far as a pose can be, 0 singular: the machine locks (type 1) or its motors lose hold (type 2).",
    )
