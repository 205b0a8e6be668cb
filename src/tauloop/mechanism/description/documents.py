"""YAML documents of every kind by one grammar: opened and checked, and their contents as plain data with SI numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tauloop.common.records import dataclass
from tauloop.mechanism.description.cursor import (
    Cursor,
    ListOf,
    MapOf,
    Shape,
    Value,
    Whole,
    accepts,
    chosen,
)
from tauloop.mechanism.description.structure import document
from tauloop.mechanism.description.units import Dimension
from tauloop.mechanism.description.values import ValueReader
from tauloop.mechanism.description.yaml_nodes import parse_nodes, read_text


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in SI units and its dimension, where the grammar leaves that open."""

    value: float
    dimension: Dimension


def open_document(path: str | Path, shape: Shape) -> Cursor:
    """As `document`, of a file.

    Raises:
        DescriptionError: the file cannot be read or is no plain YAML.
    """
    path = Path(path)
    return document(parse_nodes(read_text(path), str(path)), str(path), shape, path.parent)


def contents(cursor: Cursor | None, values: ValueReader) -> Any:
    """What stands at a place: dict of a mapping, tuple of a list, str of a text, int of a whole number, float in SI.

    An `Amount` stands for a value whose dimension is open. What is wrong, which is noted, is None.
    """
    if cursor is None or not accepts(cursor.kind, cursor.node):
        return None
    kind = chosen(cursor.kind, cursor.node)
    if isinstance(kind, Value):
        quantity = values.quantity(cursor)
        if quantity is None:
            return None
        value = values.nominal(quantity.expression)
        return value if kind.linear is not None else Amount(value, quantity.dimension)
    if isinstance(kind, Shape):
        places = {field.name: cursor.get(field.name) for field in kind.fields}
        return {
            name: contents(place, values) for name, place in places.items() if place is not None
        }
    if isinstance(kind, MapOf):
        return {name: contents(place, values) for name, place in cursor.entries()}
    if isinstance(kind, ListOf):
        return tuple(contents(item, values) for item in cursor.items())
    text = cursor.text or ""
    if isinstance(kind, Whole):
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    return text


def is_whole(value: Any) -> bool:
    """Whether contents hold nothing that was wrong."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return value is not None and all(map(is_whole, parts))
