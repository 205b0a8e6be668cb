"""Public names of a package: those that it imports, or that are imported when they are first asked for (PEP 562).

Whoever takes one compiled function from the cache then waits for no other part of Tauloop, nor for the libraries that
these parts need.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


def public_names(package: str) -> tuple[Callable[[], list[str]], list[str]]:
    """The function ``__dir__`` of a package, and its ``__all__``: what it has imported from its modules.

    Args:
        package: its full name; this is its last statement.
    """
    own = {"annotations", public_names.__name__}
    imported = vars(sys.modules[package]).items()
    public = sorted(
        name for name, value in imported if not (name.startswith("_") or name in own or isinstance(value, ModuleType))
    )
    return public.copy, public


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]], eager: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package with late names, and its ``__all__``.

    Args:
        package: its full name.
        homes: public names by the module below the package that has them, such as "model". No name may be that of a
            module beside it: once that is imported Python finds the module.
        eager: its other public names.
    """
    places = {name: module for module, names in homes.items() for name in names}
    public = sorted([*places, *eager])

    def resolve(name: str) -> Any:
        if name not in places:
            text = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=sys.modules[package])  # so that Python says what is near
        value = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, value)  # so that it is asked for once
        return value

    return resolve, public.copy, public
