"""Values of a machine file: named parameters, literals that become leaf parameters, and expressions over both."""

from __future__ import annotations

import graphlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tauloop.mechanism import yaml_nodes
from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.expression import Constant, Expression, Leaf, evaluate, leaves
from tauloop.mechanism.kinds import Value
from tauloop.mechanism.model import GROUPS, Parameter, ParameterTable
from tauloop.mechanism.parser import (
    NUMBER,
    ExpressionError,
    Quantity,
    Syntax,
    is_too_large,
    names,
    parse,
    resolve,
)
from tauloop.mechanism.structure import qualified
from tauloop.mechanism.suggestions import suggestion
from tauloop.mechanism.units import ONE, Dimension, UnitError, named, parse_unit

_LITERAL = re.compile(
    rf"(?P<number>[+-]?\s*{NUMBER})(?:\s*(?P<unit>[A-Za-z][A-Za-z0-9^/\s-]*|1/[A-Za-z0-9^/\s-]+))?", re.ASCII
)
_NOT_FINITE = re.compile(r"[+-]?\.?(inf|infinity|nan)", re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Definition:
    """A named parameter before its value is worked out."""

    name: str
    cursor: Cursor
    content: Literal | Syntax | None


class Values:
    """Reads values, and keeps the table of leaf parameters that grows while elements are read."""

    def __init__(self, provenance: Cursor | None) -> None:
        """Start an empty table.

        Args:
            provenance: status and source of values that say none.
        """
        self._status = (provenance.word("status") if provenance else None) or "chosen"
        self._source = (provenance.word("source") if provenance else None) or ""
        self._definitions: dict[str, Definition] = {}
        self._quantities: dict[str, Quantity | None] = {}
        self._leaves: dict[str, Parameter] = {}
        self._groups: dict[str, set[str]] = {}
        self._counters: dict[str, int] = {}
        self._nominal: dict[str, float] = {}

    # Named parameters

    def define(self, name: str, cursor: Cursor) -> None:
        """Take up a named parameter by its complete name; `work_out` gives all of them their values."""
        self._definitions[name] = Definition(name, cursor, self._content(cursor))

    def count(self, prefix: str, number: int) -> None:
        """Let `i` be a number wherever names have this prefix."""
        self._counters[prefix] = number

    def work_out(self) -> None:
        """Give every named parameter its quantity, in an order in which each follows those that it needs."""
        graph = {
            name: {
                full
                for used in (names(definition.content) if not isinstance(definition.content, Literal | None) else ())
                if (full := self._full_name(used, definition.cursor.prefix)) is not None
            }
            for name, definition in self._definitions.items()
        }
        for name in ordered(graph, self._cycle):
            definition = self._definitions[name]
            if name not in self._quantities:
                self._quantities[name] = self._named(definition)

    def _cycle(self, cycle: list[str]) -> None:
        first = self._definitions[cycle[0]].cursor
        first.problem(
            f"the parameters define each other in a circle: {' -> '.join(cycle)}", "give one of them a value of its own"
        )
        self._quantities.update(dict.fromkeys(cycle))

    def _named(self, definition: Definition) -> Quantity | None:
        if isinstance(definition.content, Literal):
            return self._leaf(definition.name, definition.content, definition.cursor)
        return self._resolved(definition.content, definition.cursor)

    def _full_name(self, name: str, prefix: str) -> str | None:
        return next((full for full in (prefix + name, name) if full in self._definitions), None)

    # Values in place

    def expression(self, cursor: Cursor | None, is_angular: bool = False) -> Expression | None:
        """The expression at a place; None if there is none or it is wrong, which is then noted.

        Args:
            cursor: a place of kind `Value`.
            is_angular: whether it belongs to a turning freedom.
        """
        quantity = self.quantity(cursor, is_angular)
        return quantity.expression if quantity is not None else None

    def quantity(self, cursor: Cursor | None, is_angular: bool = False) -> Quantity | None:
        """As `expression`, with the dimension."""
        if cursor is None or not isinstance(cursor.kind, Value):
            return None
        kind = cursor.kind
        content = self._content(cursor)
        if isinstance(content, Literal):
            dimension = kind.dimension(is_angular)
            if not self._fits(Quantity(Constant(content.value), content.dimension), dimension, cursor):
                return None
            is_leaf = kind.group and (content.number != 0.0 or isinstance(cursor.node, yaml_nodes.Mapping))
            quantity: Quantity | None = Quantity(Constant(content.value), content.dimension)
            if is_leaf:
                quantity = self._leaf(cursor.leaf, content, cursor)
        else:
            quantity = self._resolved(content, cursor)
            if quantity is None or not self._fits(quantity, kind.dimension(is_angular), cursor):
                return None
        if quantity is None or not self._has_sign(quantity, kind, cursor):
            return None
        if kind.group:
            for leaf in leaves(quantity.expression):
                self._groups.setdefault(leaf, set()).add(kind.group)
        return quantity

    def number(self, cursor: Cursor | None, is_angular: bool = False) -> float | None:
        """The nominal value at a place, SI; None if there is none or it is wrong."""
        expression = self.expression(cursor, is_angular)
        return None if expression is None else self.nominal(expression)

    def vector(self, cursor: Cursor | None) -> tuple[Expression, Expression, Expression] | None:
        """Three expressions; None if there is no list, or one of them is wrong."""
        if cursor is None:
            return None
        components = [self.expression(item) for item in cursor.items()]
        whole = [component for component in components if component is not None]
        return (whole[0], whole[1], whole[2]) if len(whole) == len(components) == 3 else None

    def range(self, cursor: Cursor | None, is_angular: bool = False) -> tuple[float, float] | None:
        """A lower and an upper number, SI; a reversed pair is noted."""
        if cursor is None:
            return None
        ends = [self.number(item, is_angular) for item in cursor.items()]
        if len(ends) != 2 or ends[0] is None or ends[1] is None:
            return None
        if ends[0] >= ends[1]:
            cursor.problem(
                f"the lower end {ends[0]:g} is not below the upper end {ends[1]:g} (SI)", "swap or correct them"
            )
            return None
        return ends[0], ends[1]

    def nominal(self, expression: Expression) -> float:
        """Nominal value of an expression, SI; not a number where it has none (noted when it was read)."""
        try:
            value = evaluate(expression, self._nominal)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan
        return float(value) if isinstance(value, int | float) else math.nan

    def table(self) -> ParameterTable:
        """The leaf parameters in the order of the file; geometry wins where one serves several groups."""

        def group(name: str) -> str:
            used = self._groups.get(name, set())
            return next((candidate for candidate in GROUPS if candidate in used), GROUPS[0])

        return ParameterTable(tuple(replace(p, group=group(p.name)) for p in self._leaves.values()))

    # Parts

    def _content(self, cursor: Cursor) -> Literal | Syntax | None:
        """What is written at a place: a literal or a syntax tree; None if it is wrong, which is noted."""
        scalar = cursor
        if isinstance(cursor.node, yaml_nodes.Mapping):
            inner = qualified(cursor).get("value")
            if inner is None:
                return None
            scalar = inner
        text = scalar.text
        if text is None or not text.strip():
            return None
        return self._literal(text.strip(), scalar)

    def _literal(self, text: str, cursor: Cursor) -> Literal | Syntax | None:
        match = _LITERAL.fullmatch(text)
        problem: tuple[str, str] | None = None
        if match is not None:
            try:
                unit = parse_unit(match["unit"]) if match["unit"] else None
            except UnitError as error:
                problem = error.what, error.remedy
            else:
                number = float(match["number"].replace(" ", "").replace("\t", ""))
                literal = Literal(
                    number, unit.text if unit else "", unit.scale if unit else 1.0, unit.dimension if unit else ONE
                )
                if not math.isfinite(literal.value):
                    cursor.problem(f"the number {match['number']} is too large", "check its exponent")
                    return None
                return literal
        if _NOT_FINITE.fullmatch(text):
            cursor.problem(f"{text} is not a finite number", "write a finite value, or leave the key out")
            return None
        try:
            return parse(text)
        except ExpressionError as error:
            cursor.problem(*(problem or (error.what, error.remedy)))
            return None

    def _leaf(self, name: str, literal: Literal, cursor: Cursor) -> Quantity | None:
        """A new leaf parameter."""
        lower, upper = -math.inf, math.inf
        status, source = self._status, self._source
        if isinstance(cursor.node, yaml_nodes.Mapping):
            about = qualified(cursor)
            status, source = about.word("status") or status, about.word("source") or source
            bounds = about.get("bounds")
            if bounds is not None:
                kind = Value(linear=literal.dimension)
                ends = self.range(replace(bounds, kind=replace(bounds.kind, item=kind)))  # type: ignore[arg-type]
                lower, upper = ends or (lower, upper)
                if not lower <= literal.value <= upper:
                    bounds.problem(
                        f"the bounds {lower:g} to {upper:g} leave out the value {literal.value:g} (SI)",
                        "widen the bounds or correct the value",
                    )
        if name not in self._leaves:
            self._leaves[name] = Parameter(
                name=name,
                value=literal.value,
                unit=literal.unit,
                scale=literal.scale,
                lower=lower,
                upper=upper,
                status=status,
                source=source,
            )
            self._nominal[name] = literal.value
        return Quantity(Leaf(name), literal.dimension)

    def _resolved(self, syntax: Syntax | None, cursor: Cursor) -> Quantity | None:
        """Quantity of a syntax tree; what is wrong with it is noted."""
        if syntax is None:
            return None
        if isinstance(cursor.node, yaml_nodes.Mapping) and qualified(cursor).has("bounds"):
            cursor.problem(
                "a derived value has no bounds of its own", "give bounds to the literals that it follows from", "bounds"
            )
        try:
            quantity = resolve(syntax, lambda name: self._look_up(name, cursor))
        except ExpressionError as error:
            cursor.problem(error.what, error.remedy)
            return None
        if quantity is None:
            return None
        if is_too_large(quantity.expression):
            cursor.problem(
                "the expression is too large when its parameters are written out",
                "state intermediate values as numbers",
            )
            return None
        if not math.isfinite(self.nominal(quantity.expression)):
            cursor.problem(
                "the expression has no real value at the nominal parameters",
                "look for a division by zero, a root of a negative number, or an arc function beyond 1",
            )
            return None
        return quantity

    def _look_up(self, name: str, cursor: Cursor) -> Quantity | None:
        if name == "i" and cursor.prefix in self._counters:
            return Quantity(Constant(float(self._counters[cursor.prefix])), ONE)
        full = self._full_name(name, cursor.prefix)
        if full is not None:
            return self._quantities.get(full)
        if _NOT_FINITE.fullmatch(name):
            cursor.problem(f"{name} is not a finite number", "write a finite value")
        elif name == "i":
            cursor.problem("i counts the legs of a pattern, and this is not in one", "write a number")
        else:
            visible = {known.removeprefix(cursor.prefix) for known in self._definitions}
            hint = "" if cursor.collector.is_full else suggestion(name, visible)
            cursor.problem(f"unknown name {name}", hint or "define it under parameters, or check its spelling")
        return None

    def _fits(self, quantity: Quantity, dimension: Dimension | None, cursor: Cursor) -> bool:
        if dimension is None or quantity.fits(dimension):
            return True
        written = _written(cursor)
        if quantity.dimension.is_one:
            number = quantity.expression.value if isinstance(quantity.expression, Constant) else None
            example = f"{number:g} {dimension}" if number is not None else f"... {dimension}"
            if isinstance(quantity.expression, Leaf):
                remedy = f"give the parameter {quantity.expression.name} a unit"
            else:
                remedy = (
                    f"write the unit, such as {example}" if number is not None else "give its parameters their units"
                )
            cursor.problem(f"{written} has no unit where {named(dimension)} is needed", remedy)
        elif dimension.is_angular and quantity.dimension.matches(dimension):
            cursor.problem(
                f"{written} does not say that it is an angle: {named(dimension)} is needed",
                "write rad or deg, or rpm; Hz and 1/s could mean turns or radians",
            )
        else:
            cursor.problem(
                f"{written} is {named(quantity.dimension)} where {named(dimension)} is needed",
                "check the unit or the expression",
            )
        return False

    def _has_sign(self, quantity: Quantity, kind: Value, cursor: Cursor) -> bool:
        value = self.nominal(quantity.expression)
        is_wrong = {
            "positive": value <= 0,
            "not negative": value < 0,
            "not zero": value == 0,
        }.get(kind.sign, False)
        if is_wrong:
            got = f"{value:g} {quantity.dimension}".strip()
            must = f"must be {kind.sign}" if kind.sign != "not zero" else "must not be zero"
            is_mass = quantity.dimension == kind.linear and cursor.leaf.endswith(".mass") and value == 0
            remedy = "write massless for a part without mass" if is_mass else "correct the value or its sign"
            cursor.problem(f"{must}, got {got}", remedy)
        return not is_wrong


def _written(cursor: Cursor) -> str:
    node: yaml_nodes.Node | None = cursor.node
    if isinstance(node, yaml_nodes.Mapping):
        node = node.get("value")
    return repr(node.text.strip()) if isinstance(node, yaml_nodes.Scalar) else "the value"


def ordered(graph: Mapping[str, Iterable[str]], report: Callable[[list[str]], None]) -> list[str]:
    """Names in an order in which each follows those it depends on.

    Args:
        graph: what each name depends on.
        report: called with the names of a cycle, the first repeated at the end; each cycle is then cut.
    """
    remaining = {name: set(needs) for name, needs in graph.items()}
    while True:
        try:
            return list(graphlib.TopologicalSorter(remaining).static_order())
        except graphlib.CycleError as error:
            cycle = [str(name) for name in error.args[1]][::-1]
            report(cycle)
            for name in cycle:
                remaining[name] = set()
