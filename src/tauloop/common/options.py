"""Options of workflows: dataclasses with checked fields, for Python and the command line.

A class of options is frozen, and its docstring describes every field below "Attributes:". A field
that is created with `option` can have limits, choices and a unit; all fields are checked at once.
The command line uses the names, types, defaults, limits and descriptions of the same class. Data of
pandas and xarray are read by their labels (`by_label`).
"""

from __future__ import annotations

import math
import re
import reprlib
import sys
from abc import ABCMeta
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import MISSING, Field, field, fields
from enum import EnumType
from functools import cache
from inspect import Signature, signature
from numbers import Integral
from os import PathLike
from pathlib import Path
from textwrap import dedent
from types import FrameType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Protocol, Union, get_args, get_origin, get_type_hints

from tauloop.common.counts import counted
from tauloop.common.errors import InputError, Problem, Problems, TauloopError
from tauloop.common.names import deprecated
from tauloop.common.names.suggestions import suggestion
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin

#: Key of the `Option` in the metadata of a field.
KEY = "option"
#: The section "Attributes:" of a docstring.
_ATTRIBUTES_SECTION = re.compile(r"^( *)Attributes:\n((?:\1 +.*\n|\n)*)", re.MULTILINE)
#: An entry of this section.
_ATTRIBUTE_ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*(?:\n(?: +.*)?)*)", re.MULTILINE)
#: Names of Python's types in remedies.
_TYPE_NAMES: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    str: "text",
    bool: "True or False",
    NoneType: "None",
    Path: "a path",
    Mapping: "names with values, such as {'name': value}",
    tuple: "a tuple of values",
    Callable: "a function",
}
#: Types without labels; `by_label` returns their values without inspecting attributes.
_PLAIN_TYPES = (list, tuple, str, dict, float, int, type(None))
_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


class QuantityUnit(Protocol):
    """A physical dimension that reads texts with a unit; see `mechanism.description.units`."""

    def read(self, text: str, *others: Any) -> float:
        """Return the number of a text in SI units.

        Raises:
            ValueError: the text is not a number with a unit of this dimension or of one of the
                others; its attributes `what` and `remedy` are those of a `Problem`.
        """
        ...

    @property
    def noun(self) -> str:
        """Name of a quantity of this dimension, such as "time"."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """Limits, choices and command line settings of a field.

    Attributes:
        least, most, above, below: limits of a number, or of each number in a tuple or mapping; None
            for no limit. `below` infinity requires finite numbers.
        remedy: remedy for values outside the limits; by default it names the limits.
        choices: allowed texts; empty for all texts.
        named: objects that the command line accepts by their names. Python also accepts other
            objects of the same type.
        flag: name of the option on the command line, with a short name after a space; None to use
            the name of the field, "" for a field that is not an option.
        metavar: placeholder of the value in the command line's help, such as NAME=SPEED.
        read: converts the text of the command line, or the texts of a repeated option, to a value.
        repeated: whether the command line accepts the option several times.
        names: kind of names for tab completion: "parameters" or "actuators" of the machine, or "".
        unit: possible dimensions. Texts with a unit of one of them are accepted instead of numbers,
            also in a tuple or a mapping; bare numbers are in SI units.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    remedy: str = ""
    choices: Collection[str] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    flag: str | None = None
    metavar: str | None = None
    read: Callable[[Any], Any] | None = None
    repeated: bool = False
    names: str = ""
    unit: tuple[QuantityUnit, ...] = ()

    @property
    def limits(self) -> str:
        """The limits in words; "" without limits."""
        words = {
            "at least": self.least,
            "above": self.above,
            "at most": self.most,
            "below": self.below,
        }
        limits = [
            f"{word} {limit:g}"
            for word, limit in words.items()
            if limit is not None and limit < math.inf
        ]
        return " and ".join([*limits, "finite"] if self.below == math.inf else limits)


def option(default: Any = MISSING, *, factory: Any = MISSING, **settings: Any) -> Any:
    """Return a field of options.

    A field with a `unit` also accepts texts on the command line.

    Args:
        default: default of the field; without it and `factory`, the field is required.
        factory: function that returns the default.
        settings: attributes of the field's `Option`.
    """
    unit = settings.get("unit", ())
    if unit:
        settings["unit"] = unit if isinstance(unit, tuple) else (unit,)
        if not settings.get("metavar") and not settings.get("read"):
            noun = settings["unit"][0].noun
            settings["metavar"] = "QUANTITY" if " " in noun else noun.upper()
        settings.setdefault("read", str)
    return field(default=default, default_factory=factory, metadata={KEY: Option(**settings)})


def listed(texts: str | Iterable[str]) -> tuple[str, ...]:
    """Split texts at commas. It can be the `read` function of a field, also of a repeated option.

    Returns:
        Parts without surrounding spaces; empty parts are omitted.
    """
    texts = (texts,) if isinstance(texts, str) else texts
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def pairs(
    where: str,
    texts: str | Iterable[str] | None,
    problems: Problems,
    example: str = "x=0.1",
    *,
    bare: bool = False,
) -> dict[str, str]:
    """Return texts by name from one or several texts of the form ``NAME=TEXT,NAME=TEXT``.

    Args:
        where: name of the field, for problems.
        texts: texts of the field.
        problems: list to which malformed texts and repeated names are added.
        example: example in messages.
        bare: whether a name without "=" is allowed; its text is then "".
    """
    text_by_name: dict[str, str] = {}
    for part in listed(texts or ""):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not (value or bare):
            problems.add(where, f"{part!r} is not NAME=VALUE", f"write for example {example}")
        elif name in text_by_name:
            problems.add(where, f"{name} is given twice", "give it once")
        else:
            text_by_name[name] = value
    return text_by_name


def pairs_reader(
    where: str, example: str = "x=0.1", *, bare: bool = False
) -> Callable[[Any], dict[str, str]]:
    """Return a `read` function that calls `pairs` with the same arguments."""

    def read(texts: str | Iterable[str]) -> dict[str, str]:
        problems = Problems()
        text_by_name = pairs(where, texts, problems, example, bare=bare)
        InputError.raise_if_any(problems)
        return text_by_name

    return read


def each(read: Callable[[str], Any]) -> Callable[[Iterable[str]], tuple[Any, ...]]:
    """Return a `read` function for repeated fields from the function for a single text."""
    return lambda texts: tuple(map(read, texts))


def require(options: Any, error: type[TauloopError] = InputError, owner: str = "") -> None:
    """Check types, limits and choices of all fields, and report all problems in one error.

    Call it from ``__post_init__``. Each value of a tuple is checked, and each value of a mapping
    under its key.

    Args:
        options: an object with fields created by `option`.
        error: class of the error. For classes other than `InputError`, names of fields are prefixed
            by the class of the object.
        owner: prefix of the names, instead of the class.

    Raises:
        error: values are wrong; each problem states the field, the value and the allowed values.
    """
    class_prefix = "" if error is InputError else f"{type(options).__name__}."
    type_problems, limit_problems = _problems(options, owner or class_prefix)
    error.raise_if_any([*type_problems, *limit_problems])


class _FieldsClass(ABCMeta):
    """Metaclass of classes that users instantiate; creation checks the names of fields.

    Old names of fields work with a warning; see `tauloop.common.names.deprecated.KEYWORDS`.
    """

    if not TYPE_CHECKING:  # Type checkers know the fields.

        def __call__(cls, *positional: object, **values: object) -> Any:
            """Create the object.

            Raises:
                InputError: fields are unknown or missing; all are listed.
            """
            names = _field_names(cls)
            if values.keys() - names:
                values = _renew_fields(cls, values)
            is_missing = any(name not in values for name in _required_fields(cls))
            if is_missing or positional or values.keys() - names:
                InputError.raise_if_any(_name_problems(cls, positional, values))
            return super().__call__(*positional, **values)

        @property
        def __signature__(cls) -> Signature:
            """The signature of ``__init__`` without `self`, which `help` and the tab key show."""
            parameters = list(signature(cls.__init__).parameters.values())
            return Signature(parameters[1:])


@cache
def _field_names(options_class: type) -> frozenset[str]:
    """Return the names of the fields of a class."""
    return frozenset(item.name for item in fields(options_class))


@cache
def _required_fields(options_class: type) -> tuple[str, ...]:
    """Return the names of the fields without a default."""
    return tuple(
        item.name
        for item in fields(options_class)
        if item.default is MISSING and item.default_factory is MISSING
    )


def _renew_fields(options_class: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values of fields by their current names, with a warning for each old name."""
    old_names = deprecated.old_fields(options_class)
    frames_of_replace = _frames_of_replace()
    if frames_of_replace:
        # `dataclasses.replace` passes every field, in addition to those that change.
        replaced = {old_names[name] for name in values if name in old_names}
        values = {name: value for name, value in values.items() if name not in replaced}
    owner = options_class.__name__
    return deprecated.renew_keywords(owner, old_names, values, stacklevel=3 + frames_of_replace)


def _frames_of_replace() -> int:
    """Return the number of frames of `dataclasses.replace` above the call of a class; 0 if none."""
    frame: FrameType | None = sys._getframe(3)
    count = 0
    while frame is not None and frame.f_globals.get("__name__") == "dataclasses":
        frame = frame.f_back
        count += 1
    return count


def _name_problems(
    options_class: type, positional: Sequence[object], values: Mapping[str, object]
) -> Problems:
    """Return the problems of unknown and missing fields, with similar names as the remedy."""
    owner = options_class.__name__
    field_names = [item.name for item in fields(options_class)]
    old_names = deprecated.old_fields(options_class)
    problems = Problems()
    for name in values:
        if name in old_names:
            problems.append(deprecated.duplicate_problem(name, old_names[name]))
        elif name not in field_names:
            remedy = suggestion(name, field_names) or f"choose among {', '.join(field_names)}"
            problems.add(name, f"is not a field of {owner}", remedy)
    by_position = [item.name for item in fields(options_class) if not item.kw_only]
    if len(positional) > len(by_position):
        what = f"is given {counted(len(positional), 'positional value')}"
        problems.add(owner, what, "pass them as keyword arguments")
    positional_names = by_position[: len(positional)]
    for name in positional_names:
        if name in values:
            problems.add(name, "is given twice, by position and by name", "give it once")
    for name in _required_fields(options_class):
        if name not in values and name not in positional_names:
            problems.add(name, f"is missing from {owner}(...)", f"give {name}=...")
    return problems


class NamedFields(metaclass=_FieldsClass):
    """Base class of dataclasses that users instantiate; creation checks the names of fields."""

    __slots__ = ()


class Options(NamedFields, ReprMixin):
    """Base class of options, which reject invalid and contradictory values at creation."""

    __slots__ = ()

    if not TYPE_CHECKING:  # Type checkers know the fields.

        def __getattr__(self, name: str) -> Any:
            """Return the value of a field by its old name, with a warning.

            Raises:
                AttributeError: the name is unknown.
            """
            owner = type(self)
            new = deprecated.old_fields(owner).get(name)
            if new is None:
                return super().__getattr__(name)
            deprecated.warn(f"{owner.__name__}.{name}", f"{owner.__name__}.{new}", stacklevel=2)
            return getattr(self, new)

    def __post_init__(self) -> None:
        """Check types, limits and contradictions of all fields.

        Raises:
            InputError: values are wrong; all problems are listed.
        """
        type_problems, limit_problems = _problems(self)
        problems = Problems([*type_problems, *limit_problems])
        if not type_problems:
            _make_tuples(self)
            self._note_mismatches(problems)
        InputError.raise_if_any(problems)

    def _note_mismatches(self, problems: Problems) -> None:
        """Add problems of values that contradict each other; derived classes may override this."""


def _make_tuples(options: Any) -> None:
    """Replace arrays in tuple fields with tuples, whose truth value is defined."""
    hints = _hints(options.__class__)
    for item in fields(options):
        value = getattr(options, item.name)
        hint = hints[item.name]
        members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        if hasattr(value, "tolist") and any(get_origin(member) is tuple for member in members):
            object.__setattr__(options, item.name, _nested_tuple(value.tolist()))


def _nested_tuple(value: Any) -> Any:
    """Return nested lists as nested tuples."""
    return tuple(map(_nested_tuple, value)) if isinstance(value, list) else value


#: Names of fields whose default passed its checks, by class of options.
_CHECKED_DEFAULTS: defaultdict[type, set[str]] = defaultdict(set)


def _problems(options: Any, owner: str = "") -> tuple[list[Problem], list[Problem]]:
    """Return the problems of types, and the problems of values with correct types.

    Fields that contain texts are set to the values that these texts describe.
    """
    type_problems: list[Problem] = []
    limit_problems: list[Problem] = []
    checked_defaults = _CHECKED_DEFAULTS[type(options)]
    for item in fields(options):
        original = getattr(options, item.name)
        is_default = original is item.default
        if is_default and item.name in checked_defaults:
            continue
        value, of_type, of_limits = _check_field(type(options), item, original, owner)
        type_problems += of_type
        limit_problems += of_limits
        if value is not original:
            object.__setattr__(options, item.name, value)
        elif is_default and not of_type and not of_limits:
            checked_defaults.add(item.name)
    return type_problems, limit_problems


def value_problems(options_class: type, values: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of values for some fields of a class of options, each checked alone."""
    items = {item.name: item for item in fields(options_class)}
    problems: list[Problem] = []
    for name, value in values.items():
        _, of_type, of_limits = _check_field(options_class, items[name], value, "")
        problems += [*of_type, *of_limits]
    return problems


def _check_field(
    options_class: type, item: Field[Any], value: Any, owner: str
) -> tuple[Any, list[Problem], list[Problem]]:
    """Return a field's value with converted texts, the problems of its type, and of its limits."""
    name = f"{owner}{item.name}"
    spec = item.metadata.get(KEY) or Option()
    hint = _hints(options_class)[item.name]
    if any(get_origin(member) is Mapping for member in (hint, *get_args(hint))):
        value = by_label(value)
    try:
        value = _convert_text(name, value, spec, hint)
    except InputError as error:
        return value, list(error.problems), []
    type_problems = [*_type_problems(name, value, hint)]
    if type_problems:
        return value, type_problems, []
    # pairs of a suffix of the field's name and a value whose limits are checked
    members = [("", value)]
    if isinstance(value, Mapping):
        members = [(f".{key}", member) for key, member in value.items()]
    elif _has_type(value, tuple):
        members = [("", member) for member in value]
    is_whole = str(item.type).startswith("int")
    problems = [
        _limit_problem(f"{name}{key}", member, spec, is_whole=is_whole) for key, member in members
    ]
    return value, [], [problem for problem in problems if problem is not None]


def _convert_text(name: str, value: Any, spec: Option, hint: Any) -> Any:
    """Return a value whose texts are replaced with the values that they describe.

    Raises:
        InputError: a text is not a valid value of the field.
    """
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if isinstance(value, str) and str not in members:
        value = _parse_text(name, value, spec, members)
    return _to_si(name, value, spec.unit) if spec.unit and _holds_text(value) else value


def _parse_text(name: str, text: str, spec: Option, members: tuple[Any, ...]) -> Any:
    """Return the value of a text, or the text if the field accepts texts.

    Raises:
        InputError: the text is not the name of an object that the field accepts.
    """
    enumeration = next((member for member in members if isinstance(member, EnumType)), None)
    objects = dict(spec.named)
    if enumeration is not None:
        objects |= dict(enumeration.__members__)
    if objects:
        matches = [item for key, item in objects.items() if key.casefold() == text.casefold()]
        if not matches:
            raise InputError.of(name, f"{text!r} is unknown", f"choose among {', '.join(objects)}")
        return matches[0]
    if spec.read is not None and spec.read is not str:
        return spec.read([text] if spec.repeated else text)
    member_types = [get_args(member)[0] for member in members if get_origin(member) is tuple]
    if not member_types:
        return text
    if spec.unit or member_types[0] is str:
        return listed(text)
    return (text,) if _accepts_text(member_types[0]) else text


def _accepts_text(hint: Any) -> bool:
    """Return whether a type is `str` or a union that contains it."""
    return hint is str or str in get_args(hint)


def _holds_text(value: Any) -> bool:
    """Return whether a value is text or contains text."""
    if isinstance(value, Mapping):
        return any(map(_holds_text, value.values()))
    if isinstance(value, tuple | list):
        return any(map(_holds_text, value))
    return isinstance(value, str)


def _to_si(name: str, value: Any, unit: tuple[QuantityUnit, ...]) -> Any:
    """Return a value whose texts are replaced with numbers in SI units."""
    if isinstance(value, Mapping):
        return {key: _to_si(f"{name}.{key}", member, unit) for key, member in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_to_si(f"{name}[{k}]", member, unit) for k, member in enumerate(value))
    if not isinstance(value, str):
        return value
    try:
        return unit[0].read(value, *unit[1:])
    except ValueError as error:
        what = getattr(error, "what", str(error))
        if value.strip() not in what:
            what = f"{value!r}: {what}"
        raise InputError.of(name, what, getattr(error, "remedy", "")) from None


def type_problems_of(where: str, value: Any, hint: Any) -> list[Problem]:
    """Return the problems of a value, or of its members, with another type than annotated."""
    return [*_type_problems(where, value, hint)]


def _type_problems(where: str, value: Any, hint: Any) -> Iterator[Problem]:
    """Yield the problems of a value, or of its members, with another type than annotated."""
    alternatives = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    matching = [item for item in alternatives if _has_type(value, _outer_type(item))]
    if matching:
        problems = [[*_member_type_problems(where, value, item)] for item in matching]
        yield from min(problems, key=len)
        return
    names = " or ".join(dict.fromkeys(_type_name(_outer_type(item)) for item in alternatives))
    # the repr of a table has several lines, which are joined
    text = " ".join(reprlib.repr(value).split())
    what = f"is {text}, of type {type(value).__name__}"
    yield Problem(where, what, f"give {names}")


def _member_type_problems(where: str, value: Any, hint: Any) -> Iterator[Problem]:
    """Yield the problems of members of a mapping or tuple with another type than annotated."""
    outer = get_origin(hint)
    inner = get_args(hint)
    if outer is Mapping:
        key_type = _outer_type(inner[0])
        for key, member in value.items():
            if not _has_type(key, key_type):
                what = f"has the key {reprlib.repr(key)}, of type {type(key).__name__}"
                remedy = f"give {_type_name(key_type)} as a key, such as {{'name': value}}"
                yield Problem(where, what, remedy)
            yield from _type_problems(f"{where}.{key}", member, inner[1])
    elif outer is tuple:
        hints = inner[:1] * len(value) if inner[-1] is ... else inner
        if len(hints) != len(value):
            yield Problem(where, f"has {counted(len(value), 'value')}", f"give {len(hints)}")
        for k, (member, member_hint) in enumerate(zip(value, hints, strict=False)):
            yield from _type_problems(f"{where}[{k}]", member, member_hint)


def _outer_type(hint: Any) -> Any:
    """Return an annotated type without its member types; tuple for arrays and sequences."""
    outer = get_origin(hint) or hint
    return tuple if getattr(outer, "__name__", "") in ("ndarray", "Sequence") else outer


def _type_name(value_type: Any) -> str:
    """Return the name of a type in a remedy."""
    if isinstance(value_type, EnumType):
        return " or ".join(f"{value_type.__name__}.{name}" for name in value_type.__members__)
    words = _TYPE_NAMES.get(value_type) or getattr(value_type, "in_words", "")
    article = "an" if value_type.__name__[0] in "AEIOU" else "a"
    return words or f"{article} {value_type.__name__}"


def _has_type(value: Any, value_type: Any) -> bool:
    """Return whether a value has a type, or can be used as this type."""
    if value_type in (float, int):
        return _is_number(value)
    if value_type is tuple:
        return (
            isinstance(value, Sized)
            and not isinstance(value, str | bytes | Mapping)
            and not hasattr(value, "columns")  # a table, which iterates over names
            and getattr(value, "ndim", True)
        )
    if value_type is bool:
        return _is_flag(value)
    if value_type is Path:
        return isinstance(value, str | PathLike)
    return value_type is Any or isinstance(value, value_type)


def _is_flag(value: object) -> bool:
    """Return whether a value is a Boolean of Python or NumPy."""
    return type(value).__name__ in ("bool", "bool_")


def _is_number(value: Any) -> bool:
    """Return whether a value is a number of Python, NumPy or pandas that can become a float.

    Masked numbers are excluded.
    """
    if type(value).__name__ == "MaskedConstant":
        return False
    try:
        return not (_is_flag(value) or getattr(value, "ndim", None)) and isinstance(
            value.__float__(), float
        )
    except (AttributeError, TypeError, ValueError, OverflowError):
        return False


def _limit_problem(name: str, value: Any, spec: Option, *, is_whole: bool) -> Problem | None:
    """Return the problem of a value outside its choices or limits; None if there is none."""
    if spec.choices and isinstance(value, str) and value not in spec.choices:
        return Problem(
            where=name,
            what=f"{value!r} is unknown",
            remedy=f"choose among {', '.join(spec.choices)}",
        )
    if not _is_number(value):
        return None
    # Infinity means no limit if there is no upper limit.
    if value == math.inf and spec.most is None and spec.below is None:
        return None
    is_too_small = (spec.least is not None and not value >= spec.least) or (
        spec.above is not None and not value > spec.above
    )
    is_too_large = (spec.most is not None and not value <= spec.most) or (
        spec.below is not None and not value < spec.below
    )
    is_not_whole = is_whole and not isinstance(value, Integral)
    if not (is_too_small or is_too_large or is_not_whole or math.isnan(value)):
        return None
    what = "is not a number" if math.isnan(value) else f"is {value:g}"
    noun = "whole number" if is_not_whole else "number"
    remedy = f"give a {noun} {spec.limits}".strip()
    return Problem(name, what, spec.remedy or remedy)


def described(options: type) -> dict[str, str]:
    """Return the descriptions of the fields in the docstrings of a class and its bases, by name."""
    texts: dict[str, str] = {}
    for owner in reversed(options.__mro__):
        for _, section in _ATTRIBUTES_SECTION.findall(owner.__doc__ or ""):
            for names, text in _ATTRIBUTE_ENTRY.findall(dedent(section)):
                texts |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return texts


def by_label(value: Any) -> Any:
    """Return labeled data as a mapping from labels to values, and other objects unchanged.

    Labeled data are a `pandas.Series` with texts as index, a `pandas.DataFrame` with texts as
    columns, and an `xarray.DataArray` whose last dimension has texts as coordinates. The order of
    labels does not matter. Objects of these libraries are recognized by their attributes, because
    importing the libraries is slow.
    """
    if type(value) in _PLAIN_TYPES:
        return value
    if hasattr(value, "iloc"):
        is_table = hasattr(value, "columns")
        labels = list(value.columns if is_table else value.index)
        if not _are_texts(labels):
            return value
        columns = value.to_numpy().T
        return {label: columns[k].tolist() for k, label in enumerate(labels)}
    if hasattr(value, "coords") and hasattr(value, "dims") and hasattr(value, "values"):
        dimensions = list(value.dims)
        if not dimensions or dimensions[-1] not in value.coords:
            return value
        labels = value.coords[dimensions[-1]].values.tolist()
        if _are_texts(labels):
            return {label: value.values[..., k].tolist() for k, label in enumerate(labels)}
    return value


def is_labeled_table(value: Any) -> bool:
    """Return whether labeled data (see `by_label`) have two dimensions, such as a `DataFrame`."""
    return getattr(value, "ndim", 1) == 2 and isinstance(by_label(value), dict)


def _are_texts(labels: list[Any]) -> bool:
    """Return whether the list is not empty and contains only texts."""
    return bool(labels) and all(isinstance(label, str) for label in labels)
