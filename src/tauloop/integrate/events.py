"""Events: functions of the state whose zeros are looked for while a motion is carried forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from tauloop.records import dataclass
from tauloop.shown import Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Shown):
    """A function of the state that is zero at an event.

    Simulations look at it where steps begin and end, all others in their middle too: two zeros within one step, or half
    of one, go unseen, so choose `max_step` accordingly.

    Attributes:
        name: for the record.
        function: times (N,), coordinates (N, n_q) and velocities (N, n_v) -> values (N,).
        direction: 1 for zeros through which it rises, -1 for those through which it falls, 0 for both.
        is_terminal: whether the motion ends there.
    """

    name: str
    function: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    direction: Literal[-1, 0, 1] = 0
    is_terminal: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence(Shown):
    """An event that took place.

    Attributes:
        name: of the event.
        time: s.
        q, v: coordinates (n_q,) and velocities (n_v,) there.
        is_terminal: whether the motion ended there.
    """

    name: str
    time: float
    q: np.ndarray
    v: np.ndarray
    is_terminal: bool
