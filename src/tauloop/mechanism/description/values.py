"""Values of a machine file: named parameters, literals as parameters, and expressions of both."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

from tauloop.common.records import dataclass
from tauloop.mechanism.description import yaml_nodes
from tauloop.mechanism.description.cursor import Cursor, ListOf, Shape, Value, chosen
from tauloop.mechanism.description.parser import (
    MAX_ALL_OPERATIONS,
    MAX_OPERATIONS,
    ExpressionError,
    Operation,
    Quantity,
    Syntax,
    names,
    operations_of,
    parse,
    resolve,
)
from tauloop.mechanism.description.structure import qualified
from tauloop.mechanism.description.units import (
    LITERAL,
    MAX_CHARACTERS,
    NOT_FINITE,
    ONE as DIMENSIONLESS,
    Dimension,
    Literal,
    UnitError,
    literal,
    misfit,
    named,
    shown,
)
from tauloop.mechanism.expression import (
    GROUPS,
    ONE as CONSTANT_ONE,
    ZERO,
    Constant,
    Expression,
    Leaf,
    Parameter,
    ParameterTable,
    chain,
    evaluate,
    leaves,
    ordered,
)
from tauloop.mechanism.suggestions import nearest

#: Spelling and value of an open end of a range.
OPEN_ENDS = {"-inf": -math.inf, "inf": math.inf}
Element = TypeVar("Element", bound=Any)


@dataclass(frozen=True, slots=True)
class Definition:
    """A named parameter before its value is determined."""

    name: str
    cursor: Cursor
    content: Literal | Syntax | None


class ValueReader:
    """Reader of values, with the growing table of independent parameters."""

    def __init__(
        self,
        provenance: Cursor | None,
        *,
        origins: Mapping[int, tuple[str, str]] = MappingProxyType({}),
        unknown: Collection[str] = (),
    ) -> None:
        """Initialize an empty table.

        Args:
            provenance: status and source of values without their own.
            origins: status and source by the id of a value's node, for values with their own
                provenance.
            unknown: groups of parameters that are independent even if their value is zero, because
                they may be identified.
        """
        self._status = (provenance.word("status") if provenance else None) or "chosen"
        self._source = (provenance.word("source") if provenance else None) or ""
        self._origins, self._unknown = origins, unknown
        self._definitions: dict[str, Definition] = {}
        self._quantities: dict[str, Quantity | None] = {}
        self._leaves: dict[str, Parameter] = {}
        #: Nodes of the independent parameters by name; several legs may share a node.
        self.nodes: dict[str, yaml_nodes.Node] = {}
        self._groups: dict[str, set[str]] = {}
        self._leg_numbers: dict[str, int] = {}
        self._nominal: dict[str, float] = {}
        self._operations = 0

    # Named parameters

    def define(self, name: str, cursor: Cursor) -> None:
        """Add a named parameter by full name; `resolve_all` determines all values."""
        self._definitions[name] = Definition(name, cursor, content_of(cursor))

    def set_leg_number(self, prefix: str, number: int) -> None:
        """Set the value of `i` in expressions whose names have this prefix."""
        self._leg_numbers[prefix] = number

    def resolve_all(self, values: Mapping[str, float] = MappingProxyType({})) -> None:
        """Determine the quantity of every named parameter: literals first, then derived ones.

        Args:
            values: nominal values, SI, by name of independent parameter, in place of the file's.
        """
        graph: dict[str, list[str]] = {}
        for name, definition in self._definitions.items():
            content = definition.content
            if isinstance(content, Literal) and _is_exact_zero(content, definition.cursor):
                self._quantities[name] = Quantity(ZERO, DIMENSIONLESS)
            elif isinstance(content, Literal):
                self._quantities[name] = self._independent_parameter(
                    name, content, definition.cursor
                )
                self._nominal[name] = values.get(name, self._nominal[name])
            elif content is not None:
                used = (self._full_name(word, definition.cursor.prefix) for word in names(content))
                graph[name] = [full for full in used if full is not None]
        for name in ordered(graph, self._cycle):
            definition = self._definitions[name]
            if name not in self._quantities and not isinstance(definition.content, Literal):
                self._quantities[name] = self._resolved(definition.content, definition.cursor)

    def _cycle(self, cycle: list[str]) -> None:
        """Report parameters that depend on each other."""
        first = self._definitions[cycle[0]].cursor
        first.problem(
            f"the parameters depend on each other in a cycle: {chain(cycle)}",
            "give one of them a value that does not depend on the others",
        )
        self._quantities.update(dict.fromkeys(cycle))

    def _full_name(self, name: str, prefix: str) -> str | None:
        """Return the full name of a parameter, sought in the leg first; None if unknown."""
        return next((full for full in (prefix + name, name) if full in self._definitions), None)

    def adopt(self, parameters: Iterable[Parameter]) -> None:
        """Add the independent parameters of another file under their names in this one."""
        for parameter in parameters:
            self._leaves[parameter.name] = parameter
            self._nominal[parameter.name] = parameter.value
            self._groups.setdefault(parameter.name, set()).add(parameter.group)

    # Values at a cursor

    def expression(self, cursor: Cursor | None, is_angular: bool = False) -> Expression | None:
        """Return the expression at a cursor; None if it is absent or after adding a problem.

        Args:
            cursor: a cursor of kind `Value`.
            is_angular: whether the value belongs to a rotational degree of freedom.
        """
        quantity = self.quantity(cursor, is_angular)
        return quantity.expression if quantity is not None else None

    def quantity(self, cursor: Cursor | None, is_angular: bool = False) -> Quantity | None:
        """Return the expression at a cursor with its dimension (see `expression`)."""
        if cursor is None or not isinstance(cursor.kind, Value):
            return None
        kind = cursor.kind
        content = content_of(cursor)
        if content is None:
            return None
        quantity: Quantity | None
        is_unknown = kind.group in self._unknown
        dimensions = kind.dimensions(is_angular)
        if not isinstance(content, Literal):
            quantity = self._resolved(content, cursor)
        elif kind.group and (
            content.number != 0.0 or isinstance(cursor.node, yaml_nodes.Mapping) or is_unknown
        ):
            if is_unknown and dimensions and content.number == 0.0 and not content.unit:
                content = replace(content, unit=str(dimensions[0]), dimension=dimensions[0])
            quantity = self._independent_parameter(cursor.leaf, content, cursor)
        else:
            _reject_bounds(
                cursor, "a value that is not a parameter cannot have bounds", "remove them"
            )
            quantity = Quantity(Constant(content.value), content.dimension)
        if (
            quantity is None
            or not self._fits(quantity, content, dimensions, cursor)
            or not self._has_sign(quantity, kind, cursor)
        ):
            return None
        if kind.group:
            for leaf in leaves(quantity.expression):
                self._groups.setdefault(leaf, set()).add(kind.group)
        return quantity

    def element(
        self, result_class: type[Element], cursor: Cursor, is_angular: bool = False, **known: Any
    ) -> Element:
        """Return an instance of a class; its fields are the expressions at the keys of a mapping.

        Args:
            result_class: class of the result. Its fields have the names of the keys.
            cursor: a cursor of kind `Shape`.
            is_angular: whether the value belongs to a rotational degree of freedom.
            known: values of fields that are not read from the file.

        Returns:
            The instance. Absent fields are None. A required field that is invalid is reported and
            set to 1.
        """
        shape, values = chosen(cursor.kind, cursor.node), dict(known)
        for attribute in fields(result_class):
            key = (
                shape.field(attribute.name)
                if isinstance(shape, Shape) and attribute.name not in known
                else None
            )
            if key is not None:
                values[key.name] = self.expression(cursor.get(key.name), is_angular) or (
                    CONSTANT_ONE if key.required else None
                )
        return result_class(**values)

    def number(self, cursor: Cursor | None, is_angular: bool = False) -> float | None:
        """Return the nominal value at a cursor, SI; None if it is absent or invalid."""
        expression = self.expression(cursor, is_angular)
        return None if expression is None else self.nominal(expression)

    def vector(self, cursor: Cursor | None) -> tuple[Expression, Expression, Expression] | None:
        """Return a list of three expressions; None if it is absent or invalid."""
        if cursor is None:
            return None
        components = [self.expression(item) for item in cursor.items()]
        valid = [component for component in components if component is not None]
        return (valid[0], valid[1], valid[2]) if len(valid) == len(components) == 3 else None

    def range(self, cursor: Cursor | None, is_angular: bool = False) -> tuple[float, float] | None:
        """Return (lower, upper), SI, infinite for open ends; report a reversed pair."""
        if cursor is None:
            return None
        ends = [
            OPEN_ENDS[item.text] if item.text in OPEN_ENDS else self.number(item, is_angular)
            for item in cursor.items()
        ]
        if len(ends) != 2 or ends[0] is None or ends[1] is None:
            return None
        if ends[0] >= ends[1]:
            kind = cursor.kind.item if isinstance(cursor.kind, ListOf) else None
            dimension = (
                kind.dimension(is_angular) if isinstance(kind, Value) else None
            ) or DIMENSIONLESS
            lower, upper = shown(ends[0], dimension), shown(ends[1], dimension)
            cursor.problem(
                f"the lower end {lower} is not below the upper end {upper}", "swap or correct them"
            )
            return None
        return ends[0], ends[1]

    def nominal(self, expression: Expression) -> float:
        """Return the nominal value of an expression, SI; NaN if it has none (already reported)."""
        try:
            value = evaluate(expression, self._nominal)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan
        return float(value) if isinstance(value, int | float) else math.nan

    def table(self) -> ParameterTable:
        """Return the independent parameters in the order of the file.

        A parameter of several groups counts for the first of them in `GROUPS`.
        """

        def group(name: str) -> str:
            used = self._groups.get(name, set())
            return next((candidate for candidate in GROUPS if candidate in used), GROUPS[0])

        return ParameterTable(tuple(replace(p, group=group(p.name)) for p in self._leaves.values()))

    # Internal functions

    def _independent_parameter(
        self, name: str, literal: Literal, cursor: Cursor
    ) -> Quantity | None:
        """Return a literal as an independent parameter; add it to the table if its name is new."""
        lower, upper = -math.inf, math.inf
        status, source = self._origins.get(id(cursor.node), (self._status, self._source))
        if isinstance(cursor.node, yaml_nodes.Mapping):
            qualified_value = qualified(cursor)
            status, source = (
                qualified_value.word("status") or status,
                qualified_value.word("source") or source,
            )
            bounds = qualified_value.get("bounds")
            if bounds is not None:
                kind = Value(linear=literal.dimension)
                ends = self.range(replace(bounds, kind=replace(bounds.kind, item=kind)))  # type: ignore[arg-type]
                lower, upper = ends or (lower, upper)
                if not lower <= literal.value <= upper:
                    ends_and_value = (
                        shown(number, literal.dimension) for number in (lower, upper, literal.value)
                    )
                    bounds.problem(
                        "the bounds {} to {} do not contain the value {}".format(*ends_and_value),
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
            self.nodes[name] = cursor.node
        return Quantity(Leaf(name), literal.dimension)

    def _resolved(self, syntax: Syntax | None, cursor: Cursor) -> Quantity | None:
        """Return the quantity of a syntax tree at a cursor, or None after adding a problem."""
        if syntax is None:
            return None
        _reject_bounds(
            cursor,
            "a derived value cannot have bounds",
            "give bounds to the literals in its expression",
        )
        known = {name: self._look_up(name, cursor) for name in names(syntax)}
        quantity = self.resolved(syntax, known, cursor)
        if quantity is None:
            return None
        if not math.isfinite(self.nominal(quantity.expression)):
            cursor.problem(
                "the expression has no real value at the nominal parameters",
                "check for a division by zero, a root of a negative number, or asin or acos of a value beyond 1",
            )
            return None
        return quantity

    def resolved(
        self,
        syntax: Syntax,
        known: Mapping[str, Quantity | None],
        cursor: Cursor,
        measured: Callable[[Operation], Quantity | None] | None = None,
    ) -> Quantity | None:
        """Return the quantity of a syntax tree, or None after adding a problem.

        Args:
            syntax: the tree.
            known: quantities of the names in the tree; None for invalid names.
            cursor: position of the expression.
            measured: function that evaluates geometric functions of an output (see `resolve`).
        """
        try:
            quantity = resolve(syntax, known, measured)
        except ExpressionError as error:
            cursor.problem(error.what, error.remedy + self._dimensions_text(syntax, cursor))
            return None
        if quantity is None:
            return None
        count = operations_of(quantity.expression)
        self._operations += count
        if self._operations > MAX_ALL_OPERATIONS:
            what = f"after substituting all parameters, the values have more than {MAX_ALL_OPERATIONS} operations"
            raise cursor.refused(what, "state intermediate values as numbers")
        if count > MAX_OPERATIONS:
            cursor.problem(
                "the expression is too large after substituting all parameters",
                "state intermediate values as numbers",
            )
            return None
        return quantity

    @property
    def parameter_names(self) -> Collection[str]:
        """Full names of all named parameters."""
        return self._definitions.keys()

    def knows(self, name: str, cursor: Cursor) -> bool:
        """Return whether a name is the name of a parameter, or `i` inside a leg."""
        is_leg_number = name == "i" and cursor.prefix in self._leg_numbers
        return is_leg_number or self._full_name(name, cursor.prefix) is not None

    def parameter(self, name: str, cursor: Cursor) -> Quantity | None:
        """Return the quantity of a named parameter, or None after adding a problem."""
        return self._look_up(name, cursor)

    def _look_up(self, name: str, cursor: Cursor) -> Quantity | None:
        if name == "i" and cursor.prefix in self._leg_numbers:
            return Quantity(Constant(float(self._leg_numbers[cursor.prefix])), DIMENSIONLESS)
        full_name = self._full_name(name, cursor.prefix)
        if full_name is not None:
            return self._quantities.get(full_name)
        if NOT_FINITE.fullmatch(name):
            cursor.problem(f"{name} is not a finite number", "write a finite value")
        elif name == "i":
            cursor.problem(
                "i is the number of a repeated leg, but this value is not in a leg",
                "write a number",
            )
        else:
            hint = (
                "" if cursor.collector.is_full else nearest(name, self._definitions, cursor.prefix)
            )
            cursor.problem(
                f"unknown name {name}", hint or "define it under parameters, or check its spelling"
            )
        return None

    def _dimensions_text(self, content: Literal | Syntax, cursor: Cursor) -> str:
        """Return a text with the dimension and line of each name in an expression."""
        texts: list[str] = []
        for name in dict.fromkeys(names(content)) if not isinstance(content, Literal) else ():
            full_name = self._full_name(name, cursor.prefix)
            quantity = self._quantities.get(full_name) if full_name is not None else None
            if full_name is not None and quantity is not None:
                line = self._definitions[full_name].cursor.line
                texts.append(f"{name} is {named(quantity.dimension)} (line {line})")
        return "; " + ", ".join(texts) if texts else ""

    def _fits(
        self,
        quantity: Quantity,
        content: Literal | Syntax,
        required: tuple[Dimension, ...],
        cursor: Cursor,
    ) -> bool:
        """Return whether a quantity has one of the required dimensions; otherwise add a problem."""
        if not required or any(map(quantity.fits, required)):
            return True
        number = content.number if isinstance(content, Literal) else None
        error = misfit(_text_in_file(cursor), quantity.dimension, required, number)
        is_complete = (
            required[0].is_angular
            and quantity.dimension.matches(required[0])
            and not quantity.dimension.is_one
        )
        dimensions = "" if is_complete else self._dimensions_text(content, cursor)
        cursor.problem(error.what, error.remedy + dimensions)
        return False

    def _has_sign(self, quantity: Quantity, kind: Value, cursor: Cursor) -> bool:
        """Return whether a quantity has the required sign; otherwise add a problem."""
        value = self.nominal(quantity.expression)
        is_wrong = {
            "positive": value <= 0,
            "not negative": value < 0,
            "not zero": value == 0,
        }.get(kind.sign, False)
        if is_wrong:
            value_text = shown(value, quantity.dimension)
            requirement = f"must be {kind.sign}" if kind.sign != "not zero" else "must not be zero"
            is_mass = (
                quantity.dimension == kind.linear and cursor.leaf.endswith(".mass") and value == 0
            )
            # inertias of drive lines cannot be massless
            is_mass = is_mass and "inertias." not in cursor.leaf
            remedy = (
                "write `massless` for a body or rod without mass"
                if is_mass
                else "correct the value or its sign"
            )
            cursor.problem(f"{requirement}, got {value_text}", remedy)
        return not is_wrong


def _reject_bounds(cursor: Cursor, what: str, remedy: str) -> None:
    if isinstance(cursor.node, yaml_nodes.Mapping) and qualified(cursor).has("bounds"):
        cursor.problem(what, remedy, "bounds")


def content_of(cursor: Cursor) -> Literal | Syntax | None:
    """Return the literal or the syntax tree at a cursor of kind `Value`.

    The result is None after adding a problem.
    """
    scalar = cursor
    if isinstance(cursor.node, yaml_nodes.Mapping):
        inner = qualified(cursor).get("value")
        if inner is None:
            return None
        scalar = inner
    if not scalar.text and not (
        isinstance(scalar.node, yaml_nodes.Scalar) and scalar.node.is_quoted
    ):
        return None  # the check of the form has already reported the missing value
    text = (scalar.text or "").strip()
    try:
        return literal(text)
    except UnitError as error:
        problem: UnitError | ExpressionError = error
    # the pattern of literals also accepts ``2 m - x``, whose unit is invalid
    if not NOT_FINITE.fullmatch(text) and len(text) <= MAX_CHARACTERS:
        try:
            return parse(text)
        except ExpressionError as error:
            if not LITERAL.fullmatch(text):
                problem = error
    scalar.problem(problem.what, problem.remedy)
    return None


def _is_exact_zero(literal: Literal, cursor: Cursor) -> bool:
    """Return whether a named parameter is a bare ``0``.

    Such a zero is structural. It fits any dimension and is not an independent parameter.
    """
    return (
        literal.number == 0.0
        and not literal.unit
        and not isinstance(cursor.node, yaml_nodes.Mapping)
    )


def _text_in_file(cursor: Cursor) -> str:
    node: yaml_nodes.Node | None = cursor.node
    if isinstance(node, yaml_nodes.Mapping):
        node = node.get("value")
    return repr(node.text.strip()) if isinstance(node, yaml_nodes.Scalar) else "the value"
