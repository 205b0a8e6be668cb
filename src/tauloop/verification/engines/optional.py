"""Import of optional engines; the error for a missing engine contains the install command."""

from __future__ import annotations

from typing import Any

from tauloop.common.optional import optional_module


def engine_module(module: str, name: str) -> Any:
    """Return an engine's Python module.

    Args:
        module: name to import.
        name: name of the engine, for the message.

    Raises:
        EngineError: the engine is not installed, or its shared libraries cannot be loaded.
    """
    return optional_module(module, name, "engines")
