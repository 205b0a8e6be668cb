"""Open and check YAML documents of any grammar, and convert them to plain data in SI units."""

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
    """A number in SI units and its dimension, for a key that permits any dimension."""

    value: float
    dimension: Dimension


def open_document(path: str | Path, shape: Shape) -> Cursor:
    """Return the root cursor of the document in a file (see `document`).

    Raises:
        DescriptionError: the file cannot be read or is not plain YAML.
    """
    path = Path(path)
    return document(parse_nodes(read_text(path), str(path)), str(path), shape, path.parent)


def contents(cursor: Cursor | None, values: ValueReader) -> Any:
    """Return the contents at a cursor as plain data.

    Mappings become dict, lists tuple, texts str, whole numbers int, and values float in SI units.

    A value whose dimension is not fixed becomes an `Amount`. Invalid contents are reported and
    become None.
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
        cursors = {field.name: cursor.get(field.name) for field in kind.fields}
        return {
            name: contents(field_cursor, values)
            for name, field_cursor in cursors.items()
            if field_cursor is not None
        }
    if isinstance(kind, MapOf):
        return {name: contents(field_cursor, values) for name, field_cursor in cursor.entries()}
    if isinstance(kind, ListOf):
        return tuple(contents(item, values) for item in cursor.items())
    text = cursor.text or ""
    if isinstance(kind, Whole):
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
    return text


def is_whole(value: Any) -> bool:
    """Return whether contents (see `contents`) were valid throughout."""
    if isinstance(value, dict):
        return all(map(is_whole, value.values()))
    if isinstance(value, tuple):
        return all(map(is_whole, value))
    return value is not None
