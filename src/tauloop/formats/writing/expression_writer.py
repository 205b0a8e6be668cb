"""Expressions as text of a machine file: the inverse of `tauloop.mechanism.description.parser`.

The numbers in an expression are in SI units, without their original units. The text needs units,
because its dimensions are checked when it is read. They follow from the required dimension and from
the parameters: the terms of a sum have equal dimensions, and the constant in a product has the
dimension that remains.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from tauloop.common.records import dataclass
from tauloop.mechanism.description.cursor import Shape, Value
from tauloop.mechanism.description.units import ANGLE, LENGTH, ONE, Dimension, parse_unit
from tauloop.mechanism.expression import (
    FUNCTIONS,
    Call,
    Constant,
    Expression,
    Leaf,
    Measured,
    Parameter,
)
from tauloop.mechanism.model import Freedom

#: Precedence levels, as in the grammar.
_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = 1, 2, 3, 4, 5
#: Precedence of each operation, and the precedence that its left and right operands need.
_LEVELS = {
    "+": (_SUM, _SUM, _PRODUCT),
    "-": (_SUM, _SUM, _PRODUCT),
    "*": (_PRODUCT, _PRODUCT, _SIGN),
    "/": (_PRODUCT, _PRODUCT, _SIGN),
    "^": (_POWER, _ATOM, _SIGN),
}
#: Limits of one text, at most half of the reader's limits. Longer text is split.
_MAX_OPERATORS = 50
_MAX_NESTING = 14
_MAX_CHARACTERS = 600
#: Maximum number of operators and characters that the unit of a constant adds.
_UNIT_OPERATORS, _UNIT_CHARACTERS = 5, 40
#: Maximum nesting depth and usual number of characters of a measured number.
_MEASURED_NESTING, _MEASURED_CHARACTERS = 3, 60
#: Numbers of digits to try for a number that, times its unit, gives exactly the value.
_DIGITS_TRIED = (6, 9, 12, 14, 15, 16, 17)
_NUMBER_START = re.compile(r"-?[.\d]")
_SI_UNITS = {"mass": "kg", "length": "m", "time": "s", "angle": "rad", "temperature": "K"}


def number(value: float) -> str:
    """Return the shortest text that is read as exactly this float."""
    return repr(float(value)).removesuffix(".0")


def limits_text(freedom: Freedom, dimension: Dimension) -> list[str] | dict[str, list[str]]:
    """Return the limits of a degree of freedom as in a machine file.

    The result is [lower, upper] for stops, and {kind: [lower, upper]} for other kinds of limits.
    """
    bounds = [literal(freedom.lower, dimension), literal(freedom.upper, dimension)]
    return bounds if freedom.limit == "stop" else {freedom.limit: bounds}


def literal(value: float, dimension: Dimension) -> str:
    """Return a number with its SI unit; an infinite limit is ``inf``."""
    return f"{number(value)} {dimension}".strip() if math.isfinite(value) else number(value)


def parameter_literal(parameter: Parameter) -> tuple[str, Dimension]:
    """Return the value of an independent parameter as a literal, and its dimension.

    The literal has the parameter's unit if a number with that unit gives exactly this value;
    otherwise it has the SI unit.

    Raises:
        UnitError: machine files do not support its unit.
    """
    unit = parse_unit(parameter.unit) if parameter.unit else None
    dimension = unit.dimension if unit is not None else ONE
    if unit is not None and math.isfinite(parameter.value):
        quotient = parameter.value / unit.scale
        rounded = [float(f"{quotient:.{digits}g}") for digits in _DIGITS_TRIED]
        neighbors = [math.nextafter(quotient, direction) for direction in (-math.inf, math.inf)]
        for candidate in (*rounded, *neighbors):
            if candidate * unit.scale == parameter.value:
                return f"{number(candidate)} {parameter.unit}", dimension
    return literal(parameter.value, dimension), dimension


@dataclass(slots=True)
class ExpressionWriter:
    """Writer of expressions of parameters; long expressions become derived parameters.

    Attributes:
        dimensions: dimensions of the parameters by name, including derived ones.
        derived: texts of the derived parameters by name.
        measured: function that writes a `Measured` number of an output, such as a torque constant
            that is measured on the machine.
    """

    dimensions: dict[str, Dimension]
    derived: dict[str, str] = field(default_factory=dict)
    measured: Callable[[Measured], str] | None = None
    _names: dict[tuple[Expression, Dimension], str] = field(default_factory=dict)

    def text(self, expression: Expression, dimension: Dimension) -> str:
        """Return the text of an expression for a key that requires a dimension.

        A constant is in parentheses, so that the reader does not convert it to a parameter.
        """
        if isinstance(expression, Constant) and expression.value == 0.0:
            return "0"
        text, _ = self._text_with_precedence(self._split(expression, dimension), dimension)
        # the reader takes a number without a product, parentheses or arguments as a literal
        has_operators = any(character in text for character in "*(,")
        is_literal = _NUMBER_START.match(text) and not has_operators
        return f"({text})" if is_literal else text

    def _split(self, expression: Expression, dimension: Dimension) -> Expression:
        """Return the expression after replacing large subexpressions by derived parameters."""
        if not isinstance(expression, Call):
            return expression
        dimensions = self._argument_dimensions(expression, dimension)
        arguments = [
            self._split(argument, argument_dimension)
            for argument, argument_dimension in zip(expression.arguments, dimensions, strict=True)
        ]
        while not _fits(Call(expression.operation, tuple(arguments))):
            movable = [i for i, argument in enumerate(arguments) if not _is_measured(argument)]
            if all(isinstance(arguments[i], Leaf) for i in movable):
                break  # measured numbers cannot be parameters
            longest = max(movable, key=lambda i: _text_size(arguments[i]).characters)
            arguments[longest] = self._derived_parameter(arguments[longest], dimensions[longest])
        return Call(expression.operation, tuple(arguments))

    def _derived_parameter(self, expression: Expression, dimension: Dimension) -> Leaf:
        """Return a derived parameter for an expression."""
        key = (expression, dimension)
        if key not in self._names:
            count = len(self._names) + 1
            while f"derived_{count}" in self.dimensions:
                count += 1
            name = f"derived_{count}"
            self.derived[name] = self.text(expression, dimension)
            self._names[key] = name
            self.dimensions[name] = dimension
        return Leaf(self._names[key])

    def _text_with_precedence(
        self, expression: Expression, dimension: Dimension
    ) -> tuple[str, int]:
        """Return the text of an expression and its precedence.

        A unit factor has the value 1 and was dropped when the expression was created: ``mass *
        (1 m)^2`` became ``mass``. It is added again if the required dimension needs it.
        """
        if isinstance(expression, Constant):
            return _constant(expression.value, dimension)
        known = self._known_dimension(expression)
        if known is None or _suits(known, dimension):
            return self._operation(expression, dimension)
        text = _enclosed(self._operation(expression, known), _PRODUCT)
        return text + _unit_factors(dimension / known), _PRODUCT

    def _operation(
        self, expression: Leaf | Call | Measured, dimension: Dimension
    ) -> tuple[str, int]:
        """Return the text of an expression that is not a constant, and its precedence."""
        if isinstance(expression, Leaf):
            return expression.name, _ATOM
        if isinstance(expression, Measured):
            if self.measured is None:
                raise AssertionError("measured values are allowed in outputs only")
            return self.measured(expression), _ATOM
        operation = expression.operation
        dimensions = self._argument_dimensions(expression, dimension)
        arguments = [
            self._text_with_precedence(argument, argument_dimension)
            for argument, argument_dimension in zip(expression.arguments, dimensions, strict=True)
        ]
        if operation in FUNCTIONS:
            return f"{operation}({', '.join(text for text, _ in arguments)})", _ATOM
        if operation == "neg":
            return f"-{_enclosed(arguments[0], _SIGN)}", _SIGN
        level, left, right = _LEVELS[operation]
        operator = "^" if operation == "^" else f" {operation} "
        return f"{_enclosed(arguments[0], left)}{operator}{_enclosed(arguments[1], right)}", level

    def _known_dimension(self, expression: Expression) -> Dimension | None:
        """Return the dimension of an expression from its parameters; None if undetermined."""
        if isinstance(expression, Leaf):
            return self.dimensions[expression.name]
        if isinstance(expression, Constant):
            return None
        if isinstance(expression, Measured):
            return expression.dimension
        operation = expression.operation
        arguments = expression.arguments
        if operation in ("sin", "cos", "tan"):
            return ONE
        if operation in ("asin", "acos", "atan", "atan2"):
            return ANGLE
        dimensions = [self._known_dimension(argument) for argument in arguments]
        if operation in ("+", "-"):
            return next((dimension for dimension in dimensions if dimension is not None), None)
        first, last = dimensions[0], dimensions[-1]
        if first is None:
            return None
        if operation == "sqrt":
            return first ** Fraction(1, 2)
        if operation == "^":
            return first ** _exponent(expression)
        if operation in ("neg", "abs"):
            return first
        if last is None:
            return None
        return first * last if operation == "*" else first / last

    def _argument_dimensions(self, call: Call, dimension: Dimension) -> tuple[Dimension, ...]:
        """Return the dimensions of a call's arguments for a required dimension of the call."""
        known = [self._known_dimension(argument) for argument in call.arguments]
        first, last = known[0], known[-1]
        if call.operation in ("+", "-", "atan2"):
            default = ONE if call.operation == "atan2" else dimension
            common = first or last or default
            return common, common
        if call.operation in ("*", "/"):
            return self._factor_dimensions(call, first, last, dimension)
        if call.operation == "^":
            return first or dimension ** (1 / _exponent(call)), ONE
        if call.operation == "sqrt":
            return (first or dimension**2,)
        if call.operation in ("neg", "abs"):
            return (first or dimension,)
        return (ANGLE if call.operation in ("sin", "cos", "tan") else ONE,)

    def _factor_dimensions(
        self, call: Call, first: Dimension | None, last: Dimension | None, dimension: Dimension
    ) -> tuple[Dimension, Dimension]:
        """Return the dimensions of the two arguments of a product or quotient.

        An argument without a known dimension gets the dimension that remains. If both are unknown,
        one of them is a plain number.

        Args:
            call: the product or quotient.
            first, last: known dimensions of its arguments; None if unknown.
            dimension: required dimension of the call.
        """
        is_product = call.operation == "*"
        if first is None and last is None:
            if isinstance(call.arguments[0], Constant):
                first = ONE
            else:
                last = ONE
        if first is None and last is not None:
            first = dimension / last if is_product else dimension * last
        if first is None:
            raise AssertionError("neither factor has a known dimension")
        if last is None:
            last = dimension / first if is_product else first / dimension
        return first, last


def _exponent(call: Call) -> Fraction:
    """Return the exponent of a power as a fraction."""
    exponent = call.arguments[1]
    if not isinstance(exponent, Constant):
        raise AssertionError("an exponent is not a constant; the parser should have rejected it")
    return Fraction(exponent.value).limit_denominator(12)


def _enclosed(operand: tuple[str, int], level: int) -> str:
    """Return the text of an operand, in parentheses if its precedence is lower than needed."""
    text, text_level = operand
    return text if text_level >= level else f"({text})"


def _constant(value: float, dimension: Dimension) -> tuple[str, int]:
    """Return a number with its dimension inside an expression: ``2 kg * (1 m)^2 / 1 s``.

    Each factor has a single unit name.
    """
    name, unit = next(
        ((name, unit) for name, unit in _SI_UNITS.items() if getattr(dimension, name) == 1),
        ("", ""),
    )
    rest = _unit_factors(replace(dimension, **{name: Fraction(0)}) if name else dimension)
    text = f"{number(value)} {unit}".strip() + rest
    if rest:
        return text, _PRODUCT
    return text, _SIGN if math.copysign(1.0, value) < 0.0 else _ATOM


def _unit_factors(dimension: Dimension) -> str:
    """Return a dimension as a product of SI units, such as ``* 1 kg / (1 s)^2``."""
    text = ""
    for name, unit in _SI_UNITS.items():
        power = getattr(dimension, name)
        if not power:
            continue
        factor = f"1 {unit}"
        if abs(power) != 1:
            factor = f"({factor})^{number(float(abs(power)))}"
        text += f" * {factor}" if power > 0 else f" / {factor}"
    return text


def _suits(dimension: Dimension, required: Dimension) -> bool:
    """Return whether a dimension is accepted where another is required.

    Angles and plain numbers are not interchangeable.
    """
    if required.is_angular and not dimension.angle:
        return False
    if required.is_one and dimension == ANGLE:
        return False
    return dimension.matches(required)


class _TextSize(NamedTuple):
    """Upper bounds of the operators, nesting depth and characters of a text."""

    operators: int
    nesting: int
    characters: int


def _text_size(expression: Expression) -> _TextSize:
    """Return upper bounds of the size of the text of an expression."""
    if isinstance(expression, Leaf):
        return _TextSize(0, 1, len(expression.name))
    if isinstance(expression, Constant):
        return _TextSize(_UNIT_OPERATORS, 2, _UNIT_CHARACTERS)
    if isinstance(expression, Measured):
        return _TextSize(0, _MEASURED_NESTING, _MEASURED_CHARACTERS)
    sizes = [_text_size(argument) for argument in expression.arguments]
    return _TextSize(
        1 + sum(size.operators for size in sizes),
        1 + max(size.nesting for size in sizes),
        5 + sum(size.characters for size in sizes),
    )


def _is_measured(expression: Expression) -> bool:
    """Return whether an expression contains measured numbers."""
    if isinstance(expression, Call):
        return any(map(_is_measured, expression.arguments))
    return isinstance(expression, Measured)


def _fits(expression: Expression) -> bool:
    """Return whether the text of an expression is within the limits of one text."""
    size = _text_size(expression)
    return (
        size.operators <= _MAX_OPERATORS
        and size.nesting <= _MAX_NESTING
        and size.characters <= _MAX_CHARACTERS
    )


def keys_of(
    shape: Shape, element: object, is_angular: bool, text: Callable[[Expression, Dimension], str]
) -> dict[str, Any]:
    """Return an element's attributes as text of a machine file, by the keys of its grammar.

    Args:
        shape: grammar of the element, such as `grammar.FREEDOM`.
        element: object with an attribute for each key; None and infinite values are omitted.
        is_angular: whether the element belongs to a rotational degree of freedom.
        text: function (expression, dimension) -> text.
    """
    content: dict[str, Any] = {}
    for entry in shape.fields:
        kind = entry.kind
        value = getattr(element, entry.name, None)
        dimension = (kind.dimension(is_angular) if isinstance(kind, Value) else None) or ONE
        if isinstance(element, Freedom) and entry.name == "limits":
            if math.isfinite(element.lower) or math.isfinite(element.upper):
                content["limits"] = limits_text(element, ANGLE if is_angular else LENGTH)
        elif isinstance(value, Constant | Leaf | Call):
            content[entry.name] = text(value, dimension)
        elif isinstance(value, float) and math.isfinite(value):
            content[entry.name] = literal(value, dimension)
        elif isinstance(value, str):
            content[entry.name] = value
        elif isinstance(kind, Shape) and value is not None:
            content[entry.name] = keys_of(kind, value, is_angular, text)
    return content
