"""Parser of expressions in machine files: a small grammar with dimensions, without `eval`.

    sum     = product { ("+" | "-") product }
    product = sign { ("*" | "/") sign }
    sign    = [ "-" | "+" ] sign | power
    power   = atom [ "^" sign ]                      right associative
    atom    = NUMBER [ UNIT ] | NAME | FUNCTION "(" sum { "," sum } ")" | "(" sum ")"

In the outputs of a machine, `GEOMETRIC_FUNCTIONS` take points and directions, and a sign may be in
front of a direction.

A NAME may contain dots and list indices (``leg1.arm``, ``gravity[2]``). A UNIT is a single unit of
`tauloop.mechanism.description.units`, such as ``mm``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache

from tauloop.common.records import dataclass
from tauloop.mechanism.description.peer_words import PEER_CHARACTERS
from tauloop.mechanism.description.units import (
    ANGLE,
    MAX_CHARACTERS,
    NUMBER,
    ONE,
    Dimension,
    UnitError,
    named,
    parse_unit,
)
from tauloop.mechanism.expression import (
    FUNCTIONS,
    ZERO,
    Call,
    Constant,
    Expression,
    add,
    cosine,
    divide,
    evaluate,
    multiply,
    negate,
    sine,
    subtract,
)
from tauloop.mechanism.suggestions import listing, suggestion

#: Maximum nesting depth of one text.
MAX_NESTING = 32
#: Maximum number of operators in one text.
MAX_OPERATORS = 100
#: Maximum number of operations of an expression after substituting all names.
MAX_OPERATIONS = 5000
#: Maximum depth of an expression after substituting all names. It is limited because evaluation is
#: recursive.
MAX_CHAIN = 150
#: Maximum number of operations of all expressions of a file. The largest shipped machine has a few
#: thousand operations.
MAX_ALL_OPERATIONS = 300_000

#: Names of predefined numbers; pi is an angle (180 deg), so that `pi / 2` is an angle too.
CONSTANTS = {"pi": (math.pi, ANGLE)}

#: Functions of points and directions in outputs, each with its permitted numbers of arguments.
GEOMETRIC_FUNCTIONS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("x", "y", "z"), (1, 2)),
    "distance": (2,),
    "angle": (2, 3),
    "direction": (2,),
    **dict.fromkeys(("x_axis", "y_axis", "z_axis", "start", "end"), (1,)),
}

_PART = r"[A-Za-z_]\w*(?:\[\d+\])*"
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{NUMBER})|(?P<name>{_PART}(?:\.{_PART})*)|(?P<operator>[-+*/^(),]))",
    re.ASCII,
)


class ExpressionError(ValueError):
    """Error of an expression, with what is wrong and the remedy."""

    def __init__(self, what: str, remedy: str) -> None:
        """Store what is wrong and the remedy."""
        super().__init__(what)
        self.what, self.remedy = what, remedy


@dataclass(frozen=True, slots=True)
class Number:
    """A number in SI units."""

    value: float
    dimension: Dimension


@dataclass(frozen=True, slots=True)
class ParameterName:
    """A parameter by its name."""

    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or a function with its arguments."""

    name: str
    arguments: tuple[Syntax, ...]


Syntax = Number | ParameterName | Operation


@dataclass(frozen=True, slots=True)
class Quantity:
    """An expression and its dimension."""

    expression: Expression
    dimension: Dimension

    @property
    def is_zero(self) -> bool:
        """Whether this is an exact zero, which is compatible with every dimension."""
        return self.expression == ZERO

    def fits(self, dimension: Dimension) -> bool:
        """Return whether the quantity is compatible with `dimension`; angles need their unit."""
        if self.is_zero:
            return self.dimension.is_one or self.dimension.matches(dimension)
        return self.dimension.suits(dimension)


@lru_cache(maxsize=1024)
def parse(text: str, is_output: bool = False) -> Syntax:
    """Return the syntax tree of an expression.

    Args:
        text: text of the expression.
        is_output: whether the expression may call `GEOMETRIC_FUNCTIONS`.

    Raises:
        ExpressionError: the text is not an expression of the grammar above.
    """
    if len(text) > MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(text)} characters, more than {MAX_CHARACTERS}",
            "split it into named parameters",
        )
    return _Parser(text, is_output).whole()


def names(syntax: Syntax) -> Iterator[str]:
    """Yield all names that an expression uses, except those of constants."""
    if isinstance(syntax, ParameterName):
        if syntax.text not in CONSTANTS:
            yield syntax.text
    elif isinstance(syntax, Operation):
        for argument in syntax.arguments:
            yield from names(argument)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str, is_output: bool) -> None:
        self._text = text
        self._functions: dict[str, tuple[int, ...]] = {
            name: (count,) for name, count in FUNCTIONS.items()
        }
        if is_output:
            self._functions |= GEOMETRIC_FUNCTIONS
        self._tokens = list(self._split())
        self._index = 0
        self._nesting = 0
        operators = sum(
            kind == "operator" and operator in "+-*/^" for kind, operator, _ in self._tokens
        )
        if operators > MAX_OPERATORS:
            raise ExpressionError(
                f"the expression has {operators} operators, more than {MAX_OPERATORS}",
                "split it into named parameters",
            )

    def _split(self) -> Iterator[tuple[str, str, int]]:
        """Yield the tokens: kind, text and index of the first character."""
        position = 0
        end = len(self._text.rstrip())
        while position < end:
            match = _TOKEN.match(self._text, position)
            if match is None:
                rest = self._text[position:].lstrip()
                number = len(self._text) - len(rest) + 1
                remedy = PEER_CHARACTERS.get(rest[0]) or (
                    "use only numbers with units, names, + - * / ^, parentheses and functions"
                )
                raise ExpressionError(
                    f"{self._text!r}: unexpected {rest[0]!r} at character {number}", remedy
                )
            kind = str(match.lastgroup)
            yield kind, match[kind], match.start(kind)
            position = match.end()

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._index][:2] if self._index < len(self._tokens) else ("end", "")

    def _accept(self, *operators: str) -> str:
        kind, text = self._peek()
        if kind == "operator" and text in operators:
            self._index += 1
            return text
        return ""

    def _unexpected(self, expected: str) -> ExpressionError:
        kind, text = self._peek()
        if kind == "end":
            return ExpressionError(
                f"{self._text!r} ends where {expected} is needed", "complete the expression"
            )
        location = f"{text!r} (character {self._tokens[self._index][2] + 1})"
        previous = self._tokens[self._index - 1][1] if self._index else ""
        if text == previous == "*":
            return ExpressionError(f"{self._text!r}: unexpected **", "write ^ for a power")
        if kind in ("name", "number") or text == "(":
            return ExpressionError(
                f"{self._text!r}: {location} follows without an operator",
                "write * between factors; to use a compound unit, define a named parameter",
            )
        return ExpressionError(
            f"{self._text!r}: unexpected {location} where {expected} is needed",
            "check the expression",
        )

    def whole(self) -> Syntax:
        """Return the syntax tree of the whole text."""
        if not self._tokens:
            raise ExpressionError(
                "there is no value", "write a number with its unit, or an expression"
            )
        syntax = self._sum()
        if self._index < len(self._tokens):
            raise self._unexpected("an operator")
        return syntax

    def _nested(self, rule: Callable[[], Syntax]) -> Syntax:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise ExpressionError(
                f"the expression is nested more than {MAX_NESTING} levels deep",
                "split it into named parameters",
            )
        syntax = rule()
        self._nesting -= 1
        return syntax

    def _chain(self, rule: Callable[[], Syntax], *operators: str) -> Syntax:
        left = rule()
        while operator := self._accept(*operators):
            left = Operation(operator, (left, rule()))
        return left

    def _sum(self) -> Syntax:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Syntax:
        return self._chain(self._sign, "*", "/")

    def _sign(self) -> Syntax:
        sign = self._accept("-", "+")
        if not sign:
            return self._power()
        operand = self._nested(self._sign)
        return Operation("neg", (operand,)) if sign == "-" else operand

    def _power(self) -> Syntax:
        base = self._atom()
        if self._accept("^"):
            return Operation("^", (base, self._nested(self._sign)))
        return base

    def _atom(self) -> Syntax:
        kind, text = self._peek()
        if kind == "number":
            self._index += 1
            return self._number(text)
        if kind == "name":
            self._index += 1
            return self._call(text) if self._accept("(") else ParameterName(text)
        if self._accept("("):
            inner = self._nested(self._sum)
            if not self._accept(")"):
                raise self._unexpected("a closing parenthesis")
            return inner
        raise self._unexpected("a value")

    def _number(self, text: str) -> Number:
        if not math.isfinite(float(text)):
            raise ExpressionError(
                f"{self._text!r}: the number {text} is too large", "check its exponent"
            )
        kind, unit = self._peek()
        if kind != "name":
            return Number(float(text), ONE)
        self._index += 1
        if self._accept("("):
            self._index -= 2
            raise self._unexpected("an operator")
        try:
            parsed_unit = parse_unit(unit)
        except UnitError as error:
            raise ExpressionError(
                f"{self._text!r}: {error.what} after the number {text}",
                error.remedy
                if error.remedy.startswith("did you")
                else f"for a product write {text} * {unit}",
            ) from None
        return Number(float(text) * parsed_unit.scale, parsed_unit.dimension)

    def _call(self, name: str) -> Operation:
        if name not in self._functions:
            hint = suggestion(name, self._functions)
            raise ExpressionError(
                f"{self._text!r} calls the unknown function {name}",
                hint or f"functions are {listing(self._functions, 24)}",
            )
        arguments = [self._nested(self._sum)]
        while self._accept(","):
            arguments.append(self._nested(self._sum))
        if not self._accept(")"):
            raise self._unexpected("a closing parenthesis")
        counts = self._functions[name]
        if len(arguments) not in counts:
            permitted = " or ".join(map(str, counts))
            raise ExpressionError(
                f"{self._text!r}: {name} takes {permitted} argument{'s' * (counts[-1] > 1)}, "
                f"not {len(arguments)}",
                "check the commas",
            )
        return Operation(name, tuple(arguments))


def resolve(
    syntax: Syntax,
    known: Mapping[str, Quantity | None],
    measured: Callable[[Operation], Quantity | None] | None = None,
) -> Quantity | None:
    """Return the expression and dimension of a syntax tree.

    Args:
        syntax: the tree.
        known: quantities of the names in the tree; None for an invalid name.
        measured: function that returns the quantity of a call to `GEOMETRIC_FUNCTIONS`, or None
            after adding a problem; required for outputs.

    Returns:
        The quantity; None if a name in the tree is invalid.

    Raises:
        ExpressionError: dimensions are incompatible, or a constant term has no value (division
            by zero).
    """
    if isinstance(syntax, Number):
        return Quantity(Constant(syntax.value), syntax.dimension)
    if isinstance(syntax, ParameterName):
        if syntax.text in CONSTANTS:
            value, dimension = CONSTANTS[syntax.text]
            return Quantity(Constant(value), dimension)
        return known[syntax.text]
    if measured is not None and syntax.name in GEOMETRIC_FUNCTIONS:
        return measured(syntax)
    resolved = [resolve(argument, known, measured) for argument in syntax.arguments]
    arguments = [quantity for quantity in resolved if quantity is not None]
    if len(arguments) < len(resolved):
        return None
    dimension = _dimension(syntax.name, arguments)
    return Quantity(_fold(syntax.name, [quantity.expression for quantity in arguments]), dimension)


def _dimension(operation: str, arguments: list[Quantity]) -> Dimension:
    """Return the dimension of an operation; raise if the dimensions of its arguments do not fit."""
    first, last = arguments[0], arguments[-1]
    if operation in ("+", "-", "atan2"):
        common = _common(operation, first, last)
        return ANGLE if operation == "atan2" else common
    if operation == "*":
        return first.dimension * last.dimension
    if operation == "/":
        return first.dimension / last.dimension
    if operation == "^":
        return _power_dimension(first, last)
    if operation in ("neg", "abs"):
        return first.dimension
    if operation == "sqrt":
        return first.dimension ** Fraction(1, 2)
    required = ANGLE if operation in ("sin", "cos", "tan") else ONE
    if not first.fits(required):
        remedy = (
            "write the angle with its unit, such as 30 deg"
            if required == ANGLE
            else "divide by a reference value"
        )
        raise ExpressionError(
            f"{operation} takes {named(required)}, not {named(first.dimension)}", remedy
        )
    return ONE if required == ANGLE else ANGLE


def _common(operation: str, first: Quantity, last: Quantity) -> Dimension:
    """Return the dimension of a sum; raise if the dimensions differ or only one is an angle."""
    if first.is_zero and first.dimension.is_one:
        return last.dimension
    if last.is_zero and last.dimension.is_one:
        return first.dimension
    is_angle_with_number = {first.dimension, last.dimension} == {ANGLE, ONE}
    if not first.dimension.matches(last.dimension) or is_angle_with_number:
        verb = {"+": "adds", "-": "subtracts", "atan2": "compares"}[operation]
        order = (first, last) if operation != "-" else (last, first)
        preposition = {"+": "to", "-": "from", "atan2": "with"}[operation]
        dimensions = f"{named(order[0].dimension)} {preposition} {named(order[1].dimension)}"
        raise ExpressionError(f"{operation!r} {verb} {dimensions}", "give both the same unit")
    return first.dimension if first.dimension.angle else last.dimension


def _power_dimension(base: Quantity, exponent: Quantity) -> Dimension:
    """Return the dimension of a power; raise if the exponent is not a small constant."""
    if not isinstance(exponent.expression, Constant) or not exponent.dimension.is_one:
        raise ExpressionError(
            "the exponent of ^ is not a plain number", "write a constant exponent, such as x^2"
        )
    value = exponent.expression.value
    if abs(value) > 12:
        raise ExpressionError(
            f"an exponent of ^ must be between -12 and 12, got {value:g}", "check the expression"
        )
    return base.dimension ** Fraction(value).limit_denominator(12)


_FOLDING: dict[str, Callable[..., Expression]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "neg": negate,
    "sin": sine,
    "cos": cosine,
}


def _fold(operation: str, arguments: list[Expression]) -> Expression:
    """Return an operation on expressions; an operation on constants is evaluated immediately."""
    if operation == "/" and arguments[1] == ZERO:
        raise ExpressionError("division by zero", "check the denominator")
    if operation in _FOLDING:
        folded = _FOLDING[operation](*arguments)
    elif all(isinstance(argument, Constant) for argument in arguments):
        folded = _evaluated(Call(operation, tuple(arguments)))
    else:
        return Call(operation, tuple(arguments))
    if isinstance(folded, Constant) and not math.isfinite(folded.value):
        numbers = ", ".join(
            f"{argument.value:g}" for argument in arguments if isinstance(argument, Constant)
        )
        raise ExpressionError(
            f"{operation} has no finite real value at {numbers}", "check the numbers"
        )
    return folded


def _evaluated(call: Call) -> Constant:
    """Return the value of an operation on constants; NaN where it has no real value."""
    try:
        value = evaluate(call, {})
    except (ValueError, OverflowError, ZeroDivisionError):
        return Constant(math.nan)
    return Constant(value if isinstance(value, float) else math.nan)


def is_too_large(expression: Expression) -> bool:
    """Return whether an expression has too many operations, or is nested too deeply.

    The names in it must have been replaced by their expressions.
    """
    return operations_of(expression) > MAX_OPERATIONS


def operations_of(expression: Expression) -> int:
    """Return the number of operations and operands of an expression after substituting all names.

    For a too large expression, the result is one more than the permitted number.
    """
    stack, count = [(expression, 1)], 0
    while stack:
        node, depth = stack.pop()
        count += 1
        if count > MAX_OPERATIONS or depth > MAX_CHAIN:
            return MAX_OPERATIONS + 1
        if isinstance(node, Call):
            stack.extend((argument, depth + 1) for argument in node.arguments)
    return count
