"""Keyword arguments of workflows: each field of a class of options is a keyword of the function.

`keywords` makes ``simulate(machine, duration="1 s")`` of ``simulate(machine, options)``. The class of
options remains the only place that states fields, defaults and limits: keywords make an object of
it, or replace fields of the object that the caller gives. Arguments that the function does not have
are refused with the name that may have been meant, never with a TypeError.
"""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.options import KEY, Option, Options, of_wrong_type, value_problems
from tauloop.common.records import dataclass
from tauloop.common.suggestions import suggestion

_Function = TypeVar("_Function", bound=Callable[..., Any])
#: An annotation that names one class, or one class or None.
_ONE_CLASS = re.compile(r"(\w+)( \| None)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyword:
    """A keyword argument that stands for a field.

    Attributes:
        name: of the argument and the field.
        owner: the field that holds the nested options with this field; "" for a field of the
            options themselves.
        annotation: the types that it takes.
        default: its default; `inspect.Parameter.empty` where it is required.
    """

    name: str
    owner: str
    annotation: str
    default: Any


def keywords(*classes: type) -> Callable[[_Function], _Function]:
    """Return a decorator that makes keywords of the fields of options.

    Args:
        classes: those of the function's argument `options`. Keywords are fields of the first, or of
            the object that is given. Without any, arguments are checked alone.
    """

    def decorate(function: _Function) -> _Function:
        call = _Call(function, classes)

        @wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            values = call.arguments(args, named)
            if call.rest is None:
                return function(**values)
            first = [values.pop(name) for name in call.positional]
            return function(*first, *values.pop(call.rest, ()), **values)

        called.__signature__ = call.shown()  # type: ignore[attr-defined]
        called.options_classes = classes  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return decorate


class _Call:
    """Arguments of one function."""

    def __init__(self, function: Callable[..., Any], classes: tuple[type, ...]) -> None:
        self.name = function.__name__
        if self.name == "__init__":
            self.name = function.__qualname__.split(".")[-2]
        self.classes = classes
        self._hints: dict[str, Any] = {}
        self._globals = vars(sys.modules[function.__module__])
        self.parameters = dict(signature(function).parameters)
        self.positional = [
            name
            for name, parameter in self.parameters.items()
            if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
        ]
        self.rest = next(
            (p.name for p in self.parameters.values() if p.kind is Parameter.VAR_POSITIONAL), None
        )

    def shown(self) -> Signature:
        """Return the signature with a keyword for each field."""
        own = [parameter for name, parameter in self.parameters.items() if name != "options"]
        first = [parameter for parameter in own if parameter.kind is not Parameter.KEYWORD_ONLY]
        last = [parameter for parameter in own if parameter.kind is Parameter.KEYWORD_ONLY]
        if not self.classes:
            return Signature(list(self.parameters.values()))
        options = self.parameters["options"]
        last_positional = self.parameters[self.positional[-1]]
        if options.default is not Parameter.empty or last_positional.name == "options":
            options = options.replace(default=None, annotation=_optional(options.annotation))
        middle = [
            Parameter(
                keyword.name,
                Parameter.KEYWORD_ONLY,
                default=keyword.default,
                annotation=keyword.annotation,
            )
            for keyword in keyword_arguments(self.classes[0])
            if keyword.name not in self.parameters
        ]
        place = list(self.parameters).index("options")
        keyword_only = options.kind is Parameter.KEYWORD_ONLY
        if keyword_only:
            return Signature([*first, options, *middle, *last])
        return Signature([*first[:place], options, *first[place:], *middle, *last])

    def arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Return the function's own arguments, its options among them.

        Raises:
            InputError: arguments that it does not have, that are missing or of a wrong type, and
                options that are refused; all at once.
        """
        problems = Problems()
        values = self._positional(args, problems)
        stated: dict[str, Any] = {}
        known = [*self.parameters, *self._keywords(values.get("options", named.get("options")))]
        for name, value in named.items():
            if name in values:
                problems.add(name, "is given twice, by its place and by its name", "give it once")
            elif name in self.parameters:
                values[name] = value
            elif name in known:
                stated[name] = value
            else:
                remedy = suggestion(name, known) or f"see help({self.name})"
                problems.add(name, f"is not an argument of {self.name}", remedy)
        for name, parameter in self.parameters.items():
            is_required = parameter.default is Parameter.empty and name != self.rest
            if name == "options" and self.classes:
                continue
            if is_required and name not in values:
                problems.add(name, f"is missing in the call of {self.name}", f"give {name}")
            elif name in values and name != self.rest:
                problems += self._wrong_type(name, values[name])
        with problems.collecting(InputError):
            if self.classes:
                values["options"] = self._options(values.get("options"), stated)
        InputError.raise_if_any(problems)
        return values

    def _wrong_type(self, name: str, value: Any) -> list[Problem]:
        """Return what is wrong with the type of an argument, where its annotation can be evaluated."""
        annotation = self.parameters[name].annotation
        # `self` has none, and functions check arrays themselves, with their shapes
        if annotation is Parameter.empty or "ndarray" in str(annotation):
            return []
        if name not in self._hints:
            # types that only type checkers see are not checked here
            with suppress(NameError):
                self._hints[name] = self._hint(str(self.parameters[name].annotation))
        hint = self._hints.setdefault(name, Any)
        if value is None and self.parameters[name].default is None:
            return []
        with suppress(TypeError):  # a protocol that cannot be checked
            return of_wrong_type(name, value, hint)
        return []

    def _hint(self, annotation: str) -> Any:
        """Return the type that an annotation of the function names."""
        owner = type("_Owner", (), {"__annotations__": {"value": annotation}})
        return typing.get_type_hints(owner, self._globals)["value"]

    def _positional(self, args: tuple[Any, ...], problems: Problems) -> dict[str, Any]:
        values: dict[str, Any] = {}
        names = iter(self.positional)
        for place, value in enumerate(args):
            name = "options" if self._is_misplaced(place, value) else next(names, None)
            if name is None and self.rest is not None:
                values[self.rest] = args[place:]
                break
            if name is None:
                own = self.positional[:1] == ["self"]
                count = f"{len(self.positional) - own} arguments by their place"
                what = f"takes {count}, and {len(args) - own} are given"
                problems.add(self.name, what, "give the others by their names")
                break
            values[name] = value
        return values

    def _is_misplaced(self, place: int, value: Any) -> bool:
        """Whether options are given at a place that another argument has."""
        is_place = place < len(self.positional) and self.positional[place] == "options"
        return not is_place and bool(self.classes) and isinstance(value, self.classes)

    def _keywords(self, options: Any) -> list[str]:
        if not self.classes:
            return []
        kind = type(options) if isinstance(options, self.classes) else self.classes[0]
        return [keyword.name for keyword in keyword_arguments(kind)]

    def _options(self, options: Any, stated: dict[str, Any]) -> Any:
        if options is not None and not isinstance(options, self.classes):
            names = " or ".join(f"tl.{kind.__name__}(...)" for kind in self.classes)
            what = f"{options!r:.80} is of type {type(options).__name__}"
            raise InputError.of("options", what, f"give {names}, or its fields by their names")
        if options is None:
            is_optional = self.parameters["options"].default is None
            return None if is_optional and not stated else _made(self.classes[0], stated)
        return _replaced(options, stated) if stated else options


def keyword_arguments(options: type) -> tuple[Keyword, ...]:
    """Return the keywords of a class of options: its fields, and those of nested options that are unambiguous."""
    return _keyword_arguments(options)


@cache
def _keyword_arguments(options: type) -> tuple[Keyword, ...]:
    outer = {item.name: item for item in fields(options)}
    nested = {name: kind for name, item in outer.items() if (kind := nested_options(options, item))}
    inner = [
        Keyword(
            name=item.name,
            owner=owner,
            annotation=widened(str(item.type), spec_of(item)),
            default=shown_default(item),
        )
        for owner, kind in nested.items()
        for item in fields(kind)
        if nested_options(kind, item) is None
    ]
    names = [keyword.name for keyword in inner]
    own = [
        Keyword(
            name=name,
            owner="",
            annotation=_optional(item.type)
            if name in nested
            else widened(str(item.type), spec_of(item)),
            default=None if name in nested else shown_default(item),
        )
        for name, item in outer.items()
    ]
    flat = [
        keyword for keyword in inner if keyword.name not in outer and names.count(keyword.name) == 1
    ]
    return (*own, *flat)


def spec_of(item: Field[Any]) -> Option:
    """Return what is stated of a field."""
    spec = item.metadata.get(KEY)
    return spec if isinstance(spec, Option) else Option()


def nested_options(options: type, item: Field[Any]) -> type | None:
    """Return the class of options that a field holds, whose fields are keywords too; None for other fields."""
    match = _ONE_CLASS.fullmatch(str(item.type))
    if match is None or spec_of(item).named:
        return None
    owner = next(
        kind for kind in options.__mro__ if item.name in vars(kind).get("__annotations__", ())
    )
    kind = vars(sys.modules[owner.__module__]).get(match[1])
    if not isinstance(kind, type) or not is_dataclass(kind):
        return None
    is_options = issubclass(kind, Options) or kind.__name__.endswith("Options")
    factory: Any = item.default_factory
    return kind if is_options or factory is kind else None


def shown_default(item: Field[Any]) -> Any:
    """Return the default of a field, as `help` shows it."""
    if item.default is not MISSING:
        return item.default
    return Parameter.empty if item.default_factory is MISSING else item.default_factory()


def _optional(annotation: Any) -> str:
    return str(annotation) if str(annotation).endswith("| None") else f"{annotation} | None"


def widened(annotation: str, spec: Option) -> str:
    """Return the types of a keyword: those of its field, and what is read as one of them.

    Args:
        annotation: of the field.
        spec: what is stated of the field.
    """
    parts = _alternatives(annotation)
    if spec.unit:
        parts = [re.sub(r"\bfloat\b", "float | str", part) for part in parts]
    wide: list[str] = []
    for part in parts:
        sequence = re.fullmatch(r"tuple\[(.+), \.\.\.\]", part)
        wide.append(f"Sequence[{sequence[1]}]" if sequence else part)
    is_read = spec.named or spec.read is not None or "Path" in parts or "Entry" in parts
    if is_read or any(part.startswith("tuple[str") for part in parts):
        wide.append("str")
    unique = dict.fromkeys(item for part in wide for item in _alternatives(part))
    return " | ".join(sorted(unique, key=lambda part: part == "None"))


def _alternatives(annotation: str) -> list[str]:
    """Return the members of a union, each as text."""
    parts, depth = [""], 0
    for character in annotation:
        depth += (character == "[") - (character == "]")
        if character == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def _made(kind: type, stated: Mapping[str, Any]) -> Any:
    """Return options from keywords; those of nested options make these."""
    problems = Problems()
    own, inner = _sorted(kind, stated)
    for name, nested in _nested(kind).items():
        base: Any = own.pop(name, None)
        with problems.collecting(InputError):
            is_nested = isinstance(base, nested)
            if is_nested and name in inner:
                own[name] = replace(base, **inner[name])
            elif base is not None:
                own[name] = base
            elif name in inner or _is_required(kind, name):
                own[name] = _made(nested, inner.get(name, {}))
    for item in fields(kind):
        if _is_required(kind, item.name) and item.name not in own and not problems:
            problems.add(item.name, "is missing", f"give {item.name}=...")
    if not problems:
        with problems.collecting(InputError):
            return kind(**own)
    else:
        problems += value_problems(kind, own)
    raise InputError(problems)


def _replaced(options: Any, stated: Mapping[str, Any]) -> Any:
    """Return options with other values of some fields."""
    own, inner = _sorted(type(options), stated)
    problems = Problems()
    for name, values in inner.items():
        base = own.get(name, getattr(options, name))
        with problems.collecting(InputError):
            nested = _nested(type(options))[name]
            own[name] = _made(nested, values) if base is None else replace(base, **values)
    InputError.raise_if_any(problems)
    return replace(options, **own)


def _nested(kind: type) -> dict[str, type]:
    return {item.name: nested for item in fields(kind) if (nested := nested_options(kind, item))}


def _sorted(
    kind: type, stated: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return keywords that are fields of the options, and those of nested options by their owners."""
    owners = {keyword.name: keyword.owner for keyword in keyword_arguments(kind)}
    own: dict[str, Any] = {}
    inner: dict[str, dict[str, Any]] = {}
    for name, value in stated.items():
        if owners[name]:
            inner.setdefault(owners[name], {})[name] = value
        else:
            own[name] = value
    return own, inner


def _is_required(kind: type, name: str) -> bool:
    item = kind.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return item.default is MISSING and item.default_factory is MISSING
