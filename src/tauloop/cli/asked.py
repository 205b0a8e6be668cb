"""What the running command was asked for that commands need not take themselves: how it prints, and its usual files."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tauloop.mechanism.model import Mechanism

#: Set for the time of a command, by the option's name in Python.
ASKED: ContextVar[Mapping[str, Any]] = ContextVar("ASKED", default=MappingProxyType({}))


#: The machine that the running command has loaded.
MACHINE: ContextVar[Mechanism | None] = ContextVar("MACHINE", default=None)


def is_quiet() -> bool:
    """Whether the command that runs was told to print problems alone (`--quiet`)."""
    return bool(ASKED.get().get("quiet"))


def is_json() -> bool:
    """Whether the command that runs prints for machines (`--json`)."""
    return bool(ASKED.get().get("as_json"))
