"""Events: functions of the state whose zeros are located during an integration."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field
from typing import Literal

import numpy as np

from tauloop.common.errors import InputError
from tauloop.common.plain import OMITTED, json_keys
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

_COMPARISON = re.compile(r"\s*(?P<name>[^<>=\s]+)\s*(?P<sign>[<>])\s*(?P<value>[^<>=\s]+)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(ReprMixin):
    """A function of the state that is zero at an event.

    Simulations check the sign of the function at the ends of steps; all other runs also check it in
    the middle of steps. Two zeros between two checks are missed, so choose `max_step` accordingly.

    Attributes:
        name: name of the event, for results.
        function: function of times (N,), coordinates (N, n_q) and velocities (N, n_v) that returns
            values (N,).
        direction: 1 for zeros at which the function increases, -1 for zeros at which it decreases,
            0 for both.
        is_terminal: whether the motion ends at the event.
    """

    name: str
    function: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    direction: Literal[-1, 0, 1] = 0
    is_terminal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence(ReprMixin):
    """An event that occurred.

    Attributes:
        name: name of the event.
        time: time, s.
        q, v: coordinates (n_q,) and velocities (n_v,) at the event.
        is_terminal: whether the motion ended at the event.
    """

    name: str
    time: float = field(metadata=json_keys("time_s"))
    q: np.ndarray = field(metadata=OMITTED)
    v: np.ndarray = field(metadata=OMITTED)
    is_terminal: bool = field(metadata=OMITTED)

    @property
    def words(self) -> str:
        """Return a line of text for the terminal."""
        return f"{self.time:.9g} s: {self.name}{', the end' if self.is_terminal else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePassed(ReprMixin):
    """An event defined by a quantity that passes a value.

    Attributes:
        name: name of the quantity.
        direction: 1 if the quantity rises above the value, -1 if it falls below.
        value: value, SI.
        is_terminal: whether the motion ends at the event.
    """

    name: str
    direction: Literal[-1, 1]
    value: float
    is_terminal: bool

    @property
    def label(self) -> str:
        """The comparison as text, for results."""
        return f"{self.name} {'>' if self.direction > 0 else '<'} {self.value:g}"


def comparison(option: str, text: str, *, is_terminal: bool) -> ValuePassed:
    """Return an event from a text such as ``platform.z<-0.7``.

    Raises:
        InputError: the text is not a comparison.
    """
    match = _COMPARISON.fullmatch(text)
    try:
        value = float(match["value"]) if match else np.nan
    except ValueError:
        value = np.nan
    if match is None or not np.isfinite(value):
        what = f"{text!r} is not NAME<NUMBER or NAME>NUMBER"
        remedy = (
            "write, for example, 'platform.z<-0.7' in SI units, with quotation marks for the shell"
        )
        raise InputError.of(option, what, remedy)
    direction: Literal[-1, 1] = 1 if match["sign"] == ">" else -1
    return ValuePassed(
        name=match["name"], direction=direction, value=value, is_terminal=is_terminal
    )
