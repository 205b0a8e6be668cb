"""Named quantities with units, and their conversion to xarray, pandas and Matplotlib.

The metadata of a field define its quantities: those of an object (`tabulated`), or those of several
items (`item_rows`). A class overrides `Tabular.variables` if names, units or values depend on its
machine or are computed. The three libraries are imported when they are needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tauloop.common.errors import InputError, reports_missing_extras
from tauloop.common.plain import PlainData
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

#: Key, in the metadata of a field, of the function that yields the quantities of its value.
_METADATA = "quantities"
#: Dimensions of quantities over time.
TIME_DIMENSIONS = ("time",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variable:
    """A named quantity.

    Attributes:
        name: ``quantity``, or ``quantity.channel`` for channels with different units.
        values: numbers or texts, with an axis for each dimension; None becomes NaN.
        over: names of the dimensions. A variable over itself contains the labels of this dimension.
        unit: SI unit, "" for a pure number, None if it is not known; a tuple if rows have different
            units.
    """

    name: str
    values: object
    over: tuple[str, ...]
    unit: str | tuple[str, ...] | None = ""

    @property
    def quantity(self) -> str:
        """The name without the channel."""
        return self.name.partition(".")[0]

    @property
    def is_label(self) -> bool:
        """Whether the variable contains the labels of a dimension."""
        return self.over == (self.name,)

    def array(self) -> np.ndarray:
        """Return the values as an array of numbers or texts."""
        import numpy as np

        values = np.asarray(self.values)
        return values if values.dtype.kind in "Ui" else np.asarray(values, dtype=float)


def time_axis(values: Any) -> Variable:
    """Return times (N,), s, as the variable with the labels of the dimension ``time``."""
    return Variable(name=TIME_DIMENSIONS[0], values=values, over=TIME_DIMENSIONS, unit="s")


def columns(
    quantity: str,
    names: Sequence[str],
    units: Sequence[str | None],
    values: Any,
    over: tuple[str, ...] = TIME_DIMENSIONS,
) -> Iterator[Variable]:
    """Yield the channels of a quantity, with names ``quantity.name``.

    Args:
        quantity: name of the quantity, such as ``force``.
        names, units: names and units of the columns (n).
        values: values (..., n).
        over: dimensions of the other axes.
    """
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        yield Variable(name=f"{quantity}.{name}", values=values[..., i], over=over, unit=unit)


def rows(
    over: str,
    labels: Iterable[str],
    units: Iterable[str] | Mapping[str, str] = MappingProxyType({}),
    **quantities: Any,
) -> Iterator[Variable]:
    """Yield the quantities of named items, with a row for each item.

    Args:
        over: kind of the items, such as ``parameter``.
        labels: names of the items (N,).
        units: unit of each row (N,), or units of quantities by name; by default all are pure
            numbers.
        quantities: values (N,) by name.
    """
    row_units = None if isinstance(units, Mapping) else tuple(units)
    yield Variable(name=over, values=list(labels), over=(over,))
    for name, values in quantities.items():
        unit = units.get(name, "") if isinstance(units, Mapping) else row_units
        yield Variable(name=name, values=values, over=(over,), unit=unit)


def tabulated(path: str = "") -> MappingProxyType[str, Any]:
    """Return metadata of a field whose value, or an attribute of it, is `Tabular`.

    Args:
        path: path of attributes from the value to the `Tabular` object, separated by dots.
    """

    def quantities(value: Any) -> Iterable[Variable]:
        stated: Iterable[Variable] = (attrgetter(path)(value) if path else value).variables()
        return stated

    return MappingProxyType({_METADATA: quantities})


def item_rows(
    over: str, *names: str, label: str = "name", unit: str = "", path: str = ""
) -> MappingProxyType[str, Any]:
    """Return metadata of a field with several items, each of which has a row (see `rows`).

    Args:
        over: kind of the items, such as ``parameter``.
        names: names of the quantities, which are attributes of the items.
        label: attribute with the name of an item.
        unit: attribute with the unit of an item's quantities; "" for pure numbers.
        path: path of attributes from the value to the items, separated by dots.

    Examples:
        >>> from dataclasses import field
        >>> from tauloop.common.records import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Masses(Tabular):
        ...     items: tuple[complex, ...] = field(metadata=item_rows("item", "imag", label="real"))
        >>> [variable.name for variable in Masses(items=(1 + 2j, 3 + 4j)).variables()]
        ['item', 'imag']
    """

    def quantities(value: Any) -> Iterable[Variable]:
        items = attrgetter(path)(value) if path else value
        labels = [getattr(item, label) for item in items]
        values = {name: list(map(attrgetter(name), items)) for name in names}
        if not unit:
            return rows(over, labels, **values)
        return rows(over, labels, [getattr(item, unit) for item in items], **values)

    return MappingProxyType({_METADATA: quantities})


class Tabular(PlainData, ReprMixin):
    """Base class of objects with named quantities: trajectories, and all results."""

    __slots__ = ()

    def variables(self) -> Iterable[Variable]:
        """Return the quantities with units and dimensions, those of the default table first.

        They follow from the metadata of the fields; a derived class may override this method.
        """
        for item in fields(self):  # type: ignore[arg-type]
            quantities = item.metadata.get(_METADATA)
            if quantities is not None:
                yield from quantities(getattr(self, item.name))

    @reports_missing_extras()
    def to_xarray(self) -> xr.Dataset:
        """Return all quantities as labeled arrays.

        ``attrs["units"]`` of an array is its SI unit, "1" for a pure number. If rows have different
        units, such as parameters, the units are an additional coordinate: ``parameter_unit`` for
        ``parameter``.
        """
        import xarray as xr

        data, labels = dict[str, Any](), dict[str, Any]()
        for variable in self.variables():
            unit, values = variable.unit, variable.array()
            attributes: dict[str, str] = {}
            if isinstance(unit, tuple):
                row_units = [row_unit or "1" for row_unit in unit]
                labels[f"{variable.over[0]}_unit"] = (variable.over[:1], row_units)
            elif unit is not None and values.dtype.kind != "U":
                attributes["units"] = unit or "1"
            target = labels if variable.is_label else data
            target[variable.name] = (variable.over, values, attributes)
        return xr.Dataset(data, labels, {"made_from": type(self).__name__})

    def to_pandas(self, over: str = "") -> pd.DataFrame:
        """Return the quantities over a dimension as a table.

        ``attrs["units"]`` contains the SI units of the columns.

        Args:
            over: name of the dimension, such as ``time``; by default that of the first quantity.

        Raises:
            InputError: no quantity has this dimension.
        """
        data = self.to_xarray()
        dimensions = [variable.dims for variable in data.data_vars.values()]
        known = list(dict.fromkeys(str(dims[0]) for dims in dimensions if dims))
        if over not in known and (over or not known):
            what = f"no quantity has the dimension {over!r}" if over else "there are no quantities"
            raise InputError.of("over", what, f"choose one of {', '.join(known)}")
        chosen = next(dims for dims in dimensions if dims and dims[0] == (over or known[0]))
        table = data[[name for name, variable in data.data_vars.items() if variable.dims == chosen]]
        frame = table.to_dataframe()
        frame.attrs["units"] = {
            str(name): data[name].attrs["units"] for name in frame if "units" in data[name].attrs
        }
        return frame

    def to_latex(
        self,
        over: str = "",
        *,
        columns: Sequence[str] = (),
        units: Mapping[str, str] = MappingProxyType({}),
        digits: int = 4,
        caption: str = "",
        label: str = "",
    ) -> str:
        """Return a table for LaTeX; see `tauloop.display.latex_table`."""
        written: str = sys.modules["tauloop"].display.latex_table(
            self, over, columns=columns, units=units, digits=digits, caption=caption, label=label
        )
        return written

    def to_markdown(
        self,
        over: str = "",
        *,
        columns: Sequence[str] = (),
        units: Mapping[str, str] = MappingProxyType({}),
        digits: int = 4,
    ) -> str:
        """Return a table in Markdown; see `tauloop.display.markdown_table`."""
        written: str = sys.modules["tauloop"].display.markdown_table(
            self, over, columns=columns, units=units, digits=digits
        )
        return written

    @reports_missing_extras()
    def plot(self, *names: str, axes: Axes | Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Plot with Matplotlib and return the axes, which can be restyled; see `tauloop.plot`."""
        # This module cannot import the package of plots, which imports this module.
        draw = sys.modules["tauloop"].plot
        drawn: tuple[Axes, ...] = draw(self, *names, axes=axes)
        return drawn
