"""Named quantities with units, from which come datasets of xarray, tables of pandas and panels of Matplotlib.

An object that has numbers names them once, in `Tabular.variables`. The three libraries are imported
when they are asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tauloop.common.errors import InputError
from tauloop.common.plain import PlainData
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

#: Dimensions of what is known at times.
TIME = ("time",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variable:
    """One named quantity.

    Attributes:
        name: ``quantity``, or ``quantity.channel`` where channels have units of their own.
        values: numbers or words, with an axis for each dimension; None is not a number.
        over: names of its dimensions. A variable over itself alone holds the labels of that
            dimension.
        unit: SI, "" for a pure number, None where it is not known; of rows that differ, the unit of
            each.
    """

    name: str
    values: object
    over: tuple[str, ...]
    unit: str | tuple[str, ...] | None = ""

    @property
    def quantity(self) -> str:
        """Its name without the channel."""
        return self.name.partition(".")[0]

    @property
    def is_label(self) -> bool:
        """Whether it holds the labels of a dimension."""
        return self.over == (self.name,)

    def array(self) -> np.ndarray:
        """The values as numbers or as words."""
        import numpy as np

        values = np.asarray(self.values)
        return values if values.dtype.kind in "Ui" else np.asarray(values, dtype=float)


def time_axis(values: Any) -> Variable:
    """The times (N,), s, of quantities over ``time``."""
    return Variable(name=TIME[0], values=values, over=TIME, unit="s")


def columns(
    quantity: str,
    names: Sequence[str],
    units: Sequence[str | None],
    values: Any,
    over: tuple[str, ...] = TIME,
) -> Iterator[Variable]:
    """The channels of a quantity, as ``quantity.name``.

    Args:
        quantity: such as ``force``.
        names, units: of the columns (n).
        values: (..., n).
        over: dimensions of all other axes.
    """
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        yield Variable(name=f"{quantity}.{name}", values=values[..., i], over=over, unit=unit)


def rows(
    over: str,
    labels: Iterable[str],
    units: Iterable[str] | Mapping[str, str] = MappingProxyType({}),
    **quantities: Any,
) -> Iterator[Variable]:
    """Quantities of things that have names, one row for each.

    Args:
        over: what they are, such as ``parameter``.
        labels: their names (N,).
        units: of each row (N,), or of quantities by name; these are pure numbers without.
        quantities: values (N,) by name.
    """
    each = None if isinstance(units, Mapping) else tuple(units)
    yield Variable(name=over, values=list(labels), over=(over,))
    for name, values in quantities.items():
        unit = units.get(name, "") if isinstance(units, Mapping) else each
        yield Variable(name=name, values=values, over=(over,), unit=unit)


class Tabular(PlainData, Shown):
    """Base of classes with named quantities: trajectories, and results of every kind."""

    __slots__ = ()

    def variables(self) -> Iterable[Variable]:
        """The quantities, with units and dimensions; those of the table that `to_pandas` makes come first."""
        raise NotImplementedError

    def to_xarray(self) -> xr.Dataset:
        """All quantities as labelled arrays; ``attrs["units"]`` of each is its SI unit, "1" of a pure number.

        Where rows have units of their own, such as parameters, a coordinate holds them:
        ``parameter_unit`` beside ``parameter``.
        """
        import xarray as xr

        data, labels = dict[str, Any](), dict[str, Any]()
        for variable in self.variables():
            unit, values, about = variable.unit, variable.array(), {}
            if isinstance(unit, tuple):
                labels[f"{variable.over[0]}_unit"] = (
                    variable.over[:1],
                    [each or "1" for each in unit],
                )
            elif unit is not None and values.dtype.kind != "U":
                about["units"] = unit or "1"
            (labels if variable.is_label else data)[variable.name] = (variable.over, values, about)
        return xr.Dataset(data, labels, {"made_from": type(self).__name__})

    def to_pandas(self, over: str = "") -> pd.DataFrame:
        """The quantities over one dimension as a table; ``attrs["units"]`` has the SI units of its columns.

        Args:
            over: the dimension, such as ``time``; that of the first quantity without it.

        Raises:
            InputError: nothing has that dimension; which there are.
        """
        data = self.to_xarray()
        dimensions = [variable.dims for variable in data.data_vars.values()]
        known = list(dict.fromkeys(str(dims[0]) for dims in dimensions if dims))
        if over not in known and (over or not known):
            what = f"no quantity is over {over or 'anything'}"
            raise InputError.of("over", what, f"choose one of {', '.join(known)}")
        wanted = next(dims for dims in dimensions if dims and dims[0] == (over or known[0]))
        table = data[[name for name, variable in data.data_vars.items() if variable.dims == wanted]]
        frame = table.to_dataframe()
        frame.attrs["units"] = {
            str(name): data[name].attrs["units"] for name in frame if "units" in data[name].attrs
        }
        return frame

    def plot(self, *names: str, axes: Axes | Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Draw it with Matplotlib, and give the axes back to be restyled; see `tauloop.plot`."""
        # a part of reports, which stand above all that has quantities
        draw = sys.modules["tauloop"].plot
        drawn: tuple[Axes, ...] = draw(self, *names, axes=axes)
        return drawn
