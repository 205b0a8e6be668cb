"""Modules of extras: a missing one is reported with the command that installs it."""

from __future__ import annotations

import importlib
from typing import Any

from tauloop.common.errors import EngineError


def optional_module(module: str, name: str, extra: str, *, note: str = "") -> Any:
    """Return a Python module that an extra of Tauloop installs.

    Args:
        module: name to import.
        name: name of the package, for the message.
        extra: the extra of Tauloop.
        note: addition to the remedy.

    Raises:
        EngineError: it is not installed, or its shared libraries cannot be loaded.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        remedy = f"pip install 'tauloop[{extra}]'"
        raise EngineError.of(
            name, f"cannot be imported ({error})", f"{remedy}; {note}" if note else remedy
        ) from error
