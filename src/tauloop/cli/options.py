"""Options of a command from an options class: names, types, defaults, limits and help texts.

A parameter of a command whose annotation is a dataclass is replaced by its fields:

    @command(json_file=RESULT)
    def verify(machine: MachineArgument, options: VerifyOptions) -> None: ...

`option_parameters` turns the field ``massless_rods`` into ``--massless-rods``, with its text below
"Attributes:" in the docstring as help. `options_from_arguments` creates the options object from the
command's arguments. A field's type determines the form of its option:

- bool: a flag (``--no-...`` if the default is true);
- text, number, path or enumeration: one value;
- tuple of texts or paths: an option that may be repeated;
- tuple of numbers: numbers separated by commas;
- mapping: NAME=VALUE; the option may be repeated, and numbers may be separated by commas;
- another options class: an option for each of its fields;
- one of several named objects: its name, in upper or lower case;
- other types: text, which the field's own ``read`` interprets (`tauloop.common.options.option`).
"""

from __future__ import annotations

import enum
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from math import inf
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from tauloop.cli.terminal.completion import COMPLETIONS
from tauloop.common.errors import InputError, Problems
from tauloop.common.options import KEY, Option, described

_PLAIN = (bool, int, float, str, Path)


def options_class(annotation: Any) -> type | None:
    """Return the class of an annotation such as ``Options`` or ``Options | None``, else None."""
    for kind in _members(annotation):
        if isinstance(kind, type) and is_dataclass(kind):
            return kind
    return None


def option_parameters(options: type) -> list[inspect.Parameter]:
    """Return the parameters of a command for the fields of an options class."""
    texts = described(options)
    hints = get_type_hints(options, include_extras=True)
    parameters: list[inspect.Parameter] = []
    # Fields of the class itself come before inherited fields.
    for item in sorted(fields(options), key=lambda item: item.name not in options.__annotations__):
        spec = _option_of(item)
        if spec.flag == "":
            continue
        inner = _inner(spec, hints[item.name])
        if inner is not None:
            parameters += option_parameters(inner)
            continue
        annotation = hints[item.name]
        if get_origin(annotation) is not Annotated:
            annotation = _annotated(item, annotation, spec, texts.get(item.name, ""))
        default = _default(item)
        if spec.named:
            default = next((name for name in spec.named if spec.named[name] == default), None)
        elif not isinstance(default, (*_PLAIN, enum.Enum)) or spec.read is not None:
            default = None
        parameters.append(
            inspect.Parameter(
                item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
        )
    return parameters


def options_from_arguments(options: type, arguments: dict[str, Any]) -> Any:
    """Return the options object of a command's arguments, and remove these from `arguments`.

    Raises:
        InputError: a required option is missing or values are wrong; all problems are listed.
    """
    hints = get_type_hints(options)
    values: dict[str, Any] = {}
    problems = Problems()
    result = None
    for item in fields(options):
        spec = _option_of(item)
        if spec.flag == "":
            continue  # not an option; an argument with this name belongs to another field
        with problems.collecting(InputError):
            if (inner := _inner(spec, hints[item.name])) is not None:
                values[item.name] = options_from_arguments(inner, arguments)
            elif item.name in arguments and (value := arguments.pop(item.name)) is not None:
                values[item.name] = _read(item.name, spec, hints[item.name], value)
            elif _default(item) is MISSING:
                raise InputError.of(item.name, "is missing", f"give {flags(options)[item.name]}")
    if all(item.name in values or _default(item) is not MISSING for item in fields(options)):
        with problems.collecting(InputError):
            result = options(**values)
    InputError.raise_if_any(problems)
    return result


def flags(options: type) -> dict[str, str]:
    """Return the option name of each field, including the fields of nested options classes."""
    names: dict[str, str] = {}
    hints = get_type_hints(options, include_extras=True)
    for item in fields(options):
        spec = _option_of(item)
        if (inner := _inner(spec, hints[item.name])) is not None:
            names |= flags(inner)
        elif spec.flag != "":
            flag = spec.flag or annotated_flag(item.name, hints[item.name]) or _flag(item.name)
            names[item.name] = flag.split()[0]
    return names


def annotated_flag(name: str, annotation: Any) -> str:
    """Return the option name that Typer derives from an annotation; "" for an argument."""
    for entry in getattr(annotation, "__metadata__", ()):
        if isinstance(entry, typer.models.OptionInfo):
            # Typer takes the first name of an annotation as its default.
            names = [entry.default, *(entry.param_decls or ())]
            flags = [str(entry) for entry in names if str(entry).startswith("-")]
            return next(iter(flags), _flag(name))
    return ""


def _inner(spec: Option, annotation: Any) -> type | None:
    """Return the options class of a field whose fields become options too, or None."""
    return None if spec.read or spec.named or spec.flag == "" else options_class(annotation)


def _flag(name: str) -> str:
    """Return the option name of a field."""
    return f"--{name.replace('_', '-')}"


def _option_of(item: Field[Any]) -> Option:
    """Return the `Option` of a field, with defaults if the field was not created by `option`."""
    return item.metadata.get(KEY) or Option()


def _default(item: Field[Any]) -> Any:
    """Return the default of a field; MISSING if it is required."""
    return item.default_factory() if item.default_factory is not MISSING else item.default


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union without None, or the annotation as the only type."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) not in (Union, types.UnionType):
        return (annotation,)
    return tuple(kind for kind in get_args(annotation) if kind is not types.NoneType)


def _annotated(item: Field[Any], annotation: Any, spec: Option, text: str) -> Any:
    """Return Typer's annotation of a field: its type on the command line, its name and its help.

    Args:
        item: the field.
        annotation: type of the field.
        spec: how the field becomes an option.
        text: description of the field.
    """
    flag = spec.flag or _flag(item.name)
    help_text = text[:1].upper() + text[1:]
    if limits := ", ".join((*spec.choices, *spec.named)) or spec.limits:
        help_text = f"{help_text.removesuffix('.')}: {limits}."
    kind = _members(annotation)[0]
    metavar = spec.metavar
    if spec.named:
        option_type: Any = str if _default(item) is not None else str | None
    elif spec.read is None and kind is bool:
        option_type = bool
        if _default(item) is True and "/" not in flag:
            flag = f"{flag}/--no-{flag.removeprefix('--')}"
    elif (
        spec.read is None
        and isinstance(kind, type)
        and (kind in _PLAIN or issubclass(kind, enum.Enum))
    ):
        option_type = kind if _default(item) is not None else kind | None
    elif spec.repeated or _is_repeated(kind, spec):
        option_type = list[Path] | None if get_args(kind)[:1] == (Path,) else list[str] | None
        metavar = metavar or ("NAME=VALUE" if _is_mapping(kind) else None)
        help_text += " May be repeated."
    else:
        option_type = str | None
    default = "" if spec.named else _default_text(spec, _default(item), help_text)
    names = COMPLETIONS.get(spec.names)
    return Annotated[
        option_type,
        typer.Option(
            *flag.split(),
            help=help_text,
            metavar=metavar,
            show_default=default or True,
            autocompletion=names,
        ),
    ]


def _default_text(spec: Option, default: Any, help_text: str) -> str:
    """Return the text of a default in SI units; "" if Typer or the help already states it."""
    values = default if isinstance(default, tuple) else (default,)
    is_known = spec.read is None and isinstance(default, (*_PLAIN, enum.Enum))
    is_stated = "without" in help_text or "default:" in help_text
    is_plain = all(isinstance(value, str | int | float) and value != inf for value in values)
    if is_known or is_stated or not is_plain:
        return ""
    return ",".join(value if isinstance(value, str) else f"{value:g}" for value in values)


def _is_mapping(kind: Any) -> bool:
    """Return whether a type is a mapping."""
    origin = get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_repeated(kind: Any, spec: Option) -> bool:
    """Return whether a type makes an option repeatable: a mapping, or a tuple without numbers."""
    numbers = get_args(kind)[:1] in ((int,), (float,))
    return spec.read is None and (_is_mapping(kind) or (get_origin(kind) is tuple and not numbers))


def _read(name: str, spec: Option, annotation: Any, value: Any) -> Any:
    """Return the value of a field from the text of its option."""
    if spec.named:
        matches = [spec.named[word] for word in spec.named if word.casefold() == value.casefold()]
        if not matches:
            raise InputError.of(
                name, f"{value!r} is unknown", f"choose among {', '.join(spec.named)}"
            )
        return matches[0]
    return spec.read(value) if spec.read else _value(name, annotation, value)


def _value(name: str, annotation: Any, value: Any) -> Any:
    """Return the value of a field from its argument, according to the field's type."""
    kind = _members(annotation)[0]
    if get_origin(kind) is tuple and isinstance(value, str):
        return tuple(
            _number(name, get_args(kind)[0], text) for text in value.split(",") if text.strip()
        )
    if get_origin(kind) is tuple:
        return tuple(value)
    if _is_mapping(kind):
        # Imported here because it needs NumPy, which most options do not need.
        from tauloop.common.options import pairs_reader

        pairs = pairs_reader(name)(value)
        value_type = get_args(kind)[1]
        if value_type not in (int, float):
            return pairs
        return {key: _number(name, value_type, text) for key, text in pairs.items()}
    return value


def _number(name: str, kind: Callable[[str], Any], text: str) -> Any:
    """Return the number of a text.

    Raises:
        InputError: the text is not a number of this type.
    """
    try:
        return kind(text)
    except ValueError:
        noun = "whole number" if kind is int else "number"
        what = f"{text.strip()!r} is not a {noun}"
        raise InputError.of(name, what, "give numbers separated by commas") from None
