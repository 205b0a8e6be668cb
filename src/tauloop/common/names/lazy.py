"""Public names of a package that are imported when they are first used (PEP 562).

For example, code that uses a compiled function from the cache does not wait for the import of other
parts of Tauloop and of the libraries that these parts need.
"""

from __future__ import annotations

import _ast  # Importing `ast` takes longer than reading all lazy names.
import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, *defined: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package with lazy names.

    Lazy names are the names that the source of the package imports under ``if TYPE_CHECKING:``,
    where type checkers see them. A lazy name must not equal the name of a module in the package,
    because Python finds the module once it is imported. Subpackages that the package imports from
    itself are not in ``__all__``: tab completion shows them, and they are imported when they are
    used.

    Args:
        package: full name of the package.
        defined: public names that the package defines. Names that it imports ``as`` themselves are
            also public.
    """
    module = sys.modules[package]
    path, loader = str(module.__file__), module.__spec__.loader  # type: ignore[union-attr]
    statements = compile(loader.get_data(path), path, "exec", _ast.PyCF_ONLY_AST).body  # type: ignore[union-attr]
    module_of: dict[str, str] = {}
    exported: list[str] = []
    for node in statements:
        exported += _exports(node)
        if isinstance(node, _ast.If):
            for inner in node.body:
                module_of |= _exports(inner)
    subpackages = [name for name, source in module_of.items() if source == package]
    names = sorted([*module_of, *defined, *exported])
    public = [name for name in names if name not in subpackages]

    def resolve(name: str) -> Any:
        if name not in module_of:
            from tauloop.common.names.deprecated import old_name

            return old_name(package, name)
        is_subpackage = name in subpackages
        target = f"{package}.{name}" if is_subpackage else module_of[name]
        try:
            # Most modules are already imported; then garbage collection need not be disabled.
            with nullcontext() if target in sys.modules else without_collection():
                source = import_module(target)
        except ModuleNotFoundError as error:
            from tauloop.common.errors import missing_extra

            missing = missing_extra(error)
            if missing is None:
                raise
            raise missing from error
        value = source if is_subpackage else getattr(source, name)
        setattr(module, name, value)  # Python does not call this function again for the name.
        return value

    return resolve, names.copy, public


class LazyFunction:
    """A function of another module, which is imported when the function is first called."""

    def __init__(self, module: str, name: str) -> None:
        """Store the full name of the module and the name of the function in it."""
        self.module, self.name = module, name
        self._function: Callable[..., Any] | None = None

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """Call the function."""
        if self._function is None:
            with without_collection():
                self._function = getattr(import_module(self.module), self.name)
        return self._function(*positional, **named)


def lazy_functions(module: str, *names: str) -> list[LazyFunction]:
    """Return functions of a module that is imported when one of them is first called.

    Use it for modules that few calls need. Type checkers see the functions under
    ``if TYPE_CHECKING:``.
    """
    return [LazyFunction(module, name) for name in names]


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable garbage collection while modules are imported.

    Imported modules are not garbage, and examining them takes time. Afterwards, all objects are
    moved to the oldest generation. Otherwise the next new objects would trigger up to three
    collections.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            if gc.get_freeze_count() == 0:
                # Together these move all objects to the oldest generation, without a collection.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _exports(node: _ast.stmt) -> dict[str, str]:
    """Return the names that ``from module import name as name`` exports, each with its module."""
    names = node.names if isinstance(node, _ast.ImportFrom) else []
    return {alias.asname: str(node.module) for alias in names if alias.asname}  # type: ignore[attr-defined]
