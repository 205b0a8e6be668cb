"""What tests of commands share."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tauloop.cli.commands import COMMANDS

#: The bar of the command line, s.
SOON = 2.0


def function_of(path: str) -> Callable[..., None]:
    """Return the function of a command such as ``plan stroke``."""
    command = COMMANDS[path]
    function: Callable[..., None] = getattr(
        importlib.import_module(f"tauloop.cli.{command.module}"), command.function
    )
    return function


def written_by(command: Any) -> dict[str, Any]:
    """Return the kinds of files that a command writes, by parameter; None for an argument."""
    while command is not None:
        if (kinds := getattr(command, "kinds", None)) is not None:
            return dict.fromkeys(getattr(command, "writes", ())) | kinds
        command = getattr(command, "__wrapped__", None)
    return {}
