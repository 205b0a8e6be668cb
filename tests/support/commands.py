"""What tests of commands share."""

from __future__ import annotations

#: The bar of the command line, s.
SOON = 2.0


def written_by(command: object) -> tuple[str, ...]:
    while command is not None:
        if writes := getattr(command, "writes", None):
            return writes
        command = getattr(command, "__wrapped__", None)
    return ()
