"""Options of workflows: dataclasses whose fields say what they may be, for Python and the command line alike.

A class of options is frozen, and its docstring describes every field below "Attributes:". A field that is made with
`option` has limits or choices; `require` looks at all of them at once. The command line takes names, types, defaults,
limits and texts from the same class.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from os import PathLike
from typing import Any

from tauloop.errors import InputError, Problem, Problems, TauloopError
from tauloop.records import dataclass
from tauloop.shown import Shown

#: Under this key a field's metadata hold its `Option`.
KEY = "option"
_ENTRY = re.compile(r"(?P<names>\w+(?:, \w+)*): (?P<text>.*)")
_INNER = re.compile(r"\[[^\[\]]*\]")
#: What a field may be by the name of its type: whether a value is one, and what to give. A field that may be anything
#: else is not looked at.
_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "float": (lambda value: hasattr(value, "__float__") and not _is_flag(value), "a number"),
    "int": (lambda value: hasattr(value, "__float__") and not _is_flag(value), "a whole number"),
    "str": (lambda value: isinstance(value, str), "text"),
    "bool": (lambda value: _is_flag(value), "True or False"),
    "None": (lambda value: value is None, "None"),
    "Path": (lambda value: isinstance(value, str | PathLike), "a path"),
    "Mapping": (lambda value: isinstance(value, Mapping), "names with values, such as {'name': value}"),
    "tuple": (lambda value: isinstance(value, Iterable) and not isinstance(value, str | Mapping), "several in a tuple"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is said of one field.

    Attributes:
        least, most, above, below: limits of a number, or of each of several; None for no limit; below infinity a number
            is finite.
        remedy: what to give instead of what is outside them, where that is more than the limits.
        choices: what a text may be; any where it is empty.
        named: objects that the command line takes by their names; Python takes others of their type as well.
        flag: its name on the command line, and a short one behind a space; None for that of the field, "" where it is
            no option there.
        metavar: what the command line's help writes for its value, such as NAME=SPEED.
        read: makes the value of the text, or texts where it may be repeated, that the command line was given.
        repeated: whether the command line takes it several times.
        names: what it names, for the tab key: "parameters" or "actuators" of the machine; "" for neither.
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

    @property
    def limits(self) -> str:
        """The limits in words, "" without any."""
        words = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        limits = [f"{word} {limit:g}" for word, limit in words.items() if limit is not None and limit < math.inf]
        return " and ".join([*limits, "finite"] if self.below == math.inf else limits)


def option(default: Any = MISSING, *, factory: Any = MISSING, **settings: Any) -> Any:
    """A field of options with a default (or what makes one), if it has any, and what `Option` says of it."""
    return field(default=default, default_factory=factory, metadata={KEY: Option(**settings)})


def listed(texts: str | Iterable[str]) -> tuple[str, ...]:
    """The parts of texts with commas between them: a `read` for fields that may be repeated too."""
    texts = (texts,) if isinstance(texts, str) else texts
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def each(read: Callable[[str], Any]) -> Callable[[Iterable[str]], tuple[Any, ...]]:
    """A `read` for fields that may be repeated, by that of one of their texts."""
    return lambda texts: tuple(map(read, texts))


def require(options: Any, error: type[TauloopError] = InputError) -> None:
    """Refuse values outside their limits and choices, all at once; call it from ``__post_init__``.

    Of a tuple each value is looked at, and of a mapping, under its key.

    Args:
        options: an object whose fields say what they may be.
        error: what is raised; one other than `InputError`, of objects that Python alone makes, names their class too.

    Raises:
        error: each with the field's name, the value and what it may be.
    """
    problems, owner = [], "" if error is InputError else f"{type(options).__name__}."
    for item in fields(options):
        value, spec = getattr(options, item.name), item.metadata.get(KEY, Option())
        if kind := _wrong_kind(f"{owner}{item.name}", value, str(item.type)):
            problems.append(kind)
            continue
        if isinstance(value, Mapping):
            numbers = [(f"{item.name}.{key}", number) for key, number in value.items()]
        else:
            numbers = [(item.name, number) for number in (value if isinstance(value, tuple) else (value,))]
        for name, number in numbers:
            if problem := _problem(f"{owner}{name}", number, spec, is_whole=str(item.type).startswith("int")):
                problems.append(problem)
    error.raise_if_any(problems)


class Options(Shown):
    """Base of a class of options: what is out of range or does not go together is refused when one is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Refuse what is out of range, and what does not go together, all at once."""
        problems = Problems()
        with problems.collecting(InputError):
            require(self)
        self._note_mismatches(problems)
        InputError.raise_if_any(problems)

    def _note_mismatches(self, problems: Problems) -> None:
        """Note values that are within their limits and do not go together; none where a class does not say more."""


def _is_flag(value: object) -> bool:
    return type(value).__name__ in ("bool", "bool_")


def _wrong_kind(name: str, value: object, annotation: str) -> Problem | None:
    """What is wrong with the type of a value: of any where the annotation names plain types alone, else of text."""
    outer = annotation
    while _INNER.search(outer):
        outer = _INNER.sub("", outer)
    kinds = [kind.strip() for kind in outer.split("|")]
    if any(kind in _KINDS and _KINDS[kind][0](value) for kind in kinds):
        return None
    if not (all(kind in _KINDS for kind in kinds) or (isinstance(value, str) and "float" in kinds)):
        return None
    wanted = " or ".join(dict.fromkeys(_KINDS[kind][1] if kind in _KINDS else f"a {kind}" for kind in kinds))
    return Problem(where=name, what=f"is {value!r}, of type {type(value).__name__}", remedy=f"give {wanted}")


def _problem(name: str, value: object, spec: Option, *, is_whole: bool) -> Problem | None:
    if spec.choices and isinstance(value, str) and value not in spec.choices:
        return Problem(where=name, what=f"unknown: {value!r}", remedy=f"choose among {', '.join(spec.choices)}")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if value == math.inf and spec.most is None and spec.below is None:
        return None  # no limit, where one may be given
    low = (spec.least is not None and not value >= spec.least) or (spec.above is not None and not value > spec.above)
    high = (spec.most is not None and not value <= spec.most) or (spec.below is not None and not value < spec.below)
    is_broken = is_whole and isinstance(value, float)
    if not (low or high or is_broken or math.isnan(value)):
        return None
    what = "is no number" if math.isnan(value) else f"is {value:g}"
    return Problem(name, what, spec.remedy or f"give a {'whole ' * is_broken}number {spec.limits}".strip())


def described(options: type) -> dict[str, str]:
    """What the docstrings of a class of options and of its bases say of each field, by its name, in one line."""
    texts: dict[str, str] = {}
    for kind in reversed(options.__mro__):
        texts |= _entries(kind.__doc__ or "")
    return texts


def _entries(docstring: str) -> dict[str, str]:
    """What a docstring says below "Attributes:", by name."""
    lines = docstring.partition("Attributes:")[2].splitlines()[1:]
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    texts: dict[str, str] = {}
    names: Sequence[str] = ()
    for line in lines:
        if not line.strip():
            continue
        here = len(line) - len(line.lstrip())
        if here < indents[0]:
            break
        entry = _ENTRY.match(line.strip()) if here == indents[0] else None
        if entry:
            names = entry["names"].split(", ")
            texts |= dict.fromkeys(names, entry["text"])
        else:
            texts |= {name: f"{texts[name]} {line.strip()}" for name in names}
    return texts
