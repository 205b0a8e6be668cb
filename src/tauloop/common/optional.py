"""Modules of extras: a missing one is reported with the command that installs it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tauloop.common.errors import EngineError

#: Packages of the extra `analysis`, which many modules import: the import name and the package's name.
#: Lazy names, workflows and commands report a missing one, so that modules import them as others do.
_ANALYSIS_PACKAGES = {
    "matplotlib": "Matplotlib",
    "pandas": "pandas",
    "scipy": "SciPy",
    "xarray": "xarray",
}


def missing_extra(error: ModuleNotFoundError) -> EngineError | None:
    """Return the report of a missing package of the extra `analysis`; None for any other module."""
    name = _ANALYSIS_PACKAGES.get((error.name or "").partition(".")[0])
    if name is None:
        return None
    remedy = "pip install 'tauloop[analysis]'"
    return EngineError.of(name, "is needed here and is not installed", remedy)


@contextmanager
def reports_missing_extras() -> Iterator[None]:
    """Return a context, or a decorator, that reports a missing package with the extra that installs it.

    Raises:
        EngineError: an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from error


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
