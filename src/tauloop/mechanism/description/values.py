"""Values of a machine file: named parameters, literals as parameters, and expressions over both."""

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
    ONE,
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
    ONE as UNIT,
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

#: Spelling of an open end of a range.
OPEN_ENDS = {"-inf": -math.inf, "inf": math.inf}
Made = TypeVar("Made", bound=Any)


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
            provenance: status and source of values that state none.
            origins: status and source by the id of a value's node, for mappings that state their
                own.
            unknown: groups whose zeros are independent parameters too, because they are identified.
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
        self._counters: dict[str, int] = {}
        self._nominal: dict[str, float] = {}
        self._operations = 0

    # Named parameters

    def define(self, name: str, cursor: Cursor) -> None:
        """Add a named parameter by complete name; `work_out` determines the values of all."""
        self._definitions[name] = Definition(name, cursor, content_of(cursor))

    def count(self, prefix: str, number: int) -> None:
        """Let `i` be a number in names with this prefix."""
        self._counters[prefix] = number

    def work_out(self, values: Mapping[str, float] = MappingProxyType({})) -> None:
        """Determine the quantity of every named parameter: literals first, then derived ones.

        Args:
            values: nominal values that differ from the file's, SI, by name of independent parameter.
        """
        graph: dict[str, list[str]] = {}
        for name, definition in self._definitions.items():
            content = definition.content
            if isinstance(content, Literal) and _is_exact_zero(content, definition.cursor):
                self._quantities[name] = Quantity(ZERO, ONE)
            elif isinstance(content, Literal):
                self._quantities[name] = self._leaf(name, content, definition.cursor)
                self._nominal[name] = values.get(name, self._nominal[name])
            elif content is not None:
                used = (self._full_name(word, definition.cursor.prefix) for word in names(content))
                graph[name] = [full for full in used if full is not None]
        for name in ordered(graph, self._cycle):
            definition = self._definitions[name]
            if name not in self._quantities and not isinstance(definition.content, Literal):
                self._quantities[name] = self._resolved(definition.content, definition.cursor)

    def _cycle(self, cycle: list[str]) -> None:
        first = self._definitions[cycle[0]].cursor
        first.problem(
            f"the parameters depend on each other in a cycle: {chain(cycle)}",
            "give one of them a value of its own",
        )
        self._quantities.update(dict.fromkeys(cycle))

    def _full_name(self, name: str, prefix: str) -> str | None:
        return next((full for full in (prefix + name, name) if full in self._definitions), None)

    def adopt(self, parameters: Iterable[Parameter]) -> None:
        """Add the independent parameters of another file under their names in this one."""
        for parameter in parameters:
            self._leaves[parameter.name] = parameter
            self._nominal[parameter.name] = parameter.value
            self._groups.setdefault(parameter.name, set()).add(parameter.group)

    # Values in place

    def expression(self, cursor: Cursor | None, is_angular: bool = False) -> Expression | None:
        """Return the expression at a place; None if it is absent or after noting what is wrong.

        Args:
            cursor: a place of kind `Value`.
            is_angular: whether it belongs to a turning freedom.
        """
        quantity = self.quantity(cursor, is_angular)
        return quantity.expression if quantity is not None else None

    def quantity(self, cursor: Cursor | None, is_angular: bool = False) -> Quantity | None:
        """Return the expression at a place with its dimension (see `expression`)."""
        if cursor is None or not isinstance(cursor.kind, Value):
            return None
        kind = cursor.kind
        content = content_of(cursor)
        if content is None:
            return None
        quantity: Quantity | None
        is_unknown = kind.group in self._unknown
        wanted = kind.dimensions(is_angular)
        if not isinstance(content, Literal):
            quantity = self._resolved(content, cursor)
        elif kind.group and (
            content.number != 0.0 or isinstance(cursor.node, yaml_nodes.Mapping) or is_unknown
        ):
            if is_unknown and wanted and content.number == 0.0 and not content.unit:
                content = replace(content, unit=str(wanted[0]), dimension=wanted[0])
            quantity = self._leaf(cursor.leaf, content, cursor)
        else:
            _refuse_bounds(
                cursor, "a value that is not a parameter has no bounds", "leave them out"
            )
            quantity = Quantity(Constant(content.value), content.dimension)
        if (
            quantity is None
            or not self._fits(quantity, content, wanted, cursor)
            or not self._has_sign(quantity, kind, cursor)
        ):
            return None
        if kind.group:
            for leaf in leaves(quantity.expression):
                self._groups.setdefault(leaf, set()).add(kind.group)
        return quantity

    def element(
        self, made: type[Made], cursor: Cursor, is_angular: bool = False, **known: Any
    ) -> Made:
        """Return an object whose fields are the expressions at the keys of the same names.

        Args:
            made: class of the object.
            cursor: a place of kind `Shape`.
            is_angular: whether it belongs to a turning freedom.
            known: fields that are not read.

        Returns:
            The object; absent fields are None, and required fields that are wrong, which is noted,
            are one.
        """
        shape, read = chosen(cursor.kind, cursor.node), dict(known)
        for part in fields(made):
            key = (
                shape.field(part.name)
                if isinstance(shape, Shape) and part.name not in known
                else None
            )
            if key is not None:
                read[key.name] = self.expression(cursor.get(key.name), is_angular) or (
                    UNIT if key.required else None
                )
        return made(**read)

    def number(self, cursor: Cursor | None, is_angular: bool = False) -> float | None:
        """Return the nominal value at a place, SI; None if it is absent or wrong."""
        expression = self.expression(cursor, is_angular)
        return None if expression is None else self.nominal(expression)

    def vector(self, cursor: Cursor | None) -> tuple[Expression, Expression, Expression] | None:
        """Return three expressions; None if the list is absent or one of them is wrong."""
        if cursor is None:
            return None
        components = [self.expression(item) for item in cursor.items()]
        whole = [component for component in components if component is not None]
        return (whole[0], whole[1], whole[2]) if len(whole) == len(components) == 3 else None

    def range(self, cursor: Cursor | None, is_angular: bool = False) -> tuple[float, float] | None:
        """Return a lower and an upper number, SI, infinite if open; a reversed pair is noted."""
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
            dimension = (kind.dimension(is_angular) if isinstance(kind, Value) else None) or ONE
            lower, upper = shown(ends[0], dimension), shown(ends[1], dimension)
            cursor.problem(
                f"the lower end {lower} is not below the upper end {upper}", "swap or correct them"
            )
            return None
        return ends[0], ends[1]

    def nominal(self, expression: Expression) -> float:
        """Return the nominal value of an expression, SI; NaN where it has none (already noted)."""
        try:
            value = evaluate(expression, self._nominal)
        except (ValueError, OverflowError, ZeroDivisionError):
            return math.nan
        return float(value) if isinstance(value, int | float) else math.nan

    def table(self) -> ParameterTable:
        """Return the independent parameters in the order of the file.

        A parameter of several groups counts as geometry where that is one of them.
        """

        def group(name: str) -> str:
            used = self._groups.get(name, set())
            return next((candidate for candidate in GROUPS if candidate in used), GROUPS[0])

        return ParameterTable(tuple(replace(p, group=group(p.name)) for p in self._leaves.values()))

    # Parts

    def _leaf(self, name: str, literal: Literal, cursor: Cursor) -> Quantity | None:
        """Return a new independent parameter."""
        lower, upper = -math.inf, math.inf
        status, source = self._origins.get(id(cursor.node), (self._status, self._source))
        if isinstance(cursor.node, yaml_nodes.Mapping):
            about = qualified(cursor)
            status, source = about.word("status") or status, about.word("source") or source
            bounds = about.get("bounds")
            if bounds is not None:
                kind = Value(linear=literal.dimension)
                ends = self.range(replace(bounds, kind=replace(bounds.kind, item=kind)))  # type: ignore[arg-type]
                lower, upper = ends or (lower, upper)
                if not lower <= literal.value <= upper:
                    ends_and_value = (
                        shown(number, literal.dimension) for number in (lower, upper, literal.value)
                    )
                    bounds.problem(
                        "the bounds {} to {} leave out the value {}".format(*ends_and_value),
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
        """Return the quantity of a syntax tree; problems are noted."""
        if syntax is None:
            return None
        _refuse_bounds(
            cursor,
            "a derived value has no bounds of its own",
            "give bounds to the literals that it follows from",
        )
        known = {name: self._look_up(name, cursor) for name in names(syntax)}
        quantity = self.resolved(syntax, known, cursor)
        if quantity is None:
            return None
        if not math.isfinite(self.nominal(quantity.expression)):
            cursor.problem(
                "the expression has no real value at the nominal parameters",
                "look for a division by zero, a root of a negative number, or an arc function beyond 1",
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
        """Return the quantity of a syntax tree; None after noting what is wrong.

        Args:
            syntax: the tree.
            known: quantities of the names in it; None for those that are wrong.
            cursor: its place.
            measured: function for the geometric functions of an output (see `resolve`).
        """
        try:
            quantity = resolve(syntax, known, measured)
        except ExpressionError as error:
            cursor.problem(error.what, error.remedy + self._ingredients(syntax, cursor))
            return None
        if quantity is None:
            return None
        count = operations_of(quantity.expression)
        self._operations += count
        if self._operations > MAX_ALL_OPERATIONS:
            what = f"all values have more than {MAX_ALL_OPERATIONS} operations when their parameters are written out"
            raise cursor.refused(what, "state intermediate values as numbers")
        if count > MAX_OPERATIONS:
            cursor.problem(
                "the expression is too large when its parameters are written out",
                "state intermediate values as numbers",
            )
            return None
        return quantity

    @property
    def parameter_names(self) -> Collection[str]:
        """Complete names of all named parameters."""
        return self._definitions.keys()

    def knows(self, name: str, cursor: Cursor) -> bool:
        """Return whether a named parameter, or the number of a leg, has this name."""
        is_counter = name == "i" and cursor.prefix in self._counters
        return is_counter or self._full_name(name, cursor.prefix) is not None

    def parameter(self, name: str, cursor: Cursor) -> Quantity | None:
        """Return the quantity of a named parameter, or None after noting that there is none."""
        return self._look_up(name, cursor)

    def _look_up(self, name: str, cursor: Cursor) -> Quantity | None:
        if name == "i" and cursor.prefix in self._counters:
            return Quantity(Constant(float(self._counters[cursor.prefix])), ONE)
        full = self._full_name(name, cursor.prefix)
        if full is not None:
            return self._quantities.get(full)
        if NOT_FINITE.fullmatch(name):
            cursor.problem(f"{name} is not a finite number", "write a finite value")
        elif name == "i":
            cursor.problem(
                "i counts the legs of a pattern, and this is not in one", "write a number"
            )
        else:
            hint = (
                "" if cursor.collector.is_full else nearest(name, self._definitions, cursor.prefix)
            )
            cursor.problem(
                f"unknown name {name}", hint or "define it under parameters, or check its spelling"
            )
        return None

    def _ingredients(self, content: Literal | Syntax, cursor: Cursor) -> str:
        """Return the names in an expression, each with its dimension and its line."""
        parts: list[str] = []
        for name in dict.fromkeys(names(content)) if not isinstance(content, Literal) else ():
            full = self._full_name(name, cursor.prefix)
            quantity = self._quantities.get(full) if full is not None else None
            if full is not None and quantity is not None:
                line = self._definitions[full].cursor.line
                parts.append(f"{name} is {named(quantity.dimension)} (line {line})")
        return "; " + ", ".join(parts) if parts else ""

    def _fits(
        self,
        quantity: Quantity,
        content: Literal | Syntax,
        wanted: tuple[Dimension, ...],
        cursor: Cursor,
    ) -> bool:
        if not wanted or any(map(quantity.fits, wanted)):
            return True
        number = content.number if isinstance(content, Literal) else None
        wrong = misfit(_written(cursor), quantity.dimension, wanted, number)
        says_all = (
            wanted[0].is_angular
            and quantity.dimension.matches(wanted[0])
            and not quantity.dimension.is_one
        )
        cursor.problem(
            wrong.what, wrong.remedy + ("" if says_all else self._ingredients(content, cursor))
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
            got = shown(value, quantity.dimension)
            must = f"must be {kind.sign}" if kind.sign != "not zero" else "must not be zero"
            is_mass = (
                quantity.dimension == kind.linear and cursor.leaf.endswith(".mass") and value == 0
            )
            # drive lines have no massless parts
            is_mass = is_mass and "inertias." not in cursor.leaf
            remedy = (
                "write massless for a part without mass"
                if is_mass
                else "correct the value or its sign"
            )
            cursor.problem(f"{must}, got {got}", remedy)
        return not is_wrong


def _refuse_bounds(cursor: Cursor, what: str, remedy: str) -> None:
    if isinstance(cursor.node, yaml_nodes.Mapping) and qualified(cursor).has("bounds"):
        cursor.problem(what, remedy, "bounds")


def content_of(cursor: Cursor) -> Literal | Syntax | None:
    """Return the literal or the syntax tree at a place of kind `Value`.

    None after noting what is wrong.
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
        return None  # an empty place is noted by the check of the form
    text = (scalar.text or "").strip()
    try:
        return literal(text)
    except UnitError as error:
        wrong: UnitError | ExpressionError = error
    # ``2 m - x`` looks like a unit at first
    if not NOT_FINITE.fullmatch(text) and len(text) <= MAX_CHARACTERS:
        try:
            return parse(text)
        except ExpressionError as error:
            if not LITERAL.fullmatch(text):
                wrong = error
    scalar.problem(wrong.what, wrong.remedy)
    return None


def _is_exact_zero(literal: Literal, cursor: Cursor) -> bool:
    """Return whether a named parameter is a bare ``0``.

    Such a zero is part of the structure. It fits any dimension and is not an independent parameter.
    """
    return (
        literal.number == 0.0
        and not literal.unit
        and not isinstance(cursor.node, yaml_nodes.Mapping)
    )


def _written(cursor: Cursor) -> str:
    node: yaml_nodes.Node | None = cursor.node
    if isinstance(node, yaml_nodes.Mapping):
        node = node.get("value")
    return repr(node.text.strip()) if isinstance(node, yaml_nodes.Scalar) else "the value"
