"""JSON Schema of machine files, generated from the grammar."""

from __future__ import annotations

from typing import Any

from tauloop.mechanism.description.cursor import (
    Choice,
    Either,
    Kind,
    ListOf,
    MapOf,
    Name,
    Reference,
    Shape,
    Text,
    Value,
    Whole,
)
from tauloop.mechanism.description.grammar import MACHINE, MACHINE_FORMAT, QUALIFIED
from tauloop.mechanism.description.structure import IDENTIFIER, MAX_NAME, REFERENCE, key_pattern

#: First line with which editors use the schema `SCHEMA_FILE` next to the machine file.
SCHEMA_FILE = "machine.schema.json"
EDITOR_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"

_VALUE, _LITERAL = "value", "number or text"


def json_schema(top: Shape = MACHINE, title: str = MACHINE_FORMAT) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of machine files, for editors and other tools.

    It describes the form. Extension keys document what only the reader can check: units
    (``x-unit``), signs (``x-bounds``), the kind of element that a name refers to (``x-names``) and
    the kind of name used as a key (``x-key``).

    Args:
        top: shape of the whole file; `tauloop.mechanism.description.drives.drive_file.DRIVE` for
            drive-line files.
        title: its format and version.
    """
    definitions: dict[str, Any] = {
        _LITERAL: {
            "type": ["number", "string"],
            "description": "number, literal with unit, or expression",
        }
    }
    qualified = _shape(QUALIFIED)
    qualified["properties"]["value"] |= _ref(_LITERAL)
    definitions[QUALIFIED.name] = qualified
    definitions[_VALUE] = {"anyOf": [_ref(_LITERAL), _ref(QUALIFIED.name)]}
    for shape in shapes(top):
        definitions[shape.name] = _shape(shape)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "$ref": f"#/$defs/{_anchor(top.name)}",
        "$defs": {_anchor(name): definition for name, definition in definitions.items()},
    }


def drive_schema() -> dict[str, Any]:
    """Return the JSON Schema of drive-line files."""
    from tauloop.mechanism.description.drives.drive_file import DRIVE, DRIVE_FORMAT

    return json_schema(DRIVE, DRIVE_FORMAT)


def shapes(kind: Kind) -> list[Shape]:
    """Return a shape and all shapes inside it, each once, in the order of the grammar."""
    by_name: dict[str, Shape] = {}

    def visit(kind: Kind) -> None:
        if isinstance(kind, Shape):
            if kind.name not in by_name:
                by_name[kind.name] = kind
                for field in kind.fields:
                    visit(field.kind)
        elif isinstance(kind, ListOf | MapOf):
            visit(kind.item)
        elif isinstance(kind, Either):
            for alternative in kind.kinds:
                visit(alternative)

    visit(kind)
    return list(by_name.values())


def _anchor(name: str) -> str:
    return name.replace(" ", "_")


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{_anchor(name)}"}


def _shape(shape: Shape) -> dict[str, Any]:
    alternatives = {"anyOf": [{"required": [key]} for key in shape.one_of]}
    return {
        "type": "object",
        "description": shape.doc,
        "properties": {
            field.name: _schema(field.kind) | {"description": field.doc} for field in shape.fields
        },
        "required": [field.name for field in shape.fields if field.required],
        "additionalProperties": False,
        **(alternatives if shape.one_of else {}),
    }


def _schema(kind: Kind) -> dict[str, Any]:
    if isinstance(kind, Value):
        units = [
            str(dimension) or "1"
            for dimension in (kind.linear, kind.angular)
            if dimension is not None
        ]
        extensions = {"x-unit": " or ".join(units), "x-bounds": kind.sign}
        return _ref(_VALUE) | {
            name: extension for name, extension in extensions.items() if extension
        }
    if isinstance(kind, Shape):
        return _ref(kind.name)
    if isinstance(kind, Either):
        return {"anyOf": [_schema(alternative) for alternative in kind.kinds]}
    if isinstance(kind, ListOf):
        return {"type": "array", "items": _schema(kind.item), **_number_of_items(kind)}
    if isinstance(kind, MapOf):
        return {
            "type": "object",
            "additionalProperties": _schema(kind.item),
            "propertyNames": {"pattern": f"^{key_pattern(kind.key).pattern}$"},
            "x-key": kind.key,
        }
    return _word(kind)


def _number_of_items(kind: ListOf) -> dict[str, int]:
    if kind.length is not None:
        return {"minItems": kind.length, "maxItems": kind.length}
    return {"minItems": 0 if kind.may_be_empty else 1}


def _word(kind: Text | Name | Reference | Choice | Whole) -> dict[str, Any]:
    if isinstance(kind, Choice):
        return {"enum": list(kind.options)}
    if isinstance(kind, Whole):
        return {"type": "integer", "minimum": kind.least, "maximum": kind.most}
    if isinstance(kind, Text):
        return {"type": ["string", "number"]}
    if isinstance(kind, Name):
        return {"type": "string", "pattern": f"^{IDENTIFIER.pattern}$", "maxLength": MAX_NAME}
    return {
        "type": "string",
        "pattern": f"^{REFERENCE.pattern}$",
        "maxLength": 2 * MAX_NAME,
        "x-names": kind.to,
    }
