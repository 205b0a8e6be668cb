"""A log as an `xarray.Dataset`: one variable per channel, named ``quantity.channel``, over a time axis in seconds.

``log["position.motor_1"]`` has dimension ``time`` and ``attrs`` ``unit`` (SI), ``quantity``, ``channel`` and
``source``. The channel is the name of an actuator or of a coordinate, so that a log fits a mechanism by names, units
may differ between channels (m of a cart, rad of a wrist), and a quantity may be measured on some channels only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from tauloop.errors import LogError, Problem
from tauloop.mechanism.suggestions import listing, suggestion

#: Name of the dimension and of its coordinate, s.
TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """Samples (N,) of one quantity on one channel, in an SI unit."""

    quantity: str
    channel: str
    values: np.ndarray
    unit: str
    source: str = ""

    @property
    def name(self) -> str:
        """``quantity.channel``."""
        return f"{self.quantity}.{self.channel}"


def build_log(time: np.ndarray, signals: Iterable[Channel]) -> xr.Dataset:
    """Put channels over one time axis.

    Args:
        time: (N,) s.
        signals: each with N samples.

    Returns:
        The labelled arrays.
    """
    variables = {
        s.name: (
            (TIME,),
            s.values,
            {"unit": s.unit, "quantity": s.quantity, "channel": s.channel, "source": s.source},
        )
        for s in signals
    }
    return xr.Dataset(variables, coords={TIME: ((TIME,), time, {"unit": "s"})})


def channels(log: xr.Dataset, quantity: str) -> tuple[str, ...]:
    """Names of the channels on which a quantity was measured, in the order of the log."""
    return tuple(v.attrs["channel"] for v in log.data_vars.values() if v.attrs["quantity"] == quantity)


def samples(log: xr.Dataset, quantity: str, names: Sequence[str] | None = None) -> np.ndarray:
    """Samples of one quantity as a matrix.

    Args:
        log: a log as of `read_log`.
        quantity: such as ``"position"``.
        names: channels in the order wanted; all by default.

    Returns:
        (N, n) in SI units, a copy.

    Raises:
        LogError: the log lacks the quantity or some of the channels.
    """
    present = channels(log, quantity)
    wanted = present if names is None else tuple(names)
    if not present:
        known = sorted({str(v.attrs["quantity"]) for v in log.data_vars.values()})
        raise LogError(
            Problem(
                where=quantity,
                what=f"the log has no such quantity; it has {listing(known) or 'nothing'}",
                remedy=suggestion(quantity, known) or "map columns to it when reading the log",
            )
        )
    problems = [
        Problem(
            where=f"{quantity}.{name}",
            what=f"not in the log; {quantity} was measured on {listing(present)}",
            remedy=suggestion(name, present) or "map a column to it when reading the log",
        )
        for name in wanted
        if name not in present
    ]
    if problems:
        raise LogError(problems)
    return np.stack([log[f"{quantity}.{name}"].to_numpy() for name in wanted], axis=1)


def units(log: xr.Dataset, quantity: str) -> dict[str, str]:
    """SI unit of a quantity on each of its channels."""
    return {name: str(log[f"{quantity}.{name}"].attrs["unit"]) for name in channels(log, quantity)}
