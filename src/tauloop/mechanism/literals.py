"""What is written at a place: a number with its unit, or an expression."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.parser import MAX_CHARACTERS, NUMBER, ExpressionError, Syntax, parse
from tauloop.mechanism.structure import qualified
from tauloop.mechanism.units import ONE, Dimension, UnitError, parse_unit
from tauloop.mechanism.yaml_nodes import Mapping, Scalar

_LITERAL = re.compile(
    rf"(?P<number>[+-]?\s*{NUMBER})(?:\s*(?P<unit>[A-Za-z][A-Za-z0-9^/\s-]*|1/[A-Za-z0-9^/\s-]+))?", re.ASCII
)
NOT_FINITE = re.compile(r"[+-]?\.?(inf|infinity|nan)", re.IGNORECASE)


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


def content_of(cursor: Cursor) -> Literal | Syntax | None:
    """The literal or the syntax tree at a place of kind `Value`; None if it is wrong, which is noted."""
    scalar = cursor
    if isinstance(cursor.node, Mapping):
        inner = qualified(cursor).get("value")
        if inner is None:
            return None
        scalar = inner
    if not scalar.text and not (isinstance(scalar.node, Scalar) and scalar.node.is_quoted):
        return None  # nothing stands there, which is noted with the form of the file
    return _read((scalar.text or "").strip(), scalar)


def _read(text: str, cursor: Cursor) -> Literal | Syntax | None:
    """A number with a valid unit is a literal; all else is an expression (``2 m - x`` looks like a unit at first)."""
    if NOT_FINITE.fullmatch(text):
        cursor.problem(f"{text} is not a finite number", "write a finite value, or leave the key out")
        return None
    if len(text) > MAX_CHARACTERS:
        what = f"the value has {len(text)} characters, more than {MAX_CHARACTERS}"
        cursor.problem(what, "round the number, or split the expression into named parameters")
        return None
    match = _LITERAL.fullmatch(text)
    problem: tuple[str, str] | None = None
    if match is not None:
        try:
            literal = _literal(match["number"], match["unit"])
        except UnitError as error:
            problem = error.what, error.remedy
        else:
            if math.isfinite(literal.value):
                return literal
            cursor.problem(f"the number {match['number']} is too large", "check its exponent")
            return None
    try:
        return parse(text)
    except ExpressionError as error:
        cursor.problem(*(problem or (error.what, error.remedy)))
        return None


def _literal(number: str, unit: str | None) -> Literal:
    value = float("".join(number.split()))
    if unit is None:
        return Literal(value, "", 1.0, ONE)
    read = parse_unit(unit)
    return Literal(value, read.text, read.scale, read.dimension)
