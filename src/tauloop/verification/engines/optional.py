"""Optional engines: a missing one is reported with the command that installs it."""

from __future__ import annotations

import importlib
from typing import Any

from tauloop.common.errors import EngineError


def engine_module(module: str, name: str) -> Any:
    """Return an engine's Python module.

    Args:
        module: name to import.
        name: name of the engine, for the message.

    Raises:
        EngineError: it is not installed, or its shared libraries cannot be loaded.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EngineError.of(
            name, f"cannot be imported ({error})", "pip install 'tauloop[engines]'"
        ) from error
