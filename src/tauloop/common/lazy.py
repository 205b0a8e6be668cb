"""Public names of a package: those that it imports, or that are imported when they are first asked for (PEP 562).

Whoever takes one compiled function from the cache then waits for no other part of Tauloop, nor for
the libraries that these parts need.
"""

from __future__ import annotations

import _ast  # `ast` takes longer to import than all late names to read
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, *own: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package with late names, and its ``__all__``, without rooms.

    Late are the names that its source imports under ``if TYPE_CHECKING:``, where type checkers see
    them; they stand nowhere else. No name may be that of a module beside it: once that is imported
    Python finds the module. Packages that it imports from itself are rooms: the tab key shows them,
    and they are imported when somebody enters.

    Args:
        package: its full name.
        own: public names that it defines itself; names that it imports ``as`` themselves are public
            too.
    """
    module = sys.modules[package]
    path, loader = str(module.__file__), module.__spec__.loader  # type: ignore[union-attr]
    statements = compile(loader.get_data(path), path, "exec", _ast.PyCF_ONLY_AST).body  # type: ignore[union-attr]
    late = [part for node in statements if isinstance(node, _ast.If) for part in node.body]
    places = {name: place for part in late for name, place in _passed_on(part).items()}
    rooms = [name for name, place in places.items() if place == package]
    shown = sorted([*places, *own, *(name for node in statements for name in _passed_on(node))])
    public = [name for name in shown if name not in rooms]

    def resolve(name: str) -> Any:
        if name not in places:
            from tauloop.common.deprecated import old_name

            return old_name(package, name)
        value = (
            import_module(f"{package}.{name}")
            if name in rooms
            else getattr(import_module(places[name]), name)
        )
        setattr(module, name, value)  # so that it is asked for once
        return value

    return resolve, shown.copy, public


def _passed_on(node: _ast.stmt) -> dict[str, str]:
    """The names that ``from module import name as name`` makes names of its package, each with its module."""
    names = node.names if isinstance(node, _ast.ImportFrom) else []
    return {alias.asname: str(node.module) for alias in names if alias.asname}  # type: ignore[attr-defined]
