"""Values in a side file: literals with units and where they come from; what is wrong goes to a list of problems."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tauloop.errors import Problems
from tauloop.mechanism import yaml_nodes
from tauloop.mechanism.expression import ZERO, Expression, Leaf
from tauloop.mechanism.model import STATUSES, Parameter
from tauloop.mechanism.suggestions import listing, suggestion
from tauloop.mechanism.units import Dimension, Unit, UnitError, named, parse_unit

_NUMBER = re.compile(r"(?P<number>[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?)(\s+(?P<unit>\S.*))?")
_VALUE_KEYS = ("value", "status", "source", "bounds", "note")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How well a value is founded and where it comes from."""

    status: str = "chosen"
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A literal: its value in SI, its unit as written, its bounds in SI, and its origin.

    `is_mapping` tells whether it was written as ``{value: ...}``.
    """

    value: float
    unit: Unit
    lower: float
    upper: float
    origin: Origin
    is_mapping: bool


class SideValues:
    """Reads nodes; makes leaf parameters; collects problems."""

    def __init__(self, file: str) -> None:
        """Start without parameters and problems.

        Args:
            file: name of the file, for messages.
        """
        self.file = file
        self.problems = Problems()
        self.parameters: list[Parameter] = []

    def problem(self, node: yaml_nodes.Node | yaml_nodes.Entry, where: str, what: str, remedy: str = "") -> None:
        """Note a problem at a node."""
        self.problems.add(where, what, remedy, file=self.file, line=node.line)

    def fields(
        self, node: yaml_nodes.Node | None, where: str, known: Iterable[str], origin: Origin
    ) -> tuple[dict[str, yaml_nodes.Node], Origin]:
        """Nodes behind the known keys of a mapping, and the origin of its values (its own ``provenance`` wins)."""
        if node is None:
            return {}, origin
        if not isinstance(node, yaml_nodes.Mapping):
            self.problem(node, where, "must be a mapping", "write `key: value` lines")
            return {}, origin
        known = tuple(known)
        found = {}
        for entry in node.entries:
            path = f"{where}.{entry.key}" if where else entry.key
            if entry.key == "provenance":
                origin = self._origin(entry.value, path, origin)
            elif entry.key in known:
                found[entry.key] = entry.value
            else:
                remedy = suggestion(entry.key, known) or f"known here: {listing(known) or 'nothing'}"
                self.problem(entry, path, "unknown key", remedy)
        return found, origin

    def text(self, node: yaml_nodes.Node, where: str) -> str:
        """A piece of text; empty when it is none."""
        if isinstance(node, yaml_nodes.Scalar) and node.text:
            return node.text
        self.problem(node, where, "must be a text", "write a name or a value")
        return ""

    def items(self, node: yaml_nodes.Node, where: str, count: int | None = None) -> tuple[yaml_nodes.Node, ...]:
        """Nodes of a list, of a given length; empty when it is none."""
        if isinstance(node, yaml_nodes.Sequence) and count in (None, len(node.items)):
            return node.items
        wanted = "a list" if count is None else f"a list of {count}"
        self.problem(node, where, f"must be {wanted}", "write [a, b, c]")
        return ()

    def quantity(
        self, node: yaml_nodes.Node, where: str, allowed: Sequence[Dimension], origin: Origin
    ) -> Quantity | None:
        """A literal ``NUMBER UNIT``, alone or as ``{value, status, source, bounds, note}``.

        Args:
            node: the node.
            where: its key path.
            allowed: dimensions it may have; an exact zero may have no unit.
            origin: of values that do not say their own.

        Returns:
            The literal; None when it is wrong.
        """
        lower, upper = -math.inf, math.inf
        is_mapping = isinstance(node, yaml_nodes.Mapping)
        if is_mapping:
            found, _ = self.fields(node, where, _VALUE_KEYS, origin)
            origin = self._origin_of(found, where, origin)
            if "value" not in found:
                self.problem(node, where, "has no value", "add `value: NUMBER UNIT`")
                return None
            if "bounds" in found:
                lower, upper = self._bounds(found["bounds"], f"{where}.bounds", allowed)
            node = found["value"]
        literal = self._literal(node, where, allowed)
        if literal is None:
            return None
        value, unit = literal
        if not lower <= value <= upper:
            self.problem(node, where, f"{value:g} is outside its bounds, {lower:g} to {upper:g}", "correct one of them")
        return Quantity(value=value, unit=unit, lower=lower, upper=upper, origin=origin, is_mapping=is_mapping)

    def leaf(self, name: str, quantity: Quantity, group: str) -> Expression:
        """A leaf parameter, zero or not."""
        self.parameters.append(
            Parameter(
                name=name,
                value=quantity.value,
                unit=quantity.unit.text,
                scale=quantity.unit.scale,
                lower=quantity.lower,
                upper=quantity.upper,
                group=group,
                status=quantity.origin.status,
                source=quantity.origin.source,
            )
        )
        return Leaf(name)

    def structural(self, name: str, quantity: Quantity, group: str) -> Expression:
        """A leaf parameter; an exact zero is part of the structure, unless it is written as ``{value: 0}``."""
        return self.leaf(name, quantity, group) if quantity.value != 0.0 or quantity.is_mapping else ZERO

    def _literal(self, node: yaml_nodes.Node, where: str, allowed: Sequence[Dimension]) -> tuple[float, Unit] | None:
        text = self.text(node, where)
        if not text:
            return None
        wanted = " or ".join(named(dimension) for dimension in allowed)
        match = _NUMBER.fullmatch(text.strip())
        if match is None or not math.isfinite(float(match["number"])):
            self.problem(node, where, f"{text!r} is not a finite number with a unit", f"write {wanted}")
            return None
        number = float(match["number"])
        if match["unit"] is None:
            if number == 0.0 or any(dimension.is_one for dimension in allowed):
                unit = str(allowed[0])
                return number, Unit(text=unit, scale=1.0, dimension=allowed[0])
            self.problem(node, where, f"{text} has no unit", f"it must be {wanted}")
            return None
        try:
            unit_read = parse_unit(match["unit"])
        except UnitError as error:
            self.problem(node, where, error.what, error.remedy)
            return None
        if unit_read.dimension not in allowed:
            self.problem(node, where, f"{text!r} is {named(unit_read.dimension)}", f"it must be {wanted}")
            return None
        return number * unit_read.scale, unit_read

    def _bounds(self, node: yaml_nodes.Node, where: str, allowed: Sequence[Dimension]) -> tuple[float, float]:
        ends = [self._literal(item, f"{where}[{k}]", allowed) for k, item in enumerate(self.items(node, where, 2))]
        if len(ends) != 2 or ends[0] is None or ends[1] is None:
            return -math.inf, math.inf
        if ends[0][0] > ends[1][0]:
            self.problem(node, where, f"{ends[0][0]:g} is above {ends[1][0]:g}", "write the lower bound first")
            return -math.inf, math.inf
        return ends[0][0], ends[1][0]

    def _origin(self, node: yaml_nodes.Node, where: str, origin: Origin) -> Origin:
        found, _ = self.fields(node, where, ("status", "source"), origin)
        return self._origin_of(found, where, origin)

    def _origin_of(self, found: dict[str, yaml_nodes.Node], where: str, origin: Origin) -> Origin:
        status, source = origin.status, origin.source
        if "status" in found:
            status = self.text(found["status"], f"{where}.status")
            if status and status not in STATUSES:
                remedy = suggestion(status, STATUSES) or f"use one of {', '.join(STATUSES)}"
                self.problem(found["status"], f"{where}.status", f"{status!r} is not a status", remedy)
        if "source" in found:
            source = self.text(found["source"], f"{where}.source")
        return Origin(status=status, source=source)


def unlimited(quantity: Quantity | None) -> float:
    """Value of a limit; infinite where there is none."""
    return np.inf if quantity is None else quantity.value
