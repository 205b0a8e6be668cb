"""Functions that build plots and scenes from arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.common.datasets import Tabular
from tauloop.display.pieces import MotionScene, Piece, Plot, PlotTrace
from tauloop.display.sampling import in_degrees, thin
from tauloop.formats.writing.yaml_writer import dumps
from tauloop.model import Model

#: Maximum number of machine states that a page plays: 20 per second for eight seconds.
MAX_SCENE_STATES = 160
#: Significant digits of values in plots.
DIGITS = 6
#: Maximum number of intervals whose extremes represent a long record on a page.
PAGE_INTERVALS = 400


def rounded(values: Any) -> tuple[float | None, ...]:
    """Return numbers rounded to `DIGITS` significant digits; None if they are not finite."""
    # A list contains Python's numbers, which are formatted much faster than those of NumPy.
    flat = np.asarray(values, dtype=float).ravel().tolist()
    return tuple(float(f"{x:.{DIGITS}g}") if math.isfinite(x) else None for x in flat)


def traces(x: Any, columns: Mapping[str, Any], style: str = "line") -> tuple[PlotTrace, ...]:
    """Return traces of quantities (N,) over x (N,), except quantities without a finite value."""
    drawn = []
    for name, values in columns.items():
        y = np.asarray(values, dtype=float)
        if not np.isfinite(y).any():
            continue
        points = thin(np.asarray(x, dtype=float), y, PAGE_INTERVALS)
        drawn.append(PlotTrace(name=name, x=rounded(points[0]), y=rounded(points[1]), style=style))
    return tuple(drawn)


def by_name(
    title: str,
    y: str,
    names: Iterable[str],
    columns: Mapping[str, Any],
    *,
    deviation: Any = (),
    style: str,
    **attributes: Any,
) -> Plot:
    """Return a plot with one row for each of n items, such as parts or parameters.

    Args:
        title: heading.
        y: quantity of the values, with its unit.
        names: names of the items (n,).
        columns: values (n,) by the name of their trace.
        deviation: half lengths of error bars (n,), for every trace.
        style: style of every trace, see `TRACE_STYLES`.
        attributes: further attributes of `Plot`.
    """
    labels, bars = tuple(names), rounded(deviation)
    drawn = (
        PlotTrace(name=name, x=labels, y=rounded(values), deviation=bars, style=style)
        for name, values in columns.items()
    )
    return Plot(title=title, x="", y=y, traces=tuple(drawn), sideways=True, **attributes)


def by_unit(
    names: Iterable[str], units: Iterable[str], columns: Iterable[Any]
) -> dict[str, dict[str, Any]]:
    """Return columns grouped by unit, with their names as keys in each group."""
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
    **attributes: Any,
) -> Iterator[Plot]:
    """Yield plots of quantities over time, one for each unit.

    Args:
        title: title of the plots; the label of the y axis is its first part, with the unit.
        time: times (N,), s.
        names, units, columns: names, units and values (N,) of the quantities.
        attributes: further attributes of `Plot`; `style` is the style of the traces.
    """
    displayed = [
        in_degrees(unit, np.asarray(values, dtype=float))
        for unit, values in zip(units, columns, strict=True)
    ]
    if not displayed:
        return
    style = attributes.pop("style", "line")
    for unit, group in by_unit(names, *zip(*displayed, strict=True)).items():
        quantity = title.partition(",")[0].partition(":")[0]
        label = f"{quantity} [{unit}]" if unit else quantity
        if drawn := traces(time, group, style):
            yield Plot(
                title=title, x="time [s]", y=label, traces=drawn, over_time=True, **attributes
            )


def channels_over_time(
    title: str, table: Tabular, quantity: str, **attributes: Any
) -> Iterator[Plot]:
    """Yield plots over time of all channels of a result's quantity; see `over_time`."""
    variables = {variable.name: variable for variable in table.variables()}
    channels = [variable for variable in variables.values() if variable.quantity == quantity]
    names = [variable.name.partition(".")[2] for variable in channels]
    units = [str(variable.unit) for variable in channels]
    columns = [variable.array() for variable in channels]
    yield from over_time(title, variables["time"].array(), names, units, columns, **attributes)


def with_common_scales(plots: Sequence[Plot]) -> Iterator[Plot]:
    """Yield plots that have the same range of y for the same unit, so that they can be compared."""
    units = [plot.y.partition("[")[2] for plot in plots]
    for plot, unit in zip(plots, units, strict=True):
        same_unit = [other for other, name in zip(plots, units, strict=True) if name == unit]
        values = [y for other in same_unit for trace in other.traces for y in trace.y]
        known = np.array([value for value in values if value is not None])
        if not known.size:
            yield plot
            continue
        low, high = float(known.min()), float(known.max())
        margin = 0.05 * (high - low) or 1.0
        yield replace(plot, y_range=(low - margin, high + margin))


def at_rest(model: Model, title: str = "The machine at its reference pose") -> MotionScene:
    """Return a scene of a machine at its reference pose, for a result without a motion."""
    return _scene(model, np.array([0.0, 1.0]), np.tile(model.assembly.q, (2, 1)), title)


def _scene(model: Model, time: np.ndarray, q: np.ndarray, title: str) -> MotionScene:
    states = tuple(_short_numbers(row) for row in q)
    return MotionScene(
        title=title, machine=dumps(model.mechanism), time=tuple(map(float, time)), q=states
    )


def _short_numbers(row: np.ndarray) -> tuple[float, ...]:
    """Return numbers rounded to ten significant digits, so that pages are small."""
    return tuple(float(f"{x:.10g}") for x in row)


def motion(
    model: Model, time: Any, q: Any, title: str = "The machine in motion", *, is_motion: bool = True
) -> Iterator[Piece]:
    """Yield a scene of the machine in motion, and a plot of its distance from singularities.

    Nothing is yielded for fewer than two states with finite coordinates.

    Args:
        model: the machine.
        time: times of the states (N,), s; for poses without times, the numbers of the poses.
        q: coordinates of the states (N, n_q).
        title: heading.
        is_motion: whether `time` contains times; otherwise there is no plot.
    """
    from tauloop.kinematics.singularities import singularities

    time, q = np.asarray(time, dtype=float), np.asarray(q, dtype=float)
    is_known = np.isfinite(q).all(axis=1)
    time, q = time[is_known], q[is_known]
    if len(time) < 2:
        return
    scene_times = np.linspace(time[0], time[-1], min(len(time), MAX_SCENE_STATES))
    states = np.unique(np.searchsorted(0.5 * (time[1:] + time[:-1]), scene_times))
    yield _scene(model, time[states], q[states], title)
    if not is_motion:
        return
    distances = singularities(model, q[states])
    kinds = {
        "serial (type 1)": distances.serial,
        "parallel (type 2)": distances.parallel,
        "constraint": distances.constraint,
    }
    yield Plot(
        title="Conditioning along the motion",
        x="time [s]",
        y="distance from singularity [1]",
        traces=traces(time[states], kinds),
        over_time=True,
        y_range=(0.0, 1.02),
        note="1 is the largest possible distance. At 0 the machine is singular: it cannot move in some "
        "direction (type 1), or the motors cannot hold it (type 2).",
    )
