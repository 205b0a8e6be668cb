"""Settings of the running command that commands need not take as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tauloop.mechanism.model import Mechanism

#: Options of every command, set while a command runs, by their names in Python.
ASKED: ContextVar[Mapping[str, Any]] = ContextVar("ASKED", default=MappingProxyType({}))


#: The machine that the running command has loaded.
LOADED_MACHINE: ContextVar[Mechanism | None] = ContextVar("LOADED_MACHINE", default=None)


def is_quiet() -> bool:
    """True if the running command prints problems only (`--quiet`)."""
    return bool(ASKED.get().get("quiet"))


def is_json() -> bool:
    """True if the running command prints JSON (`--json`)."""
    return bool(ASKED.get().get("as_json"))
