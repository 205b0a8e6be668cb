"""Loops put together: closing them, their rank, what moves, what is held, and what limits it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.assembly.assembly import Assembly, assemble
    from tauloop.assembly.locks import Locks
    from tauloop.assembly.loops import Loops
    from tauloop.assembly.ports import ACTUATORS, PLATFORM, Entry, Port
    from tauloop.assembly.spins import Spin, find_spins
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "ACTUATORS": "ports",
            "Assembly": "assembly",
            "Entry": "ports",
            "Locks": "locks",
            "Loops": "loops",
            "PLATFORM": "ports",
            "Port": "ports",
            "Spin": "spins",
            "assemble": "assembly",
            "find_spins": "spins",
        },
    )

__all__ = [
    "ACTUATORS",
    "PLATFORM",
    "Assembly",
    "Entry",
    "Locks",
    "Loops",
    "Port",
    "Spin",
    "assemble",
    "find_spins",
]
