"""Process state that every command relies on: three open streams, and a usable environment."""

from __future__ import annotations

import os
import sys

#: Valid terminal sizes in environment variables; other sizes are ignored.
_SIZES = {"COLUMNS": (20, 10_000), "LINES": (4, 10_000)}


def prepare_process() -> None:
    """Open closed standard streams, and correct environment variables that would end a command.

    Without a stream 0, 1 or 2 the next opened file gets that number, and a library's output goes
    into
    it. Writing to a closed standard output fails, as in other programs. A closed standard error
    discards everything, because a command without errors does not need it.
    """
    if sys.stdin is None:
        sys.stdin = open(_null(os.O_RDONLY), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = open(_null(os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(_null(os.O_WRONLY), "w", encoding="utf-8", buffering=1)
    for name, (smallest, largest) in _SIZES.items():
        stated = os.environ.get(name)
        if stated is not None and not _is_within(stated, smallest, largest):
            del os.environ[name]
    # Figures are written to files; another backend could be missing.
    os.environ["MPLBACKEND"] = "agg"


def _null(flags: int) -> int:
    """Return the open null device; it gets the lowest free number, that of the closed stream."""
    return os.open(os.devnull, flags)


def _is_within(text: str, smallest: int, largest: int) -> bool:
    """Return whether a text is a whole number in a range."""
    try:
        return smallest <= int(text) <= largest
    except ValueError:
        return False
