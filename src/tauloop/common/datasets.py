"""Named quantities with units, and their conversion to xarray, pandas and Matplotlib.

The metadata of a field state the quantities of its value:

- `dimension`, `numbered`: the labels of a dimension;
- `quantity_over`: one quantity;
- `channels`: channels with names and units;
- `tabulated`, `tabulated_by`: the quantities of another object;
- `item_rows`: the quantities of several items.

Names and units may be paths to attributes of the result, such as those of its model. `in_table`
adds the quantities of a property. A class overrides `Tabular.variables` only if its quantities are
sampled or selected on request. xarray, pandas and Matplotlib are imported when they are needed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from tauloop.common.errors import InputError, reports_missing_extras
from tauloop.common.plain import PlainData
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Key in the metadata of a field, and attribute of a property's function, for a tuple of functions.
#: Each yields quantities from the object, the name of the field or property, and its value.
_METADATA = "quantities"
#: Dimensions of quantities over time.
TIME_DIMENSIONS = ("time",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variable:
    """A named quantity.

    Attributes:
        name: ``quantity``, or ``quantity.channel`` for channels with different units.
        values: numbers or texts, with an axis for each dimension; None becomes NaN.
        over: names of the dimensions. If the only one is `name`, the values are its labels.
        unit: SI unit, "" if dimensionless, None if it is not known; a tuple if rows have different
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
    """Return times (N,) in seconds as the labels of the dimension ``time``."""
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
        over: names of the dimensions of all axes but the last.
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
        units: unit of each row (N,), or units of quantities by name; by default all values are
            dimensionless.
        quantities: values (N,) by name.
    """
    row_units = None if isinstance(units, Mapping) else tuple(units)
    yield Variable(name=over, values=list(labels), over=(over,))
    for name, values in quantities.items():
        unit = units.get(name, "") if isinstance(units, Mapping) else row_units
        yield Variable(name=name, values=values, over=(over,), unit=unit)


def _quantity_metadata(
    *sources: Callable[[Any, str, Any], Iterable[Variable]],
) -> MappingProxyType[str, Any]:
    """Return metadata of a field with functions that yield its quantities."""
    return MappingProxyType({_METADATA: sources})


def several(*metadata: Mapping[str, Any]) -> MappingProxyType[str, Any]:
    """Return metadata of a field that states several quantities, each by its own metadata."""
    return _quantity_metadata(*(source for item in metadata for source in item[_METADATA]))


def at_path(value: Any, path: str) -> Any:
    """Return an attribute by its path with dots; the value itself if the path is empty."""
    return attrgetter(path)(value) if path else value


def dimension(name: str, *, unit: str = "", path: str = "") -> MappingProxyType[str, Any]:
    """Return metadata of a field whose value, or an attribute of it, labels a dimension.

    Args:
        name: name of the dimension, such as ``time``.
        unit: unit of the labels.
        path: path of attributes from the value to the labels.
    """

    def labels(_owner: Any, _field: str, value: Any) -> Iterator[Variable]:
        yield Variable(name=name, values=at_path(value, path), over=(name,), unit=unit)

    return _quantity_metadata(labels)


#: Metadata of a field with the times of all quantities.
OVER_TIME: MappingProxyType[str, Any] = dimension(*TIME_DIMENSIONS, unit="s")


def numbered(name: str, *, axis: int = 0, first: int = 1) -> MappingProxyType[str, Any]:
    """Return metadata of a field with an array whose axis is a dimension with numbers as labels.

    Args:
        name: name of the dimension.
        axis: the axis of the array.
        first: number of the first entry.
    """

    def labels(_owner: Any, _field: str, value: Any) -> Iterator[Variable]:
        numbers = range(first, first + value.shape[axis])
        yield Variable(name=name, values=numbers, over=(name,))

    return _quantity_metadata(labels)


def quantity_over(
    *over: str,
    name: str = "",
    unit: str | None = "",
    units: str = "",
    path: str = "",
) -> MappingProxyType[str, Any]:
    """Return metadata of a field whose value, or an attribute of it, is a quantity.

    Args:
        *over: names of the dimensions.
        name: name of the quantity; by default that of the field.
        unit: SI unit, "" if dimensionless, None if it is not known.
        units: path of attributes from the object to the units of the rows, instead of `unit`.
        path: path of attributes from the value to the array.
    """

    def variables(owner: Any, field_name: str, value: Any) -> Iterator[Variable]:
        yield Variable(
            name=name or field_name,
            values=at_path(value, path),
            over=over,
            unit=tuple(at_path(owner, units)) if units else unit,
        )

    return _quantity_metadata(variables)


def channels(
    *over: str,
    port: str = "",
    names: str | Sequence[str] = (),
    unit: str | None = "",
    units: str | Sequence[str | None] = (),
    name: str = "",
    path: str = "",
) -> MappingProxyType[str, Any]:
    """Return metadata of a field with an array (..., n) of n channels, named ``quantity.channel``.

    An array that is None has no channels.

    Args:
        *over: names of the dimensions before the last axis.
        port: path of attributes from the object to a `tauloop.equations.ports.Port`, or to a pair,
            with the names and units of the channels.
        names: names of the channels, or the path to them, instead of `port`.
        unit: unit of all channels.
        units: units of the channels, or the path to them, instead of `unit`.
        name: name of the quantity; by default that of the field.
        path: path of attributes from the value to the array.

    Examples:
        >>> from dataclasses import field
        >>> import numpy as np
        >>> from tauloop.common.records import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Run(Tabular):
        ...     time: np.ndarray = field(metadata=OVER_TIME)
        ...     force: np.ndarray = field(metadata=channels("time", names=("x", "y"), unit="N"))
        >>> run = Run(time=np.zeros(3), force=np.ones((3, 2)))
        >>> [(variable.name, variable.unit) for variable in run.variables()]
        [('time', 's'), ('force.x', 'N'), ('force.y', 'N')]
    """

    def names_and_units(owner: Any) -> tuple[Sequence[str], Sequence[str | None]]:
        if port:
            source = at_path(owner, port)
            return source if isinstance(source, tuple) else (source.columns, source.units)
        channel_names = at_path(owner, names) if isinstance(names, str) else names
        if not units:
            return channel_names, (unit,) * len(channel_names)
        channel_units = at_path(owner, units) if isinstance(units, str) else units
        return channel_names, channel_units

    def variables(owner: Any, field_name: str, value: Any) -> Iterable[Variable]:
        array = at_path(value, path)
        if array is None:
            return ()
        return columns(name or field_name, *names_and_units(owner), array, over)

    return _quantity_metadata(variables)


def tabulated(path: str = "") -> MappingProxyType[str, Any]:
    """Return metadata of a field whose value, or an attribute of it, is `Tabular`.

    Args:
        path: path of attributes from the value to the `Tabular` object, separated by dots.
    """

    def variables(_owner: Any, _field: str, value: Any) -> Iterable[Variable]:
        quantities: Iterable[Variable] = at_path(value, path).variables()
        return quantities

    return _quantity_metadata(variables)


def tabulated_by(function: Callable[[Any], Iterable[Variable]]) -> MappingProxyType[str, Any]:
    """Return metadata of a field with a function that returns the quantities of its value."""

    def variables(_owner: Any, _field: str, value: Any) -> Iterable[Variable]:
        return function(value)

    return _quantity_metadata(variables)


def item_rows(
    over: str,
    *names: str,
    label: str = "name",
    unit: str = "",
    path: str = "",
    units: Mapping[str, str] = MappingProxyType({}),
) -> MappingProxyType[str, Any]:
    """Return metadata of a field with several items, each of which has a row (see `rows`).

    Args:
        over: kind of the items, such as ``parameter``.
        names: names of the quantities, which are attributes of the items.
        label: attribute with the name of an item; "" if another field labels the dimension.
        unit: attribute with the unit of an item's quantities; "" if dimensionless.
        path: path of attributes from the value to the items, separated by dots.
        units: units of quantities by name, instead of `unit`.

    Examples:
        >>> from dataclasses import field
        >>> from tauloop.common.records import dataclass
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Masses(Tabular):
        ...     items: tuple[complex, ...] = field(metadata=item_rows("item", "imag", label="real"))
        >>> [variable.name for variable in Masses(items=(1 + 2j, 3 + 4j)).variables()]
        ['item', 'imag']
    """

    def variables(_owner: Any, _field: str, value: Any) -> Iterator[Variable]:
        items = at_path(value, path)
        if label:
            yield Variable(name=over, values=[getattr(item, label) for item in items], over=(over,))
        row_units = tuple(getattr(item, unit) for item in items) if unit else ""
        for name in names:
            values = [getattr(item, name) for item in items]
            yield Variable(
                name=name, values=values, over=(over,), unit=row_units or units.get(name, "")
            )

    return _quantity_metadata(variables)


def in_table(metadata: Mapping[str, Any]) -> Callable[[_Function], _Function]:
    """Return a decorator that adds the quantities of a property to tables.

    Write it below `@property`. By default the quantities of properties follow those of the fields
    (see `Tabular.quantity_order`).

    Args:
        metadata: metadata as for a field, such as those of `channels`.
    """

    def decorate(function: _Function) -> _Function:
        setattr(function, _METADATA, metadata[_METADATA])
        return function

    return decorate


@functools.cache
def _sources(cls: type) -> Mapping[str, Any]:
    """Return the functions that yield quantities, by field and then by property."""
    functions = {
        item.name: item.metadata[_METADATA] for item in fields(cls) if _METADATA in item.metadata
    }
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            sources = getattr(getattr(member, "fget", None), _METADATA, None)
            if sources:
                functions[name] = sources
    return functions


class Tabular(PlainData, ReprMixin):
    """Base class of objects with named quantities: trajectories, and all results.

    Attributes:
        quantity_order: names of the quantities and dimensions in the order of tables, if it is not
            that of the fields and properties.
    """

    __slots__ = ()
    quantity_order: ClassVar[tuple[str, ...]] = ()

    def variables(self) -> Iterable[Variable]:
        """Return the quantities with units and dimensions, those of the default table first.

        They follow from the metadata of fields and properties (see `tauloop.common.datasets`); a
        derived class may override this method. A value of None has no quantities.
        """
        cls: type = type(self)
        quantities: list[Variable] = []
        for name, sources in _sources(cls).items():
            value = getattr(self, name)
            if value is not None:
                for source in sources:
                    quantities += source(self, name, value)
        if self.quantity_order:
            quantities.sort(key=lambda variable: self.quantity_order.index(variable.quantity))
        return quantities

    @reports_missing_extras()
    def to_xarray(self) -> xr.Dataset:
        """Return all quantities as labeled arrays.

        ``attrs["units"]`` of an array is its SI unit, "1" for a dimensionless quantity. If
        rows have different units, such as parameters, the units are an additional coordinate:
        ``parameter_unit`` for ``parameter``.
        """
        import xarray as xr

        data: dict[str, Any] = {}
        labels: dict[str, Any] = {}
        for variable in self.variables():
            unit = variable.unit
            values = variable.array()
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
        first_dimensions = list(dict.fromkeys(str(dims[0]) for dims in dimensions if dims))
        if over not in first_dimensions and (over or not first_dimensions):
            what = f"no quantity has the dimension {over!r}" if over else "there are no quantities"
            raise InputError.of("over", what, f"choose one of {', '.join(first_dimensions)}")
        table_dimensions = next(
            dims for dims in dimensions if dims and dims[0] == (over or first_dimensions[0])
        )
        table_names = [
            name for name, variable in data.data_vars.items() if variable.dims == table_dimensions
        ]
        table = data[table_names]
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
        latex: str = sys.modules["tauloop"].display.latex_table(
            self, over, columns=columns, units=units, digits=digits, caption=caption, label=label
        )
        return latex

    def to_markdown(
        self,
        over: str = "",
        *,
        columns: Sequence[str] = (),
        units: Mapping[str, str] = MappingProxyType({}),
        digits: int = 4,
    ) -> str:
        """Return a table in Markdown; see `tauloop.display.markdown_table`."""
        markdown: str = sys.modules["tauloop"].display.markdown_table(
            self, over, columns=columns, units=units, digits=digits
        )
        return markdown

    @reports_missing_extras()
    def plot(self, *names: str, axes: Axes | Sequence[Axes] | None = None) -> tuple[Axes, ...]:
        """Plot with Matplotlib and return the axes, which can be restyled; see `tauloop.plot`."""
        # This module cannot import the package of plots, which imports this module.
        draw = sys.modules["tauloop"].plot
        all_axes: tuple[Axes, ...] = draw(self, *names, axes=axes)
        return all_axes
