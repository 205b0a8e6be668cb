"""Write `src/tauloop/__init__.pyi`: the public names for type checkers, with a keyword for each option.

A decorator makes keywords of the fields of options when a function is called, which no type checker
sees. This script writes the signatures that result: run it after a change of a public function or
of a class of options; `tests/test_stubs.py` compares. Usage: `python tools/write_stubs.py`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from inspect import Parameter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import tauloop
from tauloop.common.keywords import keyword_arguments

STUB = Path(tauloop.__file__).with_suffix(".pyi")
FILE_DOCSTRING = '''"""Types of the public names of Tauloop. Written by `python tools/write_stubs.py`: do not edit."""

# ruff: noqa: E501
'''
#: A name in an annotation, with what follows it after a point.
NAME = re.compile(r"\b([A-Za-z_]\w*)((?:\.\w+)*)")
#: Names that Python itself has.
BUILTIN = frozenset(
    {
        "str",
        "int",
        "float",
        "bool",
        "bytes",
        "object",
        "None",
        "tuple",
        "list",
        "dict",
        "type",
        "set",
    }
)

#: Names that `tauloop.common.keywords.widened` adds to annotations.
WIDENED = {"Sequence": ("collections.abc", "Sequence")}


class Imports:
    """The import statements that the annotations of a stub need."""

    def __init__(self) -> None:
        """Begin with none."""
        self.modules: dict[str, str] = {}
        self.names: dict[tuple[str, str], str] = {}
        self._origins: dict[str, dict[str, tuple[str, str]]] = {}

    def text(self, annotation: str, module: str) -> str:
        """Return an annotation of a module in the names of the stub."""
        pieces = re.split(r"(\"[^\"]*\"|'[^']*')", annotation)
        return "".join(
            piece if piece[:1] in ("'", '"') else NAME.sub(lambda m: self._known(m, module), piece)
            for piece in pieces
        )

    def _known(self, match: re.Match[str], module: str) -> str:
        name, rest = match[1], match[2]
        if name in BUILTIN:
            return match[0]
        if module not in self._origins:
            self._origins[module] = dict(_origins(module))
        source, original = self._origins[module].get(name) or WIDENED[name]
        if not original:
            self.modules[source] = name
            return match[0]
        return self.named(source, original) + rest

    def named(self, source: str, original: str) -> str:
        """Return what a name of a module is called in the stub."""
        value = getattr(importlib.import_module(source), original, None)
        if isinstance(value, type) and value.__name__ == original:
            source = value.__module__  # where a package has it from
        key = (source, original)
        if key not in self.names:
            taken = set(self.names.values())
            candidates = (original, *(f"{original}{number}" for number in range(2, 10)))
            self.names[key] = next(name for name in candidates if name not in taken)
        return self.names[key]

    def lines(self, public: dict[str, str]) -> Iterator[str]:
        """Yield the statements; `public` has the modules of names that the stub passes on."""
        for module, name in sorted(self.modules.items()):
            yield f"import {module} as {name}" if module != name else f"import {module}"
        imports: dict[str, set[str]] = {}
        for (source, original), name in self.names.items():
            text = original if name == original else f"{original} as {name}"
            imports.setdefault(source, set()).add(text)
        for name, source in public.items():
            imports.setdefault(source, set()).discard(name)
            imports[source].add(f"{name} as {name}")
        for source, texts in sorted(imports.items()):
            yield f"from {source} import ("
            yield from (f"    {text}," for text in sorted(texts))
            yield ")"


def _origins(module: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield where the names of a module are from: module and name there, "" for a module itself."""
    path = Path(str(sys.modules[module].__file__))
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, (alias.name, "")
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, (str(node.module), alias.name)
        elif isinstance(node, ast.ClassDef):
            yield node.name, (module, node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, (module, node.target.id)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, (module, target.id)


def default_text(value: Any) -> str:
    """Return a default as code; an ellipsis for objects."""
    if isinstance(value, tuple) and all(default_text(item) != "..." for item in value):
        return repr(value)
    if value is None or isinstance(value, bool | int | str):
        return repr(value)
    is_finite = isinstance(value, float) and abs(value) < float("inf")
    return repr(value) if is_finite else "..."


def parameter_text(parameter: Parameter, annotation: str) -> str:
    """Return a parameter as code."""
    star = "*" if parameter.kind is Parameter.VAR_POSITIONAL else ""
    text = f"{star}{parameter.name}: {annotation}"
    if parameter.default is Parameter.empty:
        return text
    return f"{text} = {default_text(parameter.default)}"


def definition(name: str, function: Callable[..., Any], imports: Imports) -> Iterator[str]:
    """Yield the lines of a function, or of its overloads."""
    plain = inspect.unwrap(function)
    module, classes = plain.__module__, getattr(function, "options_classes", ())
    overloads = typing.get_overloads(plain)
    returned = inspect.signature(plain).return_annotation
    if not overloads:
        yield from _signature(
            name, dict(inspect.signature(function).parameters), returned, module, classes, imports
        )
        return
    for overload in overloads:
        own = inspect.signature(overload)
        annotation = str(own.parameters["options"].annotation)
        is_default = bool(classes) and annotation == classes[0].__name__
        parameters = dict(own.parameters)
        if is_default:
            parameters = dict(inspect.signature(function).parameters)
            options = parameters["options"].replace(annotation=f"{annotation} | None")
            parameters["options"] = options
        yield f"@{imports.named('typing', 'overload')}"
        yield from _signature(
            name, parameters, own.return_annotation, module, classes[:is_default], imports
        )


def _signature(
    name: str,
    parameters: dict[str, Parameter],
    returned: Any,
    module: str,
    classes: tuple[type, ...],
    imports: Imports,
) -> Iterator[str]:
    fields = dict(_field_modules(classes[0])) if classes else {}
    yield f"def {name}("
    has_star = False
    for parameter in parameters.values():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            has_star = True
        elif parameter.kind is Parameter.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "    *,"
        is_field = parameter.kind is Parameter.KEYWORD_ONLY and parameter.name in fields
        place = fields[parameter.name] if is_field else module
        text = imports.text(str(parameter.annotation), place)
        yield f"    {parameter_text(parameter, text)},"
    yield f") -> {imports.text(str(returned), module)}: ..."


def _field_modules(options: type) -> Iterator[tuple[str, str]]:
    """Yield the keywords of options, each with the module of the class that has the field."""
    from tauloop.common.keywords import nested_options

    for keyword in keyword_arguments(options):
        kind: Any = options
        if keyword.owner:
            kind = nested_options(options, kind.__dataclass_fields__[keyword.owner])
        owner = next(
            base for base in kind.__mro__ if keyword.name in vars(base).get("__annotations__", ())
        )
        yield keyword.name, owner.__module__


def stub() -> str:
    """Return the text of the stub."""
    imports = Imports()
    functions: list[str] = []
    public: dict[str, str] = {}
    packages = [name for name in dir(tauloop) if isinstance(getattr(tauloop, name), ModuleType)]
    for name in sorted(tauloop.__all__):
        value = getattr(tauloop, name)
        if name == "__version__":
            continue
        if not isinstance(value, FunctionType):
            public[name] = value.__module__
            imports.names[(value.__module__, name)] = name
    for name in sorted(tauloop.__all__):
        value = getattr(tauloop, name)
        if isinstance(value, FunctionType):
            functions += ["", *definition(name, value, imports)]
    lines = [
        *imports.lines(public),
        "from tauloop import (",
        *(f"    {name} as {name}," for name in sorted(packages)),
        ")",
        "",
        "__version__: str",
        *functions,
    ]
    return FILE_DOCSTRING + "\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
    sys.stdout.write(f"{STUB}\n")
