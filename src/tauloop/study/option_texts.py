"""Options of a calculation from the texts of a file, as the command line reads them."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import KEY, Option
from tauloop.mechanism.description.quantities import pairs_reader
from tauloop.mechanism.suggestions import unknown_names

#: How a file says yes and no.
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


def option_names(options: type) -> tuple[str, ...]:
    """Names of the fields that a file may give, those of inner classes among them."""
    names: list[str] = []
    hints = get_type_hints(options)
    for item in fields(options):
        spec = item.metadata.get(KEY) or Option()
        inner = _inner(spec, hints[item.name])
        if inner is not None:
            names += option_names(inner)
        elif spec.flag != "":
            names.append(item.name)
    return tuple(names)


def options_from(options: type, texts: Mapping[str, Any]) -> Any:
    """The object of options from texts by the names of their fields; what is not named has its default.

    Args:
        options: the class.
        texts: a text, or several, by name.

    Raises:
        InputError: unknown names, and values that the options refuse.
    """
    InputError.raise_if_any(
        unknown_names(texts, option_names(options), "is no option of this calculation")
    )
    return _made(options, texts)


def _made(options: type, texts: Mapping[str, Any]) -> Any:
    hints, values, problems = get_type_hints(options), {}, Problems()
    for item in fields(options):
        spec = item.metadata.get(KEY) or Option()
        with problems.collecting(InputError):
            if (inner := _inner(spec, hints[item.name])) is not None:
                own = {name: texts[name] for name in option_names(inner) if name in texts}
                if own:
                    values[item.name] = _made(inner, own)
            elif item.name in texts and spec.flag != "":
                values[item.name] = _value(item.name, spec, hints[item.name], texts[item.name])
    InputError.raise_if_any(problems)
    return options(**values)


def _members(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    is_union = get_origin(annotation) in (Union, types.UnionType)
    return (
        tuple(kind for kind in get_args(annotation) if kind is not types.NoneType)
        if is_union
        else (annotation,)
    )


def _inner(spec: Option, annotation: Any) -> type | None:
    if spec.read or spec.named or spec.flag == "":
        return None
    return next(
        (kind for kind in _members(annotation) if isinstance(kind, type) and is_dataclass(kind)),
        None,
    )


def _value(name: str, spec: Option, annotation: Any, text: Any) -> Any:
    """The value of a field from its text, or texts."""
    if spec.named:
        matches = [
            spec.named[word] for word in spec.named if word.casefold() == str(text).casefold()
        ]
        if not matches:
            raise InputError.of(
                name, f"{text!r} is unknown", f"choose among {', '.join(spec.named)}"
            )
        return matches[0]
    if spec.read is not None:
        return text if spec.unit and spec.read is str else spec.read(text)
    kind = _members(annotation)[0]
    if get_origin(kind) is tuple:
        parts = (
            text
            if isinstance(text, Sequence) and not isinstance(text, str)
            else str(text).split(",")
        )
        return tuple(_plain(name, get_args(kind)[0], part) for part in parts)
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = pairs_reader(name)(text)
        return {key: _plain(name, get_args(kind)[1], part) for key, part in pairs.items()}
    return _plain(name, kind, text)


def _plain(name: str, kind: Any, text: Any) -> Any:
    """A flag, number, path, word or text."""
    if kind is bool:
        if str(text).casefold() not in _FLAGS:
            raise InputError.of(name, f"{text!r} is neither yes nor no", "write yes or no")
        return _FLAGS[str(text).casefold()]
    if kind in (int, float, Path) or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        try:
            return kind(text.strip() if isinstance(text, str) else text)
        except (TypeError, ValueError):  # several texts where one is wanted
            raise InputError.of(
                name, f"{text!r} is no {kind.__name__}", "see the command's help"
            ) from None
    return text
