"""A log as an `xarray.Dataset`: one variable ``quantity.channel`` per channel, over time in s.

``log["position.motor_1"]`` has dimension ``time`` and ``attrs`` ``units`` (SI), ``quantity``,
``channel`` and ``source``. The channel is the name of an actuator or coordinate, so channel
names link the log to the mechanism. Units may differ between channels (m for a cart, rad for a wrist), and a
quantity may be measured on only some channels.

`Signals` contains the same data as plain arrays. The query, preparation and identification functions
accept both forms. `Signals` avoids importing xarray (with pandas), which takes longer than a fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tauloop.common.datasets import Tabular
from tauloop.common.errors import InputError, LogError
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.mechanism.suggestions import listing, suggestion, unknown_names

if TYPE_CHECKING:
    import xarray as xr

#: Name of the dimension and of its coordinate, s.
TIME = "time"

_MAP_REMEDY = "map a column to it when reading the log"
#: A log in either form.
Log: TypeAlias = "xr.Dataset | Signals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel(ReprMixin):
    """Samples (N,) of one quantity on one channel, in an SI unit."""

    quantity: str
    channel: str
    values: np.ndarray
    unit: str
    source: str = ""

    @property
    def name(self) -> str:
        """Return ``quantity.channel``."""
        return f"{self.quantity}.{self.channel}"


def port_channels(
    quantity: str, columns: Sequence[str], units: Sequence[str], values: np.ndarray
) -> list[Channel]:
    """Return the channels of samples (N, n) by the names and units of their columns."""
    return [
        Channel(
            quantity=quantity, channel=name, values=np.ascontiguousarray(values[:, i]), unit=unit
        )
        for i, (name, unit) in enumerate(zip(columns, units, strict=True))
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signals(ReprMixin):
    """A log as plain arrays.

    Attributes:
        time: time stamps (N,), s.
        channels: channels, each with N samples.
        interpolated: number of interpolated samples by channel name.
        notes: messages about defects that the reader detected and how it treated them, such as a
            truncated bag or zero stamps.
    """

    time: np.ndarray
    channels: tuple[Channel, ...]
    interpolated: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def part(self, samples: slice) -> Signals:
        """Return a range of the samples as views, without copies."""
        channels = tuple(
            replace(channel, values=channel.values[samples]) for channel in self.channels
        )
        return replace(self, time=self.time[samples], channels=channels)

    def dataset(self) -> xr.Dataset:
        """Return the log as labeled arrays."""
        log = build_log(self.time, self.channels)
        return log.assign_attrs(notes=list(self.notes)) if self.notes else log


def units_of(variable: xr.DataArray | xr.Variable) -> str | None:
    """Return ``attrs["units"]``, or ``attrs["unit"]`` of older logs; None if both are absent."""
    units = variable.attrs.get("units", variable.attrs.get("unit"))
    return None if units is None else str(units)


def as_signals(log: Log) -> Signals:
    """Return a log in either form as plain arrays, without copies.

    Raises:
        InputError: it is neither `Signals` nor an `xarray.Dataset`.
    """
    if isinstance(log, Signals):
        return log
    if not hasattr(log, "data_vars"):
        remedy = "give a path, a pandas.DataFrame, an xarray.Dataset or Signals"
        raise InputError.of("log", f"is of type {type(log).__name__}", remedy)
    listed_channels = (
        Channel(
            quantity=variable.attrs["quantity"],
            channel=variable.attrs["channel"],
            values=variable.to_numpy(),
            unit=units_of(variable) or "",
            source=variable.attrs.get("source", ""),
        )
        for variable in log.data_vars.values()
    )
    return Signals(time=log[TIME].to_numpy(), channels=tuple(listed_channels))


def build_log(time: np.ndarray, signals: Iterable[Channel]) -> xr.Dataset:
    """Return a log of channels over one time axis.

    Args:
        time: time stamps (N,), s.
        signals: channels, each with N samples.

    Returns:
        The labeled arrays.
    """
    import xarray as xr

    variables = {}
    for signal in signals:
        attributes = {
            "units": signal.unit,
            "quantity": signal.quantity,
            "channel": signal.channel,
            "source": signal.source,
        }
        variables[signal.name] = ((TIME,), signal.values, attributes)
    return xr.Dataset(variables, coords={TIME: ((TIME,), time, {"units": "s"})})


def log_of(table: Tabular, *quantities: str) -> xr.Dataset:
    """Return a log of some quantities of a table, without channels that contain NaN or infinity."""
    variables = {variable.name: variable for variable in table.variables()}
    chosen = (
        Channel(
            quantity=v.quantity,
            channel=v.name.partition(".")[2],
            values=v.array(),
            unit=str(v.unit),
        )
        for v in variables.values()
        if v.quantity in quantities
    )
    complete = (channel for channel in chosen if np.isfinite(channel.values).all())
    return build_log(variables[TIME].array(), complete)


def by_channel(log: Log, quantity: str) -> dict[str, np.ndarray]:
    """Return the samples (N,) of a quantity by channel in log order, without copies."""
    return {
        channel.channel: channel.values
        for channel in as_signals(log).channels
        if channel.quantity == quantity
    }


def channels(log: Log, quantity: str) -> tuple[str, ...]:
    """Return the channels on which a quantity was measured, in log order."""
    return tuple(by_channel(log, quantity))


def require_quantity(log: Log, quantity: str) -> None:
    """Raise an error if no channel of a log has the quantity.

    Raises:
        LogError: the log lacks the quantity.
    """
    known = sorted({channel.quantity for channel in as_signals(log).channels})
    if quantity not in known:
        what = f"the log does not have this quantity; it has {listing(known) or 'none'}"
        raise LogError.of(quantity, what, suggestion(quantity, known) or _MAP_REMEDY)


def samples(log: Log, quantity: str, names: Sequence[str] | None = None) -> np.ndarray:
    """Return the samples of a quantity as a matrix.

    Args:
        log: a log as from `read_log`.
        quantity: name of the quantity, such as ``"position"``.
        names: channels in the wanted order; all by default.

    Returns:
        Samples (N, n) in SI units, as a copy.

    Raises:
        LogError: the log lacks the quantity or some of the channels.
    """
    require_quantity(log, quantity)
    values = by_channel(log, quantity)
    wanted = tuple(values) if names is None else tuple(names)
    what = f"not in the log; {quantity} was measured on {listing(values)}"
    LogError.raise_if_any(unknown_names(wanted, values, what, f"{quantity}.{{}}", _MAP_REMEDY))
    return np.stack([values[name] for name in wanted], axis=1)


def units(log: Log, quantity: str) -> dict[str, str]:
    """Return the SI unit of a quantity on each of its channels."""
    return {
        channel.channel: channel.unit
        for channel in as_signals(log).channels
        if channel.quantity == quantity
    }
