"""Options of workflows: dataclasses whose fields say what they may be, for Python and the command line alike.

A class of options is frozen, and its docstring describes every field below "Attributes:". A field
that is made with `option` has limits or choices; `require` looks at all of them at once. The
command line takes names, types, defaults, limits and texts from the same class.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from dataclasses import MISSING, Field, field, fields
from enum import EnumType
from functools import cache
from numbers import Integral
from os import PathLike
from pathlib import Path
from textwrap import dedent
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Protocol, Union, get_args, get_origin, get_type_hints

from tauloop.common.errors import InputError, Problem, Problems, TauloopError
from tauloop.common.records import dataclass
from tauloop.common.shown import Shown
from tauloop.common.suggestions import suggestion

#: Under this key a field's metadata hold its `Option`.
KEY = "option"
#: What a docstring says below "Attributes:", and one entry there.
_BLOCK = re.compile(r"^( *)Attributes:\n((?:\1 +.*\n|\n)*)", re.MULTILINE)
_ENTRY = re.compile(r"^(\w+(?:, \w+)*): (.*(?:\n(?: +.*)?)*)", re.MULTILINE)
#: What to give for a type of Python's own.
_WORDS: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    str: "text",
    bool: "True or False",
    NoneType: "None",
    Path: "a path",
    Mapping: "names with values, such as {'name': value}",
    tuple: "several in a tuple",
    Callable: "a function",
}
_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)


class QuantityUnit(Protocol):
    """A physical dimension, which reads text with a unit; those of `mechanism.description.units`."""

    def read(self, text: str, *others: Any) -> float:
        """Return a number in SI units.

        Raises:
            ValueError: not a number with a unit of this dimension, or of one of the others; the
                attributes `what` and `remedy` state why.
        """
        ...

    @property
    def noun(self) -> str:
        """What a quantity of it is called, such as "time"."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is said of one field.

    Attributes:
        least, most, above, below: limits of a number, or of each of several; None for no limit;
            below infinity a number is finite.
        remedy: what to give instead of what is outside them, where that is more than the limits.
        choices: what a text may be; any where it is empty.
        named: objects that the command line takes by their names; Python takes others of their type
            as well.
        flag: its name on the command line, and a short one behind a space; None for that of the
            field, "" where it is no option there.
        metavar: what the command line's help writes for its value, such as NAME=SPEED.
        read: makes the value of the text, or texts where it may be repeated, that the command line
            was given.
        repeated: whether the command line takes it several times.
        names: what it names, for the tab key: "parameters" or "actuators" of the machine; "" for
            neither.
        unit: dimensions that it may have; text with a unit of one of them is read where numbers
            are expected, also in a tuple or a mapping, and a number alone is in SI units.
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
        """The limits in words, "" without any."""
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
    """Return a field of options with a default (or what makes one), if it has any, and its `Option`.

    A field with a `unit` takes text on the command line too.
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
    """The parts of texts with commas between them: a `read` for fields that may be repeated too."""
    texts = (texts,) if isinstance(texts, str) else texts
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def each(read: Callable[[str], Any]) -> Callable[[Iterable[str]], tuple[Any, ...]]:
    """A `read` for fields that may be repeated, by that of one of their texts."""
    return lambda texts: tuple(map(read, texts))


def require(options: Any, error: type[TauloopError] = InputError, owner: str = "") -> None:
    """Refuse values of other types, and outside their limits and choices, all at once; call it from ``__post_init__``.

    Of a tuple each value is looked at, and of a mapping, under its key.

    Args:
        options: an object whose fields say what they may be.
        error: what is raised; one other than `InputError`, of objects that Python alone makes,
            names their class too.
        owner: what stands before each name instead.

    Raises:
        error: each with the field's name, the value and what it may be.
    """
    kinds, limits = _problems(
        options, owner or ("" if error is InputError else f"{type(options).__name__}.")
    )
    error.raise_if_any([*kinds, *limits])


class Options(Shown):
    """Base of a class of options: what is out of range or does not go together is refused when one is made."""

    __slots__ = ()

    if not TYPE_CHECKING:  # which know the fields

        def __new__(cls, *places: object, **values: object) -> Options:
            """Refuse fields that there are not, with what may have been meant; then make an object as usual."""
            known = [item.name for item in fields(cls)]
            problems = Problems()
            for name in values:
                if name not in known:
                    remedy = suggestion(name, known) or f"choose among {', '.join(known)}"
                    problems.add(name, f"is not a field of {cls.__name__}", remedy)
            if len(places) > sum(not item.kw_only for item in fields(cls)):
                what = f"is given {len(places)} values by their place"
                problems.add(cls.__name__, what, "give them by the names of fields")
            InputError.raise_if_any(problems)
            return super().__new__(cls)

    def __post_init__(self) -> None:
        """Refuse what is out of range, and what of the right types does not go together, all at once."""
        kinds, limits = _problems(self)
        problems = Problems([*kinds, *limits])
        if not kinds:
            _make_tuples(self)
            self._note_mismatches(problems)
        InputError.raise_if_any(problems)

    def _note_mismatches(self, problems: Problems) -> None:
        """Note values that are within their limits and do not go together; none where a class does not say more."""


def _make_tuples(options: Any) -> None:
    """Put a tuple in the place of each array of NumPy whose field is a tuple: an array is neither true nor false."""
    hints = _hints(options.__class__)
    for item in fields(options):
        value, hint = getattr(options, item.name), hints[item.name]
        members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        if hasattr(value, "tolist") and any(get_origin(member) is tuple for member in members):
            object.__setattr__(options, item.name, _nested_tuple(value.tolist()))


def _nested_tuple(value: Any) -> Any:
    return tuple(map(_nested_tuple, value)) if isinstance(value, list) else value


def _problems(options: Any, owner: str = "") -> tuple[list[Problem], list[Problem]]:
    """Return what is wrong with the types of values; and with what they are, where their types are right."""
    kinds, limits = list[Problem](), list[Problem]()
    for item in fields(options):
        value = getattr(options, item.name)
        read, wrong, beyond = _checked(type(options), item, value, owner)
        kinds += wrong
        limits += beyond
        if read is not value:
            object.__setattr__(options, item.name, read)
    return kinds, limits


def value_problems(kind: type, values: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with values of some fields of a class of options, each by itself."""
    items = {item.name: item for item in fields(kind)}
    results = [_checked(kind, items[name], value, "") for name, value in values.items()]
    return [problem for _, wrong, beyond in results for problem in (*wrong, *beyond)]


def _checked(
    kind: type, item: Field[Any], value: Any, owner: str
) -> tuple[Any, list[Problem], list[Problem]]:
    """Return the value of a field with its texts read, what is wrong with its type, and what is beyond limits."""
    name, spec, hint = (
        f"{owner}{item.name}",
        item.metadata.get(KEY) or Option(),
        _hints(kind)[item.name],
    )
    try:
        value = _read_text(name, value, spec, hint)
    except InputError as error:
        return value, list(error.problems), []
    if wrong := [*_of_wrong_type(name, value, hint)]:
        return value, wrong, []
    parts = [("", value)]
    if isinstance(value, Mapping):
        parts = [(f".{key}", part) for key, part in value.items()]
    elif _is_of(value, tuple):
        parts = [("", part) for part in value]
    is_whole = str(item.type).startswith("int")
    beyond = [_problem(f"{name}{key}", part, spec, is_whole=is_whole) for key, part in parts]
    return value, [], [problem for problem in beyond if problem is not None]


def _read_text(name: str, value: Any, spec: Option, hint: Any) -> Any:
    """Return the value of a field that is stated as text, in whole or in part; other values as they are.

    Raises:
        InputError: the text is not a value of the field.
    """
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if isinstance(value, str) and str not in members:
        value = _parsed(name, value, spec, members)
    return _in_si(name, value, spec.unit) if spec.unit and _holds_text(value) else value


def _parsed(name: str, text: str, spec: Option, members: tuple[Any, ...]) -> Any:
    """Return the object that a text names, or the text itself where none is meant."""
    enumeration = next((member for member in members if isinstance(member, EnumType)), None)
    named = dict(spec.named)
    if enumeration is not None:
        named |= dict(enumeration.__members__)
    if named:
        matches = [named[key] for key in named if key.casefold() == text.casefold()]
        if not matches:
            raise InputError.of(name, f"{text!r} is unknown", f"choose among {', '.join(named)}")
        return matches[0]
    if spec.read is not None and spec.read is not str:
        return spec.read([text] if spec.repeated else text)
    rows = [get_args(member) for member in members if get_origin(member) is tuple]
    if rows and (spec.unit or rows[0][0] is str):
        return listed(text)
    return (text,) if rows and _admits_text(rows[0][0]) else text


def _admits_text(hint: Any) -> bool:
    return hint is str or str in get_args(hint)


def _holds_text(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_text, value.values()))
    if isinstance(value, tuple | list):
        return any(map(_holds_text, value))
    return isinstance(value, str)


def _in_si(name: str, value: Any, unit: tuple[QuantityUnit, ...]) -> Any:
    """Return a value with its texts replaced by numbers in SI units."""
    if isinstance(value, Mapping):
        return {key: _in_si(f"{name}.{key}", part, unit) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_in_si(f"{name}[{k}]", part, unit) for k, part in enumerate(value))
    if not isinstance(value, str):
        return value
    try:
        return unit[0].read(value, *unit[1:])
    except ValueError as error:
        what, remedy = getattr(error, "what", str(error)), getattr(error, "remedy", "")
        what = what if value.strip() in what else f"{value!r}: {what}"
        raise InputError.of(name, what, remedy) from None


def of_wrong_type(where: str, value: Any, hint: Any) -> list[Problem]:
    """Return what is not of the type that an annotation states: a value itself, or its parts."""
    return [*_of_wrong_type(where, value, hint)]


def _of_wrong_type(where: str, value: Any, hint: Any) -> Iterator[Problem]:
    """What is not of the type that an annotation states: a value itself, or what it is made of."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if fitting := [member for member in members if _is_of(value, _outer(member))]:
        yield from min(
            ([*_parts_of_wrong_type(where, value, member)] for member in fitting), key=len
        )
        return
    wanted = " or ".join(dict.fromkeys(_named(_outer(member)) for member in members))
    yield Problem(
        where, f"is {reprlib.repr(value)}, of type {type(value).__name__}", f"give {wanted}"
    )


def _parts_of_wrong_type(where: str, value: Any, hint: Any) -> Iterator[Problem]:
    kind, inner = get_origin(hint), get_args(hint)
    if kind is Mapping:
        for key, part in value.items():
            if not _is_of(key, _outer(inner[0])):
                what = f"has the key {reprlib.repr(key)}, of type {type(key).__name__}"
                yield Problem(
                    where,
                    what,
                    f"give {_named(_outer(inner[0]))} as a key, such as {{'name': value}}",
                )
            yield from _of_wrong_type(f"{where}.{key}", part, inner[1])
    elif kind is tuple:
        hints = inner[:1] * len(value) if inner[-1] is ... else inner
        if len(hints) != len(value):
            yield Problem(where, f"has {len(value)} values", f"give {len(hints)}")
        for k, (part, part_hint) in enumerate(zip(value, hints, strict=False)):
            yield from _of_wrong_type(f"{where}[{k}]", part, part_hint)


def _outer(hint: Any) -> Any:
    """The type of a whole value; a tuple where it is an array or a sequence."""
    kind = get_origin(hint) or hint
    return tuple if getattr(kind, "__name__", "") in ("ndarray", "Sequence") else kind


def _named(kind: Any) -> str:
    """What to give for a type."""
    if isinstance(kind, EnumType):
        return " or ".join(f"{kind.__name__}.{name}" for name in kind.__members__)
    words = _WORDS.get(kind) or getattr(kind, "in_words", "")
    return words or f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _is_of(item: Any, kind: Any) -> bool:
    if kind in (float, int):
        return _is_number(item)
    if kind is tuple:
        return (
            isinstance(item, Sized)
            and not isinstance(item, str | bytes | Mapping)
            and getattr(item, "ndim", True)
        )
    if kind is bool:
        return _is_flag(item)
    return kind is Any or isinstance(item, str | PathLike if kind is Path else kind)


def _is_flag(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")


def _is_number(value: Any) -> bool:
    """Whether it is one number that fits into a float: of Python, NumPy or a table; a masked one is not."""
    if type(value).__name__ == "MaskedConstant":
        return False
    try:
        return not (_is_flag(value) or getattr(value, "ndim", None)) and isinstance(
            value.__float__(), float
        )
    except (AttributeError, TypeError, ValueError, OverflowError):
        return False


def _problem(name: str, value: Any, spec: Option, *, is_whole: bool) -> Problem | None:
    if spec.choices and isinstance(value, str) and value not in spec.choices:
        return Problem(
            where=name, what=f"unknown: {value!r}", remedy=f"choose among {', '.join(spec.choices)}"
        )
    if not _is_number(value) or (value == math.inf and spec.most is None and spec.below is None):
        return None  # infinity: no limit, where one may be given
    low = (spec.least is not None and not value >= spec.least) or (
        spec.above is not None and not value > spec.above
    )
    high = (spec.most is not None and not value <= spec.most) or (
        spec.below is not None and not value < spec.below
    )
    is_broken = is_whole and not isinstance(value, Integral)
    if not (low or high or is_broken or math.isnan(value)):
        return None
    what = "is no number" if math.isnan(value) else f"is {value:g}"
    return Problem(
        name, what, spec.remedy or f"give a {'whole ' * is_broken}number {spec.limits}".strip()
    )


def described(options: type) -> dict[str, str]:
    """What the docstrings of a class of options and of its bases say of each field, by its name, in one line."""
    texts: dict[str, str] = {}
    for kind in reversed(options.__mro__):
        for _, block in _BLOCK.findall(kind.__doc__ or ""):
            for names, text in _ENTRY.findall(dedent(block)):
                texts |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return texts
