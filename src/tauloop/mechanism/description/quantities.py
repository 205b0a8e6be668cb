"""Numbers with units as text, in files of any kind and on the command line.

``0.5 mm``, ``0.5mm`` and ``+5e-1 mm`` are one number. In a file only an exact zero has no unit; on
the command line a number alone is in SI units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from tauloop.common.errors import InputError, Problems
from tauloop.common.options import listed
from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import Dimension, UnitError, literal, read_quantity, shown


def quantity(where: str, text: str, *wanted: Dimension) -> float:
    """Return a number in SI units from text such as ``1 kHz``; a number alone is in SI units.

    Args:
        where: name of the option or argument, for the message.
        text: what is written.
        wanted: permitted dimensions; the first is that of a number without unit.

    Raises:
        InputError: no number, an unknown unit, or a unit of something else.
    """
    try:
        return read_quantity(text, *wanted, is_si=True).value
    except UnitError as error:
        raise InputError.of(where, error.what, error.remedy) from None


def quantity_reader(where: str, *wanted: Dimension) -> Callable[[str], float]:
    """Return a function that reads a `quantity` or an SI number for a field of options."""

    def read(text: str | float) -> float:
        return quantity(where, text if isinstance(text, str) else f"{text:.17g}", *wanted)

    return read


def quantities_reader(where: str, *wanted: Dimension) -> Callable[[str], tuple[float, ...]]:
    """Return a function that reads quantities with commas between them, for a field of options."""
    return lambda text: tuple(
        quantity(where, part, *wanted) for part in text.split(",") if part.strip()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Two ends in SI units, infinite where one is left open, and their dimension."""

    lower: float
    upper: float
    dimension: Dimension


def interval(text: str, between: str, *wanted: Dimension, is_si: bool = False) -> Interval:
    """Return two ends such as ``1.2 m:1.3 m`` or ``:5 deg``.

    A unit after the second end only, as in ``200:230 mm``, holds for both.

    Args:
        text: what is written.
        between: separator of both ends.
        wanted: permitted dimensions, the same for both.
        is_si: whether a number alone is in SI units.

    Raises:
        UnitError: no two ends, both left out, two dimensions, the wrong order, or an end that is no
            quantity.
    """
    low, separator, high = (part.strip() for part in f" {text} ".partition(between))
    form = f"LOW{between}HIGH"
    if not separator or not (low or high):
        raise UnitError(
            f"{text.strip()!r} is not {form}", f"write {form}, such as 1 mm{between}2 mm"
        )
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
        raise UnitError(
            "the lower end {} is above the upper end {}".format(*names), "swap or correct them"
        )
    return Interval(
        lower=-math.inf if lower is None else lower.value,
        upper=math.inf if upper is None else upper.value,
        dimension=dimension,
    )


def pairs(
    where: str,
    texts: str | Iterable[str] | None,
    problems: Problems,
    example: str = "x=0.1",
    *,
    bare: bool = False,
) -> dict[str, str]:
    """Return texts by name from one or several ``NAME=TEXT,NAME=TEXT``.

    Other forms and repeated names are noted.

    Args:
        where: the field's name.
        texts: what was given.
        problems: what is wrong is noted here.
        example: for messages.
        bare: whether a name may stand alone; its text is "" then.
    """
    named: dict[str, str] = {}
    for part in listed(texts or ""):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not (value or bare):
            problems.add(where, f"{part!r} is not NAME=VALUE", f"such as {example}")
        elif name in named:
            problems.add(where, f"{name} is given twice", "give it once")
        else:
            named[name] = value
    return named


def pairs_reader(
    where: str, example: str = "x=0.1", *, bare: bool = False
) -> Callable[[Any], dict[str, str]]:
    """Return a function that reads `pairs`, with the same arguments, for a field of options."""

    def read(texts: str | Iterable[str]) -> dict[str, str]:
        problems = Problems()
        named = pairs(where, texts, problems, example, bare=bare)
        InputError.raise_if_any(problems)
        return named

    return read
