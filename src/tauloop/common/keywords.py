"""Keyword arguments of workflows: each field of a class of options is a keyword of the function.

With `keywords`, ``simulate(machine, options)`` also accepts ``simulate(machine, duration="1 s")``.
Fields, defaults and limits are defined only in the class of options: keywords create an object of
that class, or replace fields of the object that the caller passes. Unknown arguments raise an
InputError that suggests a similar name, never a TypeError.
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

from tauloop.common.errors import InputError, Problem, Problems, missing_extra
from tauloop.common.names import deprecated
from tauloop.common.names.suggestions import suggestion
from tauloop.common.options import KEY, Option, Options, type_problems_of, value_problems
from tauloop.common.records import dataclass

_Function = TypeVar("_Function", bound=Callable[..., Any])
#: An annotation that consists of a class name, optionally with "| None".
_ONE_CLASS = re.compile(r"(\w+)( \| None)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyword:
    """A keyword argument that corresponds to a field of options.

    Attributes:
        name: name of the argument and of the field.
        owner: name of the field with the nested options that have this field; "" for a field of the
            options themselves.
        annotation: accepted types.
        default: default; `inspect.Parameter.empty` if the argument is required.
    """

    name: str
    owner: str
    annotation: str
    default: Any


def keywords(*classes: type) -> Callable[[_Function], _Function]:
    """Return a decorator that adds the fields of options to a function as keyword arguments.

    Args:
        classes: classes of the function's argument `options`. Keywords are fields of the first
            class, or of the object that is passed. Without classes, the decorator only checks
            arguments.
    """

    def decorate(function: _Function) -> _Function:
        call = _Call(function, classes)

        @wraps(function)
        def called(*args: Any, **keyword_values: Any) -> Any:
            try:
                if call.is_like_earlier(args, keyword_values):
                    return function(*args, **keyword_values)
                values = call.arguments(args, keyword_values)
                if call.variadic is None:
                    return function(**values)
                positional = [values.pop(name) for name in call.positional]
                return function(*positional, *values.pop(call.variadic, ()), **values)
            except ModuleNotFoundError as error:
                missing = missing_extra(error)
                if missing is None:
                    raise
                raise missing from error

        called.__signature__ = call.signature()  # type: ignore[attr-defined]
        called.options_classes = classes  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return decorate


class _Call:
    """Check of the arguments of calls of a function.

    Attributes:
        name: name of the function, or of the class of an ``__init__``.
        classes: accepted classes of the argument `options`; empty for a function without options.
        parameters: parameters by name.
        positional: names of the parameters that can be positional.
        variadic: name of the parameter ``*args``; None if there is none.
    """

    def __init__(self, function: Callable[..., Any], classes: tuple[type, ...]) -> None:
        self.name = function.__name__
        if self.name == "__init__":
            self.name = function.__qualname__.split(".")[-2]
        self.classes = classes
        self._hints: dict[str, Any] = {}
        self._globals = vars(sys.modules[function.__module__])
        self.parameters = dict(signature(function).parameters)
        #: Arguments that are not checked here: those without annotation, such as `self`, and
        #: arrays, which functions check together with their shapes.
        self._unchecked = {
            name
            for name, parameter in self.parameters.items()
            if parameter.annotation is Parameter.empty or "ndarray" in str(parameter.annotation)
        }
        self.positional = [
            name
            for name, parameter in self.parameters.items()
            if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
        ]
        self.variadic = next(
            (p.name for p in self.parameters.values() if p.kind is Parameter.VAR_POSITIONAL), None
        )
        #: For each checked argument, the types of values that passed the check of types.
        self._accepted: dict[str, set[type]] = {
            name: set() for name in self.parameters if name not in self._unchecked
        }
        required = {
            name
            for name, parameter in self.parameters.items()
            if parameter.default is Parameter.empty
        }
        #: Names of the positional arguments, by their number.
        self._by_position = [
            frozenset(self.positional[:n]) for n in range(len(self.positional) + 1)
        ]
        #: Names of the other required arguments, by the number of positional arguments.
        self._by_name = [frozenset(required - names) for names in self._by_position]

    def is_like_earlier(self, args: tuple[Any, ...], keyword_values: dict[str, Any]) -> bool:
        """Return whether earlier calls passed the same arguments with values of the same types.

        Such a call needs no further check, which saves 20 us of a call. Functions with options are
        always checked.
        """
        count = len(args)
        if self.classes or self.variadic is not None or count >= len(self._by_position):
            return False
        if not self._by_name[count] <= keyword_values.keys():
            return False
        for name, value in zip(self.positional, args, strict=False):
            if name not in self._unchecked and type(value) not in self._accepted[name]:
                return False
        for name, value in keyword_values.items():
            if name in self._by_position[count] or name not in self.parameters:
                return False
            if name not in self._unchecked and type(value) not in self._accepted[name]:
                return False
        return True

    def signature(self) -> Signature:
        """Return the signature with a keyword for each field."""
        if not self.classes:
            return Signature(list(self.parameters.values()))
        leading: list[Parameter] = []
        keyword_only: list[Parameter] = []
        for name, parameter in self.parameters.items():
            if name == "options":
                continue
            if parameter.kind is Parameter.KEYWORD_ONLY:
                keyword_only.append(parameter)
            else:
                leading.append(parameter)
        options = self.parameters["options"]
        last_positional = self.parameters[self.positional[-1]]
        if options.default is not Parameter.empty or last_positional.name == "options":
            options = options.replace(default=None, annotation=_optional(options.annotation))
        fields_of_options = [
            Parameter(
                keyword.name,
                Parameter.KEYWORD_ONLY,
                default=keyword.default,
                annotation=keyword.annotation,
            )
            for keyword in keyword_arguments(self.classes[0])
            if keyword.name not in self.parameters
        ]
        if options.kind is Parameter.KEYWORD_ONLY:
            return Signature([*leading, options, *fields_of_options, *keyword_only])
        index = list(self.parameters).index("options")
        leading.insert(index, options)
        return Signature([*leading, *fields_of_options, *keyword_only])

    def arguments(self, args: tuple[Any, ...], keyword_values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of the function, including its options.

        Raises:
            InputError: arguments are unknown or missing, types are wrong, or options are invalid;
                all problems are listed.
        """
        problems = Problems()
        values = self._positional(args, problems)
        field_values: dict[str, Any] = {}
        if keyword_values.keys() - self.parameters.keys():
            options = values.get("options", keyword_values.get("options"))
            keyword_values = self._renew_names(keyword_values, options)
        for name, value in keyword_values.items():
            if name in values:
                what = "is given twice, by position and by name"
                problems.add(name, what, "give it once")
            elif name in self.parameters:
                values[name] = value
            else:
                field_values[name] = value
        if field_values:
            self._drop_unknown(field_values, values.get("options"), problems)
        for name, parameter in self.parameters.items():
            is_required = parameter.default is Parameter.empty and name != self.variadic
            if name == "options" and self.classes:
                continue
            if is_required and name not in values:
                problems.add(name, f"is missing from the call of {self.name}", f"give {name}")
            elif name in values and name != self.variadic:
                problems += self._wrong_type(name, values[name])
        with problems.collecting(InputError):
            if self.classes:
                values["options"] = self._options(values.get("options"), field_values)
        InputError.raise_if_any(problems)
        return values

    def _renew_names(self, keyword_values: dict[str, Any], options: Any) -> dict[str, Any]:
        """Return arguments by their current names, with a warning for each old name."""
        return deprecated.renew_keywords(
            self.name, self._old_names(options), keyword_values, stacklevel=4
        )

    def _old_names(self, options: Any) -> dict[str, str]:
        """Return the old names of arguments, each with its current name."""
        current = {*self.parameters, *self._keywords(options)}
        classes: tuple[type, ...] = ()
        if self.classes:
            options_class = self._options_class(options)
            classes = (*_nested(options_class).values(), options_class)
        return {
            old: new
            for old, new in deprecated.old_keywords(self.name, *classes).items()
            if old not in current and new in current
        }

    def _drop_unknown(self, field_values: dict[str, Any], options: Any, problems: Problems) -> None:
        """Remove names that are not fields of the options, and add a problem for each."""
        arguments = [*self.parameters, *self._keywords(options)]
        old_names = self._old_names(options)
        for name in [name for name in field_values if name not in arguments]:
            del field_values[name]
            if name in old_names:
                problems.append(deprecated.duplicate_problem(name, old_names[name]))
                continue
            remedy = suggestion(name, arguments) or f"see help({self.name})"
            problems.add(name, f"is not an argument of {self.name}", remedy)

    def _wrong_type(self, name: str, value: Any) -> list[Problem]:
        """Return the problems of the type of an argument, if its annotation can be evaluated."""
        if name in self._unchecked:
            return []
        if name not in self._hints:
            # types that are imported for type checkers only cannot be checked at run time
            with suppress(NameError):
                self._hints[name] = self._hint(str(self.parameters[name].annotation))
        hint = self._hints.setdefault(name, Any)
        is_default = value is None and self.parameters[name].default is None
        if hint is Any or is_default:
            self._accepted[name].add(type(value))
            return []
        with suppress(TypeError):  # parts of a sequence or a mapping are checked below
            if isinstance(value, hint) and not isinstance(value, bool):
                self._accepted[name].add(type(value))
                return []
        with suppress(TypeError):  # some protocols cannot be checked at run time
            return type_problems_of(name, value, hint)
        return []

    def _hint(self, annotation: str) -> Any:
        """Return the type of an annotation of the function."""
        owner = type("_Owner", (), {"__annotations__": {"value": annotation}})
        return typing.get_type_hints(owner, self._globals)["value"]

    def _positional(self, args: tuple[Any, ...], problems: Problems) -> dict[str, Any]:
        """Return the values of positional arguments by name."""
        values: dict[str, Any] = {}
        names = iter(self.positional)
        for index, value in enumerate(args):
            name = "options" if self._is_misplaced(index, value) else next(names, None)
            if name is None and self.variadic is not None:
                values[self.variadic] = args[index:]
                break
            if name is None:
                expected = len(self.positional)
                count = len(args)
                if self.positional[:1] == ["self"]:  # users do not count `self`
                    expected -= 1
                    count -= 1
                what = f"takes {expected} positional arguments, but {count} are given"
                problems.add(self.name, what, "give the other arguments by name")
                break
            values[name] = value
        return values

    def _is_misplaced(self, index: int, value: Any) -> bool:
        """Return whether a value is options at the position of another argument."""
        is_options = index < len(self.positional) and self.positional[index] == "options"
        return not is_options and bool(self.classes) and isinstance(value, self.classes)

    def _keywords(self, options: Any) -> list[str]:
        """Return the names of the fields of options that can be keywords."""
        if not self.classes:
            return []
        return [keyword.name for keyword in keyword_arguments(self._options_class(options))]

    def _options_class(self, options: Any) -> type:
        """Return the class of the options that are passed, or that keywords create."""
        return type(options) if isinstance(options, self.classes) else self.classes[0]

    def _options(self, options: Any, field_values: dict[str, Any]) -> Any:
        """Return the options with some fields replaced; new options if None are given."""
        if options is not None and not isinstance(options, self.classes):
            names = " or ".join(f"tl.{item.__name__}(...)" for item in self.classes)
            what = f"{options!r:.80} is of type {type(options).__name__}"
            raise InputError.of("options", what, f"give {names}, or its fields as keywords")
        if options is not None:
            return _replace_fields(options, field_values) if field_values else options
        if self.parameters["options"].default is None and not field_values:
            return None
        return _create(self.classes[0], field_values)


def keyword_arguments(options: type) -> tuple[Keyword, ...]:
    """Return the keywords of a class of options: its fields, and unambiguous nested fields."""
    return _keyword_arguments(options)


@cache
def _keyword_arguments(options: type) -> tuple[Keyword, ...]:
    """Return the keywords of a class of options; see `keyword_arguments`."""
    nested = _nested(options)
    outer: list[Keyword] = []
    for item in fields(options):
        is_nested = item.name in nested
        annotation = _optional(item.type) if is_nested else widened(str(item.type), spec_of(item))
        default = None if is_nested else shown_default(item)
        outer.append(Keyword(name=item.name, owner="", annotation=annotation, default=default))
    inner = [
        Keyword(
            name=item.name,
            owner=owner,
            annotation=widened(str(item.type), spec_of(item)),
            default=shown_default(item),
        )
        for owner, nested_class in nested.items()
        for item in fields(nested_class)
        if nested_options(nested_class, item) is None
    ]
    outer_names = {keyword.name for keyword in outer}
    inner_names = [keyword.name for keyword in inner]
    unambiguous = [
        keyword
        for keyword in inner
        if keyword.name not in outer_names and inner_names.count(keyword.name) == 1
    ]
    return (*outer, *unambiguous)


def spec_of(item: Field[Any]) -> Option:
    """Return the `Option` of a field."""
    spec = item.metadata.get(KEY)
    return spec if isinstance(spec, Option) else Option()


def nested_options(options: type, item: Field[Any]) -> type | None:
    """Return the class of the nested options in a field; None for other fields."""
    match = _ONE_CLASS.fullmatch(str(item.type))
    if match is None or spec_of(item).named:
        return None
    owner = next(
        base for base in options.__mro__ if item.name in vars(base).get("__annotations__", ())
    )
    nested = vars(sys.modules[owner.__module__]).get(match[1])
    if not isinstance(nested, type) or not is_dataclass(nested):
        return None
    is_options = issubclass(nested, Options) or nested.__name__.endswith("Options")
    factory: Any = item.default_factory
    return nested if is_options or factory is nested else None


def shown_default(item: Field[Any]) -> Any:
    """Return the default of a field for `help`."""
    if item.default is not MISSING:
        return item.default
    return Parameter.empty if item.default_factory is MISSING else item.default_factory()


def _optional(annotation: Any) -> str:
    """Return an annotation that also admits None."""
    return str(annotation) if str(annotation).endswith("| None") else f"{annotation} | None"


def widened(annotation: str, spec: Option) -> str:
    """Return the types of a keyword: those of its field, and those that are converted to them.

    Args:
        annotation: annotation of the field.
        spec: `Option` of the field.
    """
    members = _union_members(annotation)
    if spec.unit:
        members = [re.sub(r"\bfloat\b", "float | str", member) for member in members]
    accepted: list[str] = []
    for member in members:
        accepted += _union_members(_as_sequences(member))
    is_read = spec.named or spec.read is not None or "Path" in members or "Entry" in members
    if is_read or any(member.startswith("tuple[str") for member in members):
        accepted.append("str")
    unique = dict.fromkeys(accepted)
    return " | ".join(sorted(unique, key=lambda member: member == "None"))


def _as_sequences(annotation: str) -> str:
    """Return an annotation with sequences instead of tuples of any length, also inside tuples."""
    inner = re.fullmatch(r"tuple\[(.+), \.\.\.\]", annotation)
    if inner is None:
        return annotation
    return f"Sequence[{' | '.join(map(_as_sequences, _union_members(inner[1])))}]"


def _union_members(annotation: str) -> list[str]:
    """Return the members of a union, each as text."""
    members = [""]
    bracket_depth = 0
    for character in annotation:
        if character == "[":
            bracket_depth += 1
        elif character == "]":
            bracket_depth -= 1
        if character == "|" and bracket_depth == 0:
            members.append("")
        else:
            members[-1] += character
    return [member.strip() for member in members]


def _create(options_class: type, keyword_values: Mapping[str, Any]) -> Any:
    """Return options from keywords, some of which may be fields of nested options."""
    problems = Problems()
    values, nested_values = _by_owner(options_class, keyword_values)
    for name, nested_class in _nested(options_class).items():
        nested: Any = values.pop(name, None)
        with problems.collecting(InputError):
            is_nested = isinstance(nested, nested_class)
            if is_nested and name in nested_values:
                values[name] = replace(nested, **nested_values[name])
            elif nested is not None:
                values[name] = nested
            elif name in nested_values or _is_required(options_class, name):
                values[name] = _create(nested_class, nested_values.get(name, {}))
    for item in fields(options_class):
        if _is_required(options_class, item.name) and item.name not in values and not problems:
            problems.add(item.name, "is missing", f"give {item.name}=...")
    if not problems:
        with problems.collecting(InputError):
            return options_class(**values)
    else:
        problems += value_problems(options_class, values)
    raise InputError(problems)


def _replace_fields(options: Any, keyword_values: Mapping[str, Any]) -> Any:
    """Return options in which keywords replace some fields."""
    values, nested_values = _by_owner(type(options), keyword_values)
    problems = Problems()
    for name, fields_of_nested in nested_values.items():
        nested = values.get(name, getattr(options, name))
        with problems.collecting(InputError):
            if nested is None:
                values[name] = _create(_nested(type(options))[name], fields_of_nested)
            else:
                values[name] = replace(nested, **fields_of_nested)
    InputError.raise_if_any(problems)
    return replace(options, **values)


def _nested(options_class: type) -> dict[str, type]:
    """Return the classes of nested options by the name of their field."""
    classes = {item.name: nested_options(options_class, item) for item in fields(options_class)}
    return {name: nested for name, nested in classes.items() if nested is not None}


def _by_owner(
    options_class: type, keyword_values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the keywords for the options, and those for nested options by their field."""
    owners = {keyword.name: keyword.owner for keyword in keyword_arguments(options_class)}
    values: dict[str, Any] = {}
    nested_values: dict[str, dict[str, Any]] = {}
    for name, value in keyword_values.items():
        if owners[name]:
            nested_values.setdefault(owners[name], {})[name] = value
        else:
            values[name] = value
    return values, nested_values


def _is_required(options_class: type, name: str) -> bool:
    """Return whether a field has no default."""
    item = options_class.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return item.default is MISSING and item.default_factory is MISSING
