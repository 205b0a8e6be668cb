"""Import of optional dependencies; the error for a missing one contains the pip command."""

from __future__ import annotations

import importlib
from typing import Any

from tauloop.common.errors import EngineError


def optional_module(module: str, name: str, extra: str, *, note: str = "") -> Any:
    """Return a Python module of an optional dependency.

    Args:
        module: name of the module.
        name: name of the Python package, for the message.
        extra: extra of Tauloop that installs the package.
        note: text that is appended to the remedy.

    Raises:
        EngineError: the package is not installed, or its shared libraries cannot be loaded.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        remedy = f"pip install 'tauloop[{extra}]'"
        raise EngineError.of(
            name, f"cannot be imported ({error})", f"{remedy}; {note}" if note else remedy
        ) from error
