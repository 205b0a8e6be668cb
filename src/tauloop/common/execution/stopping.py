"""Reasons why a calculation stopped, with the same names in all layers.

Each layer has an enumeration of its reasons: `integrate` (an integration step), `simulation` (a
motion), `drives` (a step of a drive line), `kinematics` (a path of solutions).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

#: The meaning of each member, the same in every layer.
MESSAGES: Mapping[str, str] = {
    "SUCCESS": "the end was reached",
    "EVENT": "terminal event",
    "MAX_STEPS": "too many steps",
    "STEP_TOO_SMALL": "step too small",
    "DIVERGED": "grew without bound",
    "SINGULAR": "singular or unreachable pose",
    "LOOPS_LOST": "the projection onto the loops failed",
    "CHATTERING": "events followed each other without end",
    "INVALID_PARAMETERS": "the parameters contradict each other",
}


class _WithOldNames(enum.EnumMeta):
    """An enumeration whose members are also available by their old names, with a warning."""

    def __getattr__(cls, name: str) -> Any:
        from tauloop.common.names.deprecated import MEMBERS, warn

        old = f"{cls.__name__}.{name}"
        if old not in MEMBERS:
            raise AttributeError(f"{cls.__name__} has no member {name!r}", name=name, obj=cls)
        warn(old, MEMBERS[old], stacklevel=2)
        return cls[MEMBERS[old].rpartition(".")[2]]


class StopReason(enum.Enum, metaclass=_WithOldNames):
    """Base class of the enumerations of reasons why a calculation stopped."""

    @property
    def message(self) -> str:
        """The reason in words: the value if it is a text, otherwise the entry of `MESSAGES`."""
        return self.value if isinstance(self.value, str) else MESSAGES[self.name]

    @property
    def is_success(self) -> bool:
        """Whether the calculation reached its end, or a terminal event."""
        return self.name in ("SUCCESS", "EVENT")


class StopCode(int, StopReason):
    """Base class of enumerations whose members are numbers, which compiled code reports."""
