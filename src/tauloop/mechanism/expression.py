"""Leaf parameters, and scalar expressions over them: frozen trees that evaluate on floats and on symbols alike.

The tree knows no number type: `evaluate` is given the functions to use, so that the same
description yields numbers (math), or CasADi expressions, without this package importing CasADi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from tauloop.common.datasets import Tabular, Variable, rows
from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import si_unit
from tauloop.mechanism.named import by_name
from tauloop.mechanism.suggestions import suggestion

#: The functions a machine file may call, with their number of arguments.
FUNCTIONS: dict[str, int] = {
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), 1),
    "atan2": 2,
    "sqrt": 1,
    "abs": 1,
}

Item = TypeVar("Item")

#: What a leaf parameter may belong to.
GROUPS = ("geometry", "inertia", "friction", "drive", "spring", "gravity")

#: How well a value is founded (docs/machine-file.md).
STATUSES = ("given", "inferred", "chosen", "measured", "identified", "calibrated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One leaf parameter of theta.

    Attributes:
        name: unique name; a dotted key path where the file gave the value in place.
        value: nominal value, SI.
        unit: unit as written in the file, for display.
        scale: SI value of one such unit.
        lower, upper: bounds, SI.
        group: one of `GROUPS`.
        status: one of `STATUSES`.
        source: where the value comes from.
    """

    name: str
    value: float
    unit: str = ""
    scale: float = 1.0
    lower: float = -np.inf
    upper: float = np.inf
    group: str = "geometry"
    status: str = "chosen"
    source: str = ""

    def allows(self, value: float) -> bool:
        """Whether a value is a finite number within the bounds."""
        return bool(np.isfinite(value)) and self.lower <= value <= self.upper


@dataclass(frozen=True, slots=True)
class ParameterTable(Tabular):
    """All leaf parameters (theta) in a fixed order."""

    parameters: tuple[Parameter, ...] = ()

    def variables(self) -> Iterator[Variable]:
        """Values and bounds of all parameters, SI."""
        figures = {name: [getattr(p, name) for p in self] for name in ("value", "lower", "upper")}
        return rows("parameter", self.names, (si_unit(p.unit) for p in self), **figures)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(p.name for p in self.parameters)

    @property
    def values(self) -> dict[str, float]:
        """Nominal values by name, SI."""
        return {p.name: p.value for p in self.parameters}

    def vector(self, names: Iterable[str] | None = None) -> np.ndarray:
        """Nominal values (n,), SI, of all parameters or of those named, in their order."""
        return np.array(
            [p.value for p in (self if names is None else map(self.__getitem__, names))]
        )

    def near(self, name: str) -> str:
        """A remedy for a name that is not in the table."""
        return suggestion(name, self.names) or "see `tauloop show NAME --table`"

    def __getitem__(self, name: str) -> Parameter:
        return by_name(self.parameters, name, "leaf parameter")


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is part of the description itself (an exact zero, a factor one half), in SI units."""

    value: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf parameter, by its name in the parameter table."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operation (``+ - * / ^ neg``) or one of `FUNCTIONS`, applied to its arguments."""

    operation: str
    arguments: tuple[Expression, ...]


Expression = Constant | Leaf | Call

ZERO = Constant(0.0)
ONE = Constant(1.0)


def add(*terms: Expression) -> Expression:
    """Sum; exact zeros vanish and constants are added up at once."""
    total: Expression = ZERO
    for term in terms:
        if isinstance(total, Constant) and isinstance(term, Constant):
            total = Constant(total.value + term.value)
        elif total == ZERO:
            total = term
        elif term != ZERO:
            total = Call("+", (total, term))
    return total


def triple(items: Iterable[Item]) -> tuple[Item, Item, Item]:
    """Three items, as a vector has them."""
    x, y, z = items
    return x, y, z


def moved(
    vector: Sequence[Expression], by: Sequence[float]
) -> tuple[Expression, Expression, Expression]:
    """A vector of three expressions with numbers added to them (three too)."""
    pairs = zip(vector, by, strict=True)
    return triple(add(term, Constant(float(number))) if number else term for term, number in pairs)


def negate(x: Expression) -> Expression:
    """Negative of an expression."""
    return (
        Constant(-x.value)
        if isinstance(x, Constant) and x.value != 0.0
        else x
        if x == ZERO
        else Call("neg", (x,))
    )


def subtract(x: Expression, y: Expression) -> Expression:
    """Difference x - y."""
    if y == ZERO:
        return x
    if x == ZERO:
        return negate(y)
    if isinstance(x, Constant) and isinstance(y, Constant):
        return Constant(x.value - y.value)
    return Call("-", (x, y))


def multiply(*factors: Expression) -> Expression:
    """Product; exact zeros and ones are folded."""
    total: Expression = ONE
    for factor in factors:
        if total == ZERO or factor == ZERO:
            return ZERO
        if isinstance(total, Constant) and isinstance(factor, Constant):
            total = Constant(total.value * factor.value)
        elif total == ONE:
            total = factor
        elif factor != ONE:
            total = Call("*", (total, factor))
    return total


def divide(x: Expression, y: Expression) -> Expression:
    """Quotient x / y."""
    if x == ZERO or y == ONE:
        return x
    if isinstance(x, Constant) and isinstance(y, Constant):
        return Constant(x.value / y.value)
    return Call("/", (x, y))


def leaves(item: Any) -> frozenset[str]:
    """Names of the leaf parameters in an expression, or in all expressions of an element or a mechanism."""
    if isinstance(item, Leaf):
        return frozenset((item.name,))
    parts: Sequence[Any] = ()
    if isinstance(item, Call):
        parts = item.arguments
    elif isinstance(item, tuple):
        parts = item
    elif is_dataclass(item) and not isinstance(item, Constant | ParameterTable):
        parts = [getattr(item, field.name) for field in fields(item)]
    return frozenset().union(*map(leaves, parts))


def with_leaves(item: Any, changed: Mapping[str, Expression]) -> Any:
    """An expression, an element or a mechanism, with other expressions in place of some leaf parameters."""
    if isinstance(item, Leaf):
        return changed.get(item.name, item)
    if isinstance(item, Call):
        return Call(
            item.operation, tuple(with_leaves(argument, changed) for argument in item.arguments)
        )
    if isinstance(item, tuple):
        return tuple(with_leaves(part, changed) for part in item)
    if is_dataclass(item) and not isinstance(item, Constant | ParameterTable | type):
        return replace(
            item,
            **{
                field.name: with_leaves(getattr(item, field.name), changed)
                for field in fields(item)
            },
        )
    return item


FLOAT_OPERATIONS: dict[str, Callable[..., float]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "^": lambda x, y: x**y,
    "neg": lambda x: -x,
    "abs": abs,
    **{name: getattr(math, name) for name in FUNCTIONS if name != "abs"},
}


def evaluate(
    expression: Expression,
    values: Mapping[str, Any],
    operations: Mapping[str, Callable[..., Any]] = FLOAT_OPERATIONS,
) -> Any:
    """Value of an expression.

    Args:
        expression: the tree.
        values: leaf parameters by name, SI units; floats or symbols.
        operations: what each operation and function means for that kind of number; floats by
            default.

    Returns:
        A number of the kind that `values` and `operations` deal in (a float for a constant).
    """
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Leaf):
        return values[expression.name]
    return operations[expression.operation](
        *(evaluate(a, values, operations) for a in expression.arguments)
    )


def steps_from(start: str, pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How many steps what pairs lead to is away from a start, itself among it; pairs are walked both ways."""
    beside: dict[str, list[str]] = {}
    for first, second in pairs:
        beside.setdefault(first, []).append(second)
        beside.setdefault(second, []).append(first)
    steps, waiting = {start: 0}, [start]
    for name in waiting:  # which grows
        further = [other for other in dict.fromkeys(beside.get(name, ())) if other not in steps]
        steps |= dict.fromkeys(further, steps[name] + 1)
        waiting += further
    return steps


def ordered(graph: Mapping[str, Iterable[str]], report: Callable[[list[str]], None]) -> list[str]:
    """Names in an order in which each follows those it needs; the same for the same graph.

    Depth first, without recursion, in time linear in the graph. (`graphlib` finds one circle at a
    time.)

    Args:
        graph: what each name needs; what is no name of the graph is no matter.
        report: called with the names of a circle, the first repeated at the end; no name is told
            twice.
    """
    order: list[str] = []
    done: set[str] = set()
    circular: set[str] = set()
    for root in graph:
        path: dict[str, Iterator[str]] = {} if root in done else {root: iter(graph[root])}
        while path:
            name = next(reversed(path))
            need = next(path[name], None)
            if need is None:
                del path[name]
                done.add(name)
                order.append(name)
            elif need in path and name not in circular:
                circle = [need]
                for member in reversed(path):
                    circle.append(member)
                    if member == need:
                        break
                circular.update(circle)
                report(circle[::-1])
            elif need in graph and need not in done and need not in path:
                path[need] = iter(graph[need])
    return order


def chain(names: list[str]) -> str:
    """Names with arrows between them; the middle of a long row is left out."""
    if len(names) <= 12:
        return " -> ".join(names)
    return (
        f"{' -> '.join(names[:6])} -> ... {len(names) - 12} more ... -> {' -> '.join(names[-6:])}"
    )


#: An angle this near a multiple of 90 degrees, in quarter turns, is one: 90 deg has no exact number
#: in radians.
RIGHT_ANGLE_TOLERANCE = 1e-12


def exact_sine(angle: float) -> float:
    """Sine of a number (rad), exact at multiples of 90 degrees, so that zeros of a geometry stay zeros."""
    quarters = angle / (math.pi / 2)
    if abs(quarters - round(quarters)) < RIGHT_ANGLE_TOLERANCE:
        return (0.0, 1.0, 0.0, -1.0)[round(quarters) % 4]
    return math.sin(angle)


def exact_cosine(angle: float) -> float:
    """Cosine of a number (rad), exact at multiples of 90 degrees."""
    ahead = exact_sine(angle + math.pi / 2)
    return ahead if ahead in (-1.0, 0.0, 1.0) else math.cos(angle)


def sine(angle: Expression) -> Expression:
    """Sine; of a constant at once."""
    return (
        Constant(exact_sine(angle.value)) if isinstance(angle, Constant) else Call("sin", (angle,))
    )


def cosine(angle: Expression) -> Expression:
    """Cosine; of a constant at once."""
    return (
        Constant(exact_cosine(angle.value))
        if isinstance(angle, Constant)
        else Call("cos", (angle,))
    )
