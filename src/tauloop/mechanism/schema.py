"""JSON Schema and reference page of machine files, made from the grammar."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tauloop.mechanism.cursor import Choice, Either, Kind, ListOf, MapOf, Name, Reference, Shape, Text, Value, Whole
from tauloop.mechanism.grammar import FORMAT, MACHINE, QUALIFIED
from tauloop.mechanism.structure import IDENTIFIER, MAX_NAME, REFERENCE, key_pattern
from tauloop.mechanism.suggestions import a

#: Lines between which `update_reference` writes.
START, END = "<!-- generated from grammar.py: start -->", "<!-- generated from grammar.py: end -->"

#: By this line editors find the schema of machine files: that of `SCHEMA_FILE`, beside the machine.
SCHEMA_FILE = "machine.schema.json"
EDITOR_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"

_VALUE, _LITERAL = "value", "number or text"


def json_schema(top: Shape = MACHINE, title: str = FORMAT) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of machine files, for editors and other tools.

    It describes the form. What only the reader can tell (units, names that refer to something, physical sense) is in
    the descriptions.

    Args:
        top: the shape of a whole file; `tauloop.mechanism.drive_file.DRIVE` for drive-line files.
        title: its format and version.
    """
    definitions: dict[str, Any] = {
        _LITERAL: {"type": ["number", "string"], "description": "number, literal with unit, or expression"}
    }
    qualified = _shape(QUALIFIED)
    definitions[QUALIFIED.name] = qualified | {"properties": qualified["properties"] | {"value": _ref(_LITERAL)}}
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
    """The same of drive-line files."""
    from tauloop.mechanism.drive_file import DRIVE, FORMAT

    return json_schema(DRIVE, FORMAT)


def shapes(kind: Kind) -> list[Shape]:
    """A shape and all shapes inside it, each once, in the order in which a reader meets them."""
    listed: dict[str, Shape] = {}

    def visit(kind: Kind) -> None:
        if isinstance(kind, Shape):
            if kind.name not in listed:
                listed[kind.name] = kind
                for field in kind.fields:
                    visit(field.kind)
        elif isinstance(kind, ListOf | MapOf):
            visit(kind.item)
        elif isinstance(kind, Either):
            for alternative in kind.kinds:
                visit(alternative)

    visit(kind)
    return list(listed.values())


def _anchor(name: str) -> str:
    return name.replace(" ", "_")


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{_anchor(name)}"}


def _shape(shape: Shape) -> dict[str, Any]:
    return {
        "type": "object",
        "description": shape.doc,
        "properties": {field.name: _schema(field.kind) | {"description": field.doc} for field in shape.fields},
        "required": [field.name for field in shape.fields if field.required],
        "additionalProperties": False,
    }


def _schema(kind: Kind) -> dict[str, Any]:
    if isinstance(kind, Value):
        return _ref(_VALUE)
    if isinstance(kind, Shape):
        return _ref(kind.name)
    if isinstance(kind, Either):
        return {"anyOf": [_schema(alternative) for alternative in kind.kinds]}
    if isinstance(kind, ListOf):
        least = kind.length if kind.length is not None else 0 if kind.may_be_empty else 1
        most = {"maxItems": kind.length} if kind.length is not None else {}
        return {"type": "array", "items": _schema(kind.item), "minItems": least, **most}
    if isinstance(kind, MapOf):
        return {
            "type": "object",
            "additionalProperties": _schema(kind.item),
            "propertyNames": {"pattern": f"^{key_pattern(kind.key).pattern}$"},
        }
    return _word(kind)


def _word(kind: Text | Name | Reference | Choice | Whole) -> dict[str, Any]:
    if isinstance(kind, Choice):
        return {"enum": list(kind.options)}
    if isinstance(kind, Whole):
        return {"type": "integer", "minimum": kind.least, "maximum": kind.most}
    if isinstance(kind, Text):
        return {"type": ["string", "number"]}
    pattern = IDENTIFIER if isinstance(kind, Name) else REFERENCE
    return {"type": "string", "pattern": f"^{pattern.pattern}$", "maxLength": MAX_NAME * (1 + (pattern is REFERENCE))}


def reference() -> str:
    """Reference of every mapping and key in a machine file, as Markdown."""
    return "\n".join(line for shape in [*shapes(MACHINE), QUALIFIED] for line in _section(shape))


def update_reference(page: Path) -> str:
    """Text of a page with the reference between `START` and `END` brought up to date.

    Raises:
        ValueError: one of the two lines is missing.
    """
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(START)
    _, after = rest.split(END)
    return f"{before}{START}\n\n{reference()}\n{END}{after}"


def write_reference(page: str | Path) -> None:
    """Bring the reference on a page up to date."""
    Path(page).write_text(update_reference(Path(page)), encoding="utf-8")


def _section(shape: Shape) -> Iterator[str]:
    yield f"### {shape.name[0].upper()}{shape.name[1:]}"
    yield ""
    yield shape.doc
    yield ""
    yield "| key | what stands there | meaning |"
    yield "|---|---|---|"
    for field in shape.fields:
        name = f"**`{field.name}`**" if field.required else f"`{field.name}`"
        yield f"| {name} | {_words(field.kind)} | {field.doc} |"
    yield ""


def _words(kind: Kind) -> str:
    if isinstance(kind, Value):
        return _value_words(kind)
    if isinstance(kind, Shape):
        return f"[{kind.name}](#{kind.name.lower().replace(' ', '-')})"
    if isinstance(kind, Either):
        return " or ".join(_words(alternative) for alternative in kind.kinds)
    if isinstance(kind, ListOf):
        item = f"({_words(kind.item)})" if isinstance(kind.item, Either) else _words(kind.item)
        return f"list: {kind.length} × {item}" if kind.length is not None else f"list: {item}"
    if isinstance(kind, MapOf):
        return f"{kind.key}: {_words(kind.item)}"
    if isinstance(kind, Choice):
        return ", ".join(f"`{option}`" for option in kind.options)
    if isinstance(kind, Whole):
        return f"whole number, {kind.least} to {kind.most}"
    if isinstance(kind, Reference):
        return f"name of {a(kind.to)}"
    return "text" if isinstance(kind, Text) else "new name"


def _value_words(kind: Value) -> str:
    units = [str(dimension) or "number" for dimension in (kind.linear, kind.angular) if dimension is not None]
    words = " or ".join(units) or "value"
    return words + (f", {kind.sign}" if kind.sign else "")
