"""Public names of a package that are imported when they are first asked for (PEP 562).

Whoever takes one compiled function from the cache then waits for no other part of Tauloop, nor for the libraries that
these parts need.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package whose names lie in modules that are imported late.

    Args:
        package: its full name.
        homes: module below the package, such as "model", by public name. No name may be that of a module beside it:
            once that is imported Python finds the module.
    """

    def found(name: str) -> Any:
        if name not in homes:
            text = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=sys.modules[package])  # so that Python says what is near
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # so that it is asked for once
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return found, names
