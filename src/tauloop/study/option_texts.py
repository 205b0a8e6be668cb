"""Conversion of options that a file contains as text, as on the command line."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import KEY, Option, pairs_reader
from tauloop.mechanism.suggestions import unknown_names

#: Words for flags in a file.
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


def option_names(options: type) -> tuple[str, ...]:
    """Return the names of options that a file may contain, including those of nested classes."""
    names: list[str] = []
    hints = get_type_hints(options)
    for item in fields(options):
        spec = item.metadata.get(KEY) or Option()
        inner = _nested_options(spec, hints[item.name])
        if inner is not None:
            names += option_names(inner)
        elif spec.flag != "":
            names.append(item.name)
    return tuple(names)


def options_classes(options: type) -> tuple[type, ...]:
    """Return a class of options and the classes nested in it."""
    classes: tuple[type, ...] = ()
    hints = get_type_hints(options)
    for item in fields(options):
        inner = _nested_options(item.metadata.get(KEY) or Option(), hints[item.name])
        if inner is not None:
            classes += options_classes(inner)
    return (*classes, options)


def options_from(options: type, texts: Mapping[str, Any]) -> Any:
    """Return an options object from texts by field name, with defaults for all other fields.

    Args:
        options: the options class.
        texts: one or several texts by field name.

    Raises:
        InputError: names are unknown, or values are invalid.
    """
    InputError.raise_if_any(
        unknown_names(texts, option_names(options), "is not an option of this calculation")
    )
    return _options_object(options, texts)


def _options_object(options: type, texts: Mapping[str, Any]) -> Any:
    """Return an options object from texts whose names have been checked."""
    hints = get_type_hints(options)
    values = {}
    problems = Problems()
    for item in fields(options):
        spec = item.metadata.get(KEY) or Option()
        with problems.collecting(InputError):
            inner = _nested_options(spec, hints[item.name])
            if inner is not None:
                inner_texts = {name: texts[name] for name in option_names(inner) if name in texts}
                if inner_texts:
                    values[item.name] = _options_object(inner, inner_texts)
            elif item.name in texts and spec.flag != "":
                values[item.name] = _value(item.name, spec, hints[item.name], texts[item.name])
    InputError.raise_if_any(problems)
    return options(**values)


def _union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the types of a union except None, or the type itself."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    is_union = get_origin(annotation) in (Union, types.UnionType)
    if not is_union:
        return (annotation,)
    return tuple(member for member in get_args(annotation) if member is not types.NoneType)


def _nested_options(spec: Option, annotation: Any) -> type | None:
    """Return the class of options of a field; None if the field is a single option."""
    if spec.read or spec.named or spec.flag == "":
        return None
    return next(
        (
            kind
            for kind in _union_members(annotation)
            if isinstance(kind, type) and is_dataclass(kind)
        ),
        None,
    )


def _value(name: str, spec: Option, annotation: Any, text: Any) -> Any:
    """Return the value of a field from its text or texts."""
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
    field_type = _union_members(annotation)[0]
    if get_origin(field_type) is tuple:
        is_list = isinstance(text, Sequence) and not isinstance(text, str)
        items = text if is_list else str(text).split(",")
        return tuple(_parsed_value(name, get_args(field_type)[0], item) for item in items)
    origin = get_origin(field_type)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = pairs_reader(name)(text)
        return {
            key: _parsed_value(name, get_args(field_type)[1], value) for key, value in pairs.items()
        }
    return _parsed_value(name, field_type, text)


def _parsed_value(name: str, field_type: Any, text: Any) -> Any:
    """Return a flag, number, path, word or text."""
    if field_type is bool:
        if str(text).casefold() not in _FLAGS:
            raise InputError.of(name, f"{text!r} is neither yes nor no", "write yes or no")
        return _FLAGS[str(text).casefold()]
    is_enum = isinstance(field_type, type) and issubclass(field_type, enum.Enum)
    if field_type in (int, float, Path) or is_enum:
        try:
            return field_type(text.strip() if isinstance(text, str) else text)
        except (TypeError, ValueError):  # TypeError: several texts for a single value
            expected = _expected(field_type)
            raise InputError.of(name, f"{text!r} is not {expected}", f"give {expected}") from None
    return text


def _expected(field_type: Any) -> str:
    """Return a description of the texts that are allowed for a type."""
    if field_type is Path:
        return "a path"
    if field_type is int:
        return "a whole number"
    if field_type is float:
        return "a number"
    return f"one of {', '.join(str(member.value) for member in field_type)}"
