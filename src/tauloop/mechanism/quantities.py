"""Numbers with units as people write them, wherever they do: in files of every kind and on the command line.

``0.5 mm``, ``0.5mm`` and ``+5e-1 mm`` are one number. In a file only an exact zero has no unit; on the command line a
number alone is in SI units.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from tauloop.errors import InputError, Problem, Problems
from tauloop.mechanism.parser import MAX_CHARACTERS, NUMBER
from tauloop.mechanism.units import ANGLE, ONE, Dimension, UnitError, named, parse_unit, shown
from tauloop.records import dataclass

LITERAL = re.compile(
    # 21/s is not 2 1/s
    rf"(?P<number>[+-]?\s*{NUMBER})(?:\s*(?P<unit>[A-Za-z][A-Za-z0-9^/\s-]*|(?<=\s)1/[A-Za-z0-9^/\s-]+))?",
    re.ASCII,
)
_BEGINNING = re.compile(rf"[+-]?\s*{NUMBER}", re.ASCII)
NOT_FINITE = re.compile(r"[+-]?\.?(inf|infinity|nan)(\s+[A-Za-z1][^()]*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Literal:
    """A number with its unit as written."""

    number: float
    unit: str
    scale: float
    dimension: Dimension

    @property
    def value(self) -> float:
        """In SI units."""
        return self.number * self.scale


def literal(text: str, wanted: str = "one such as 0.5 mm") -> Literal:
    """A number with whatever unit, or a plain number.

    Args:
        text: what is written.
        wanted: what could be written, for the message.

    Raises:
        UnitError: the text is none, names no known unit, or is not finite.
    """
    text = text.strip()
    if NOT_FINITE.fullmatch(text):
        raise UnitError(f"{text} is not a finite number", "write a finite value, or leave the key out")
    if len(text) > MAX_CHARACTERS:
        what = f"the value has {len(text)} characters, more than {MAX_CHARACTERS}"
        raise UnitError(what, "round the number, or split the expression into named parameters")
    match, beginning = LITERAL.fullmatch(text), _BEGINNING.match(text)
    if match is None and beginning is not None:
        parse_unit(text[beginning.end() :])  # says what is wrong with it
    if match is None:
        raise UnitError(f"{text!r} is not a number with a unit", f"write {wanted}")
    number = float("".join(match["number"].split()))
    if match["unit"] is None:
        read = Literal(number, "", 1.0, ONE)
    else:
        unit = parse_unit(match["unit"])
        read = Literal(number, unit.text, unit.scale, unit.dimension)
    if not math.isfinite(read.value):
        raise UnitError(f"the number {match['number']} is too large", "check its exponent")
    return read


def _needed(wanted: Sequence[Dimension]) -> str:
    return " or ".join(named(dimension) for dimension in wanted)


def _unit(wanted: Sequence[Dimension]) -> str:
    return "deg" if wanted[0] == ANGLE else str(wanted[0])


def misfit(written: str, dimension: Dimension, wanted: Sequence[Dimension], number: float | None) -> UnitError:
    """Why what is written may not stand where other dimensions are wanted.

    Args:
        written: what is written, for the message.
        dimension: what it has.
        wanted: what it could have.
        number: the number, if that is all that is written.
    """
    needed = _needed(wanted)
    if dimension.is_one:
        unit = "deg" if wanted[0] == ANGLE else str(wanted[0])
        remedy = (
            f"write the unit, such as {number:g} {unit}" if number is not None else "give its parameters their units"
        )
        return UnitError(f"{written} has no unit where {needed} is needed", remedy)
    if any(one.is_angular and dimension.matches(one) for one in wanted):
        what = f"{written} does not say that it is an angle: {needed} is needed"
        return UnitError(what, "write rad or deg, or rpm; Hz and 1/s could mean turns or radians")
    what = f"{written} is {named(dimension)} where {needed} is needed"
    return UnitError(what, "check the unit" if number is not None else "check the unit or the expression")


def read_quantity(text: str, *wanted: Dimension, is_si: bool = False) -> Literal:
    """A number with a unit of one of the wanted dimensions, and that dimension.

    Args:
        text: what is written.
        wanted: dimensions that it may have.
        is_si: whether a number alone is in the SI unit of the first; else only zero is.

    Raises:
        UnitError: it is none; what is wrong, and the remedy.
    """
    read = literal(text, f"{_needed(wanted)}, such as 0.5 {_unit(wanted)}".rstrip())
    for dimension in wanted:
        if read.dimension.suits(dimension):
            return replace(read, dimension=dimension)
    if not read.unit and (is_si or read.number == 0.0):
        return replace(read, dimension=wanted[0])
    raise misfit(repr(text.strip()), read.dimension, wanted, read.number)


def quantity(where: str, text: str, *wanted: Dimension) -> float:
    """A number in SI units from text such as ``1 kHz`` or ``0.5ms``; a number alone is in SI units.

    Args:
        where: name of the option or argument, for the message.
        text: what is written.
        wanted: dimensions that it may have; the first is that of a number alone.

    Raises:
        InputError: no number, an unknown unit, or a unit of something else.
    """
    try:
        return read_quantity(text, *wanted, is_si=True).value
    except UnitError as error:
        raise InputError(Problem(where=where, what=error.what, remedy=error.remedy)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Two ends in SI units, infinite where one is left open, and their dimension."""

    lower: float
    upper: float
    dimension: Dimension


def interval(text: str, between: str, *wanted: Dimension, is_si: bool = False) -> Interval:
    """Two ends such as ``1.2 m:1.3 m``, ``200:230 mm`` or ``:5 deg``; a unit behind the second holds for the first.

    Args:
        text: what is written.
        between: what stands between both ends.
        wanted: dimensions that they may have, both the same.
        is_si: whether a number alone is in SI units.

    Raises:
        UnitError: no two ends, both left out, two dimensions, the wrong order, or an end that is no quantity.
    """
    low, separator, high = (part.strip() for part in f" {text} ".partition(between))
    form = f"LOW{between}HIGH"
    if not separator or not (low or high):
        raise UnitError(f"{text.strip()!r} is not {form}", f"write {form}, such as 1 mm{between}2 mm")
    upper = read_quantity(high, *wanted, is_si=is_si) if high else None
    if low and upper is not None and upper.unit and not literal(low).unit:
        low = f"{low} {upper.unit}"
    lower = read_quantity(low, *wanted, is_si=is_si) if low else None
    ends = [end for end in (lower, upper) if end is not None]
    if len({end.dimension for end in ends if end.number or end.unit}) > 1:
        raise UnitError(f"{text.strip()!r} has two units", "give both ends of one kind")
    dimension = next((end.dimension for end in ends if end.number or end.unit), ends[0].dimension)
    if lower is not None and upper is not None and lower.value > upper.value:
        names = (shown(end.value, dimension) for end in (lower, upper))
        raise UnitError("the lower end {} is above the upper end {}".format(*names), "swap or correct them")
    return Interval(
        lower=-math.inf if lower is None else lower.value,
        upper=math.inf if upper is None else upper.value,
        dimension=dimension,
    )


def pairs(where: str, text: str | None, problems: Problems, example: str = "x=0.1") -> dict[str, str]:
    """Texts by name from ``NAME=TEXT,NAME=TEXT``; parts of another form, and names that are given twice, are noted."""
    found: dict[str, str] = {}
    for part in (text or "").split(","):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            continue
        if not name or not value:
            problems.add(where, f"{part.strip()!r} is not NAME=VALUE", f"such as {example}")
        elif name in found:
            problems.add(where, f"{name} is given twice", "give it once")
        else:
            found[name] = value
    return found


def pairs_reader(where: str, example: str = "x=0.1") -> Callable[[str], dict[str, str]]:
    """What reads ``NAME=TEXT,NAME=TEXT`` for a field of options (`tauloop.options.option`).

    Args:
        where: the field's name.
        example: for messages.
    """

    def read(text: str) -> dict[str, str]:
        problems = Problems()
        found = pairs(where, text, problems, example)
        InputError.raise_if_any(problems)
        return found

    return read
