"""Whether the command that runs is to print problems alone."""

from __future__ import annotations

from contextvars import ContextVar

#: Set by the option `--quiet`.
QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)


def is_quiet() -> bool:
    """Whether the command that runs was asked to be quiet."""
    return QUIET.get()
