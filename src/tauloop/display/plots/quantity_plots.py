"""Plots of the named quantities of any result: a plot for each unit and dimension."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tauloop.common.datasets import TIME_DIMENSIONS, Tabular, Variable
from tauloop.common.errors import InputError
from tauloop.common.records import dataclass
from tauloop.display.pieces import Plot, PlotTrace
from tauloop.display.sampling import in_degrees, thin
from tauloop.mechanism.suggestions import unknown_names

#: Quantities of things by name are on a logarithmic axis where they differ by more than this ratio.
DECADES = 1e3
#: The axis of values names at most this number of quantities; the legend has them all.
MAX_NAMES_AT_AXIS = 3


def quantity_plots(result: Tabular, names: tuple[str, ...] = ()) -> list[Plot]:
    """Return plots of named quantities, or of all quantities over the first one's dimensions.

    Raises:
        InputError: no such quantity, or nothing that can be drawn.
    """
    return [group.plot() for group in _groups(result, names)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _QuantityGroup:
    """Quantities of one unit over the same dimensions.

    Attributes:
        unit: SI; None where it is not known.
        over: the dimension, or the two of a map, with their units.
        labels: numbers or texts along each.
        lines: values, by quantity and by name in the legend.
    """

    unit: str | None
    over: tuple[str, ...]
    labels: tuple[np.ndarray, ...]
    lines: dict[tuple[str, str], np.ndarray]

    @property
    def label(self) -> str:
        """The name of the axis of values."""
        quantities = dict.fromkeys(quantity for quantity, _ in self.lines)
        unit = "" if self.unit is None else f" [{self.unit or 1}]"
        return f"{', '.join(quantities) if len(quantities) <= MAX_NAMES_AT_AXIS else ''}{unit}".lstrip()

    @property
    def names(self) -> list[str]:
        """The names of the lines: their channels; of several quantities, these too."""
        is_single = len({quantity for quantity, _ in self.lines}) == 1
        return [
            rest or quantity if is_single else ".".join(filter(None, (quantity, rest)))
            for quantity, rest in self.lines
        ]

    @property
    def is_one_sample(self) -> bool:
        """Whether it is of one time or pose."""
        return len(self.over) == 1 and len(self.labels[0]) == 1 and not _are_texts(self.labels[0])

    def one_sample(self) -> _QuantityGroup:
        """Return quantities at one time or in one pose as one column, one below the other."""
        names = np.array(self.names)
        quantities = ", ".join(dict.fromkeys(quantity for quantity, _ in self.lines))
        lines = {(quantities, ""): np.concatenate(list(self.lines.values()))}
        return _QuantityGroup(unit=self.unit, over=("",), labels=(names,), lines=lines)

    def plot(self) -> Plot:
        """Return the plot."""
        if len(self.over) == 2:
            return self._map()
        x, columns = self.labels[0], list(self.lines.values())
        sideways = _are_texts(x)
        drawn = []
        for name, values in zip(self.names, columns, strict=True):
            shown = (x, values) if sideways else thin(x, values)
            style = "points" if sideways or len(values) == 1 else "line"
            drawn.append(PlotTrace(name=name, x=_plain(shown[0]), y=_plain(shown[1]), style=style))
        every = np.concatenate(columns)
        log = sideways and _is_wide(every)
        return Plot(
            title="",
            x="" if sideways else self.over[0],
            y=self.label,
            traces=tuple(drawn),
            sideways=sideways,
            over_time=self.over[0].partition(" [")[0] in TIME_DIMENSIONS,
            log_y=log,
            y_range=_range_with_zero(every) if sideways and not log else (),
        )

    def _map(self) -> Plot:
        ((_, values),) = self.lines.items()
        # the rows of a matrix go downwards; else the first dimension goes to the right
        is_matrix = _are_texts(self.labels[0])
        across, up = (1, 0) if is_matrix else (0, 1)
        shown = values if is_matrix else values.T
        return Plot(
            title="",
            x="" if _are_texts(self.labels[across]) else self.over[across],
            y="" if _are_texts(self.labels[up]) else self.over[up],
            grid=tuple(map(_plain, shown)),
            grid_x=_plain(self.labels[across]),
            grid_y=_plain(self.labels[up]),
            grid_name=self.label,
        )


def _are_texts(labels: np.ndarray) -> bool:
    return labels.dtype.kind == "U"


def _plain(values: np.ndarray) -> tuple[Any, ...]:
    """Return texts, or numbers with None for those that are not finite."""
    if _are_texts(values):
        return tuple(values.tolist())
    return tuple(float(x) if np.isfinite(x) else None for x in values)


def _is_wide(values: np.ndarray) -> bool:
    """Return whether positive numbers differ so much that a logarithmic axis shows them better."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
    is_wide = len(sizes) > 0 and sizes.max() > DECADES * sizes.min()
    return bool(is_wide and not (values <= 0.0).any())


def _range_with_zero(values: np.ndarray) -> tuple[float, ...]:
    """Return limits from zero, lest equal numbers differ by their rounding."""
    finite = values[np.isfinite(values)]
    if not finite.any():
        return ()
    low, high = min(0.0, float(finite.min())), max(0.0, float(finite.max()))
    room = 0.05 * (high - low)
    return (low - room, high + room)


def _groups(result: Tabular, names: tuple[str, ...]) -> list[_QuantityGroup]:
    """Return what is drawn, by dimension and unit."""
    variables = list(result.variables())
    labels = {variable.name: variable for variable in variables if variable.is_label}
    drawn = [(v, v.array()) for v in variables if v.over and not v.is_label]
    drawn = [(v, values) for v, values in drawn if values.size and not _are_texts(values)]
    if not names:
        drawn = [_in_degrees(v, values) for v, values in drawn]
    if not drawn:
        raise InputError.of(
            type(result).__name__,
            "holds no numbers to draw",
            "look at its attributes, or `as_dict()`",
        )
    known = dict.fromkeys(name for v, _ in drawn for name in (v.quantity, v.name))
    remedy = f"choose among {', '.join(known)}"
    InputError.raise_if_any(
        unknown_names(names, known, "is not a quantity that can be drawn", remedy=remedy)
    )
    groups: dict[object, _QuantityGroup] = {}
    for variable, values in drawn:
        if names:
            is_chosen = bool({variable.name, variable.quantity} & {*names})
        else:
            is_chosen = variable.over == drawn[0][0].over
        if is_chosen:
            for key, group in _split(variable, values, labels):
                groups.setdefault(key, group).lines.update(group.lines)
    return [group.one_sample() if group.is_one_sample else group for group in groups.values()]


def _in_degrees(variable: Variable, values: np.ndarray) -> tuple[Variable, np.ndarray]:
    """Return a quantity with its angles in degrees."""
    if not isinstance(variable.unit, str):
        return variable, values
    unit, values = in_degrees(variable.unit, values)
    return replace(variable, unit=unit), values


def _split(
    variable: Variable, values: np.ndarray, labels: Mapping[str, Variable]
) -> Iterator[tuple[object, _QuantityGroup]]:
    """Yield a quantity by the groups that it belongs to: those of its unit, or a map of its own.

    Raises:
        InputError: it has more than two dimensions.
    """
    over, rest = variable.over, variable.name.partition(".")[2]
    if len(over) > 2:
        what = f"is over {', '.join(over)}"
        raise InputError.of(
            variable.name, what, "draw a section of it: `to_xarray()[name].sel(...).plot()`"
        )
    unit = variable.unit
    units = unit if isinstance(unit, tuple) else (unit,) * len(values)
    ticks: list[np.ndarray] = [
        labels[d].array() if d in labels else np.arange(n)
        for d, n in zip(over, values.shape, strict=True)
    ]
    names = tuple(f"{d} [{labels[d].unit}]" if d in labels and labels[d].unit else d for d in over)
    if (
        len(over) == 2
        and not _are_texts(ticks[1])
        and (_are_texts(ticks[0]) or over[0] not in labels)
    ):
        for name, line in zip(ticks[0], values, strict=True):
            lines = {(variable.quantity, ", ".join(filter(None, (rest, str(name))))): line}
            group = _QuantityGroup(
                unit=units[0], over=names[1:], labels=tuple(ticks[1:]), lines=lines
            )
            yield (over, units[0]), group
        return
    for unit in dict.fromkeys(units):
        own = np.array([each == unit for each in units])
        key = (over, unit, variable.name if len(over) == 2 else "")
        lines = {(variable.quantity, rest): values[own]}
        yield (
            key,
            _QuantityGroup(unit=unit, over=names, labels=(ticks[0][own], *ticks[1:]), lines=lines),
        )
