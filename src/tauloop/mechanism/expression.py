"""Independent parameters, and scalar expressions of them as frozen trees.

The tree does not depend on a number type: `evaluate` takes the functions to use. Therefore the same
description yields floats or CasADi expressions, and this package does not import CasADi.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tauloop.common.datasets import Tabular, Variable, rows
from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import Dimension, si_unit
from tauloop.mechanism.suggestions import by_name, suggestion

#: Functions that a machine file may call, with their number of arguments.
FUNCTIONS: dict[str, int] = {
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan"), 1),
    "atan2": 2,
    "sqrt": 1,
    "abs": 1,
}

Item = TypeVar("Item")

#: Groups of independent parameters.
GROUPS = ("geometry", "inertia", "friction", "drive", "spring", "gravity", "elasticity")

#: How a value was obtained (docs/machine-file.md).
STATUSES = ("given", "inferred", "chosen", "measured", "identified", "calibrated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """An independent parameter of theta.

    Attributes:
        name: unique name; the dotted key path if the value is not a named parameter of the file.
        value: nominal value, SI.
        unit: unit as written in the file, for display.
        scale: factor from `unit` to SI.
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

    def changed_to(self, value: float) -> Parameter:
        """Return the parameter with a value of the user's choice, SI.

        The source of the previous value, such as a measurement, does not support the new value.
        Therefore the status becomes "chosen", and the source states the change.
        """
        if value == self.value or self.status == "chosen":
            return replace(self, value=value)
        return replace(self, value=value, status="chosen", source=self.change_text())

    def change_text(self) -> str:
        """Return the source of a value that replaces the current value.

        The text contains the current value, its status and its source.
        """
        before = f"{self.value / self.scale:.6g} {self.unit}".strip()
        origin = f"{self.status}: {self.source}" if self.source else self.status
        return f"changed from {before} ({origin})"

    def allows(self, value: float) -> bool:
        """Return whether a value is a finite number within the bounds."""
        return bool(np.isfinite(value)) and self.lower <= value <= self.upper


@dataclass(frozen=True)
class ParameterTable(Tabular):
    """All independent parameters (theta) in a fixed order."""

    parameters: tuple[Parameter, ...] = ()

    def variables(self) -> Iterator[Variable]:
        """Return the values and bounds of all parameters, SI."""
        return rows(
            "parameter",
            self.names,
            (si_unit(p.unit) for p in self),
            value=[p.value for p in self],
            lower=[p.lower for p in self],
            upper=[p.upper for p in self],
        )

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(p.name for p in self.parameters)

    @cached_property
    def values(self) -> dict[str, float]:
        """Nominal values by name, SI."""
        return {p.name: p.value for p in self.parameters}

    def vector(self, names: Iterable[str] | None = None) -> np.ndarray:
        """Return nominal values (n,), SI, of all parameters or of `names`, in their order."""
        return np.array(
            [p.value for p in (self if names is None else map(self.__getitem__, names))]
        )

    def near(self, name: str) -> str:
        """Return a remedy for a name that is not in the table."""
        return suggestion(name, self.names) or "see `tauloop show NAME --table`"

    def __getitem__(self, name: str) -> Parameter:
        return by_name(self.parameters, name, "independent parameter")


@dataclass(frozen=True, slots=True)
class Constant:
    """A number in SI units that is not a parameter, such as 0 or 1/2."""

    value: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """An independent parameter, by its name in the parameter table."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operation (``+ - * / ^ neg``) or one of `FUNCTIONS`, applied to its arguments."""

    operation: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """A number that depends on the machine's pose; subclasses are in `mechanism.outputs`."""

    @property
    def dimension(self) -> Dimension:
        """The dimension of the expression."""
        raise NotImplementedError


Expression = Constant | Leaf | Call | Measured

ZERO = Constant(0.0)
ONE = Constant(1.0)


def add(*terms: Expression) -> Expression:
    """Return the sum; exact zeros are omitted, and leading constants are added immediately."""
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
    """Return three items as a tuple."""
    x, y, z = items
    return x, y, z


def moved(
    vector: Sequence[Expression], by: Sequence[float]
) -> tuple[Expression, Expression, Expression]:
    """Return a vector of three expressions with three numbers added to them."""
    pairs = zip(vector, by, strict=True)
    return triple(add(term, Constant(float(number))) if number else term for term, number in pairs)


def negate(x: Expression) -> Expression:
    """Return the negative of an expression."""
    if x == ZERO:
        return x
    if isinstance(x, Constant) and x.value != 0.0:
        return Constant(-x.value)
    return Call("neg", (x,))


def subtract(x: Expression, y: Expression) -> Expression:
    """Return the difference x - y."""
    if y == ZERO:
        return x
    if x == ZERO:
        return negate(y)
    if isinstance(x, Constant) and isinstance(y, Constant):
        return Constant(x.value - y.value)
    return Call("-", (x, y))


def multiply(*factors: Expression) -> Expression:
    """Return the product; exact zeros and ones are folded."""
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
    """Return the quotient x / y."""
    if x == ZERO or y == ONE:
        return x
    if isinstance(x, Constant) and isinstance(y, Constant):
        return Constant(x.value / y.value)
    return Call("/", (x, y))


def leaves(item: Any) -> frozenset[str]:
    """Return the names of the independent parameters in an expression, element or mechanism."""
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
    """Return an expression, element or mechanism with some independent parameters replaced."""
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
    """Return the value of an expression.

    Args:
        expression: the tree.
        values: independent parameters by name, SI units; floats or symbols.
        operations: implementation of each operation and function for this type of number; floats
            by default. "measure" returns the value of a `Measured` number.

    Returns:
        A number of the type of `values` and `operations` (a float for a constant).
    """
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Leaf):
        return values[expression.name]
    if isinstance(expression, Measured):
        return operations["measure"](expression)
    return operations[expression.operation](
        *(evaluate(a, values, operations) for a in expression.arguments)
    )


def steps_from(start: str, pairs: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the number of steps from a start to every item that undirected pairs connect to it.

    The start is included with zero steps.
    """
    neighbors: dict[str, list[str]] = {}
    for first, second in pairs:
        neighbors.setdefault(first, []).append(second)
        neighbors.setdefault(second, []).append(first)
    steps, queue = {start: 0}, [start]
    for name in queue:  # the list grows during the loop
        new_names = [
            other for other in dict.fromkeys(neighbors.get(name, ())) if other not in steps
        ]
        steps |= dict.fromkeys(new_names, steps[name] + 1)
        queue += new_names
    return steps


def ordered(graph: Mapping[str, Iterable[str]], report: Callable[[list[str]], None]) -> list[str]:
    """Return the names in topological order: each name follows the names that it requires.

    The order depends only on the graph. The search is depth-first, without recursion, in time
    linear in the size of the graph. (`graphlib` reports only one cycle.)

    Args:
        graph: the names that each name requires; required names that are not keys are ignored.
        report: called with the names of each cycle; the first name is repeated at the end. No name
            is reported in two cycles.
    """
    order: list[str] = []
    done: set[str] = set()
    cyclic: set[str] = set()
    for root in graph:
        if root in done:
            continue
        path: dict[str, Iterator[str]] = {root: iter(graph[root])}
        while path:
            name = next(reversed(path))
            required_name = next(path[name], None)
            if required_name is None:
                del path[name]
                done.add(name)
                order.append(name)
            elif required_name in path and name not in cyclic:
                cycle = [required_name]
                for name_in_path in reversed(path):
                    cycle.append(name_in_path)
                    if name_in_path == required_name:
                        break
                cyclic.update(cycle)
                report(cycle[::-1])
            elif required_name in graph and required_name not in done and required_name not in path:
                path[required_name] = iter(graph[required_name])
    return order


def chain(names: list[str]) -> str:
    """Return the names with arrows between them; the middle of a long list is omitted."""
    if len(names) <= 12:
        return " -> ".join(names)
    return (
        f"{' -> '.join(names[:6])} -> ... {len(names) - 12} more ... -> {' -> '.join(names[-6:])}"
    )


#: An angle counts as a multiple of 90 deg if its distance from the multiple, in quarter
#: revolutions, is smaller than this. Multiples of 90 deg are not exact floats in radians.
RIGHT_ANGLE_TOLERANCE = 1e-12


def exact_sine(angle: float) -> float:
    """Return the sine of a number (rad), exact at multiples of 90 degrees.

    Zeros of a geometry therefore remain exact zeros.
    """
    quarters = angle / (math.pi / 2)
    if abs(quarters - round(quarters)) < RIGHT_ANGLE_TOLERANCE:
        return (0.0, 1.0, 0.0, -1.0)[round(quarters) % 4]
    return math.sin(angle)


def exact_cosine(angle: float) -> float:
    """Return the cosine of a number (rad), exact at multiples of 90 degrees."""
    shifted_sine = exact_sine(angle + math.pi / 2)
    return shifted_sine if shifted_sine in (-1.0, 0.0, 1.0) else math.cos(angle)


def sine(angle: Expression) -> Expression:
    """Return the sine; a constant is evaluated immediately."""
    if isinstance(angle, Constant):
        return Constant(exact_sine(angle.value))
    return Call("sin", (angle,))


def cosine(angle: Expression) -> Expression:
    """Return the cosine; a constant is evaluated immediately."""
    if isinstance(angle, Constant):
        return Constant(exact_cosine(angle.value))
    return Call("cos", (angle,))
