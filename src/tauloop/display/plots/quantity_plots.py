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

#: Named quantities, such as parameters, have a logarithmic axis if they differ by more than this
#: ratio.
LOGARITHMIC_RATIO = 1e3
#: The label of the value axis names at most this number of quantities; the legend names all.
MAX_NAMES_AT_AXIS = 3


def quantity_plots(result: Tabular, names: tuple[str, ...] = ()) -> list[Plot]:
    """Return plots of named quantities, or of all quantities over the first one's dimensions.

    Raises:
        InputError: an unknown quantity, or a result without numbers.
    """
    return [group.plot() for group in _groups(result, names)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _QuantityGroup:
    """Quantities with the same unit and the same dimensions.

    Attributes:
        unit: SI unit; None if it is unknown.
        over: names of the dimension, or of the two dimensions of a map, with their units.
        labels: numbers or texts along each dimension.
        lines: values by quantity and name in the legend.
    """

    unit: str | None
    over: tuple[str, ...]
    labels: tuple[np.ndarray, ...]
    lines: dict[tuple[str, str], np.ndarray]

    @property
    def label(self) -> str:
        """The label of the value axis."""
        quantities = dict.fromkeys(quantity for quantity, _ in self.lines)
        unit = "" if self.unit is None else f" [{self.unit or 1}]"
        names = ", ".join(quantities) if len(quantities) <= MAX_NAMES_AT_AXIS else ""
        return f"{names}{unit}".lstrip()

    @property
    def names(self) -> list[str]:
        """The names of the lines: their channels, with the quantity if the group has several."""
        is_single = len({quantity for quantity, _ in self.lines}) == 1
        return [
            channel or quantity if is_single else ".".join(filter(None, (quantity, channel)))
            for quantity, channel in self.lines
        ]

    @property
    def is_one_sample(self) -> bool:
        """Whether the quantities have one value each, such as at a single time or pose."""
        return len(self.over) == 1 and len(self.labels[0]) == 1 and not _are_texts(self.labels[0])

    def one_sample(self) -> _QuantityGroup:
        """Return quantities at a single time or pose as one column of named values."""
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
            x_drawn, y_drawn = (x, values) if sideways else thin(x, values)
            style = "points" if sideways or len(values) == 1 else "line"
            drawn.append(PlotTrace(name=name, x=_plain(x_drawn), y=_plain(y_drawn), style=style))
        all_values = np.concatenate(columns)
        log = sideways and _has_wide_range(all_values)
        return Plot(
            title="",
            x="" if sideways else self.over[0],
            y=self.label,
            traces=tuple(drawn),
            sideways=sideways,
            over_time=self.over[0].partition(" [")[0] in TIME_DIMENSIONS,
            log_y=log,
            y_range=_range_with_zero(all_values) if sideways and not log else (),
        )

    def _map(self) -> Plot:
        ((_, values),) = self.lines.items()
        # Rows of a matrix go downwards; otherwise the first dimension is the horizontal axis.
        is_matrix = _are_texts(self.labels[0])
        x_index, y_index = (1, 0) if is_matrix else (0, 1)
        grid = values if is_matrix else values.T
        return Plot(
            title="",
            x="" if _are_texts(self.labels[x_index]) else self.over[x_index],
            y="" if _are_texts(self.labels[y_index]) else self.over[y_index],
            grid=tuple(map(_plain, grid)),
            grid_x=_plain(self.labels[x_index]),
            grid_y=_plain(self.labels[y_index]),
            grid_name=self.label,
        )


def _are_texts(labels: np.ndarray) -> bool:
    return labels.dtype.kind == "U"


def _plain(values: np.ndarray) -> tuple[Any, ...]:
    """Return texts as they are, and numbers with None for values that are not finite."""
    if _are_texts(values):
        return tuple(values.tolist())
    return tuple(float(x) if np.isfinite(x) else None for x in values)


def _has_wide_range(values: np.ndarray) -> bool:
    """Return whether all numbers are positive with a ratio larger than `LOGARITHMIC_RATIO`."""
    finite = values[np.isfinite(values)]
    if not len(finite) or (values <= 0.0).any():
        return False
    return bool(finite.max() > LOGARITHMIC_RATIO * finite.min())


def _range_with_zero(values: np.ndarray) -> tuple[float, ...]:
    """Return limits that include zero, so that rounding errors are not magnified."""
    finite = values[np.isfinite(values)]
    if not finite.any():
        return ()
    low, high = min(0.0, float(finite.min())), max(0.0, float(finite.max()))
    margin = 0.05 * (high - low)
    return (low - margin, high + margin)


def _groups(result: Tabular, names: tuple[str, ...]) -> list[_QuantityGroup]:
    """Return the quantities to draw, grouped by dimension and unit."""
    variables = list(result.variables())
    labels = {variable.name: variable for variable in variables if variable.is_label}
    drawn = [(v, v.array()) for v in variables if v.over and not v.is_label]
    drawn = [(v, values) for v, values in drawn if values.size and not _are_texts(values)]
    if not names:
        drawn = [_in_degrees(v, values) for v, values in drawn]
    if not drawn:
        raise InputError.of(
            type(result).__name__,
            "contains no numbers to draw",
            "see its attributes, or `as_dict()`",
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
    """Return a quantity and its values, with angles in degrees."""
    if not isinstance(variable.unit, str):
        return variable, values
    unit, values = in_degrees(variable.unit, values)
    return replace(variable, unit=unit), values


def _split(
    variable: Variable, values: np.ndarray, labels: Mapping[str, Variable]
) -> Iterator[tuple[object, _QuantityGroup]]:
    """Yield the groups of a quantity with their keys: one for each unit, or a group for its map.

    Raises:
        InputError: the quantity has more than two dimensions.
    """
    over = variable.over
    channel = variable.name.partition(".")[2]
    if len(over) > 2:
        what = f"is over {', '.join(over)}"
        raise InputError.of(
            variable.name, what, "draw a section: `to_xarray()[name].sel(...).plot()`"
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
            lines = {(variable.quantity, ", ".join(filter(None, (channel, str(name))))): line}
            group = _QuantityGroup(
                unit=units[0], over=names[1:], labels=tuple(ticks[1:]), lines=lines
            )
            yield (over, units[0]), group
        return
    for unit in dict.fromkeys(units):
        has_unit = np.array([each == unit for each in units])
        key = (over, unit, variable.name if len(over) == 2 else "")
        lines = {(variable.quantity, channel): values[has_unit]}
        yield (
            key,
            _QuantityGroup(
                unit=unit, over=names, labels=(ticks[0][has_unit], *ticks[1:]), lines=lines
            ),
        )
