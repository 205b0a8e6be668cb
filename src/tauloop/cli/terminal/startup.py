"""The state of the process that every command relies on: three open streams, and a usable environment."""

from __future__ import annotations

import os
import sys

#: Sizes of a terminal that variables of the environment may state; a size outside is ignored, as if
#: it were not set.
_SIZES = {"COLUMNS": (20, 10_000), "LINES": (4, 10_000)}


def prepare_process() -> None:
    """Open the standard streams that are closed, and correct variables of the environment that would end a command.

    Without a stream of the number 0, 1 or 2 the next file that is opened gets that number, and what
    a library prints goes into it. Writing to a closed standard output fails, as it does in other
    programs; a closed standard error takes everything and keeps nothing, for a command that has no
    complaint does not need it.
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
    # figures go to files, for which any other backend is one more thing that may be missing
    os.environ["MPLBACKEND"] = "agg"


def _null(flags: int) -> int:
    """Return the null device as an open file; of the lowest free number, which is that of the closed stream."""
    return os.open(os.devnull, flags)


def _is_within(text: str, smallest: int, largest: int) -> bool:
    """Return whether a text is a whole number between two others."""
    try:
        return smallest <= int(text) <= largest
    except ValueError:
        return False
