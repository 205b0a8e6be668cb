"""``python tools/machine_file_page.py``: write the keys of docs/machine-file.md from the JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tauloop.mechanism import json_schema

PAGE = Path(__file__).parents[1] / "docs" / "machine-file.md"
#: Lines between which the tables stand.
START = "<!-- written by tools/machine_file_page.py: start -->\n"
END = "<!-- written by tools/machine_file_page.py: end -->\n"
SCHEMA = json_schema()
#: Definitions that stand for a value of any kind.
VALUES = ("value", "number_or_text")
#: What a description says of a key that is left out: "origin; zero if absent", "T_i; absent: no
#: integral part".
ABSENT = re.compile(r"[;.] (?:(?P<word>[^;.]+) if absent|absent: (?P<meaning>.+))$")
COLUMNS = ("key", "what stands there", "unit", "bounds", "if absent", "meaning")


def name_of(node: dict[str, Any]) -> str:
    """The definition that a node refers to."""
    return str(node.get("$ref", "")).rpartition("/")[2]


def order() -> list[str]:
    """Definitions as a reader meets them, each once; that of values with what is known about them comes last."""
    listed: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            name = name_of(node)
            if name and name not in (*listed, *VALUES):
                listed.append(name)
                visit(SCHEMA["$defs"][name])
        for child in (
            node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        ):
            visit(child)

    visit({"$ref": SCHEMA["$ref"]})
    return [*listed, "qualified_value"]


def article(word: str) -> str:
    """A word with its article."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def words(node: dict[str, Any]) -> str:
    """What stands at a node."""
    if name := name_of(node):
        return (
            "value"
            if name in VALUES
            else f"[{name.replace('_', ' ')}](#{name.replace('_', '-').lower()})"
        )
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(words(kind) for kind in node["anyOf"]))
    if "enum" in node:
        return ", ".join(f"`{word}`" for word in node["enum"])
    if "items" in node:
        inside = words(node["items"])
        return f"list of {node['maxItems']}: {inside}" if "maxItems" in node else f"list: {inside}"
    if "additionalProperties" in node:
        return f"{node['x-key']}: {words(node['additionalProperties'])}"
    if node["type"] == "integer":
        return "whole number"
    if "pattern" in node:
        return f"name of {article(node['x-names'])}" if "x-names" in node else "new name"
    return "text"


def facts(node: Any, key: str) -> Iterator[str]:
    """What a node and those inside it say under a key; a definition that it refers to speaks for itself."""
    if isinstance(node, dict):
        if key in node:
            yield str(node[key])
        if key == "x-bounds" and node.get("type") == "integer":
            yield f"{node['minimum']} to {node['maximum']}"
    for child in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from facts(child, key)


def row(key: str, node: dict[str, Any], required: bool) -> list[str]:
    """The cells of a key."""
    text = str(node["description"])
    absent = ABSENT.search(text)
    return [
        f"**`{key}`**" if required else f"`{key}`",
        words(node),
        " or ".join(dict.fromkeys("–" if unit == "1" else unit for unit in facts(node, "x-unit"))),
        ", ".join(dict.fromkeys(facts(node, "x-bounds"))),
        (absent["word"] or absent["meaning"]) if absent else "",
        ABSENT.sub("", text),
    ]


def section(name: str) -> Iterator[str]:
    """Heading, sentence and table of a definition, without columns that are empty."""
    shape = SCHEMA["$defs"][name]
    rows = [row(key, node, key in shape["required"]) for key, node in shape["properties"].items()]
    shown = [
        i
        for i, title in enumerate(COLUMNS)
        if title in ("key", "meaning") or any(cells[i] for cells in rows)
    ]
    title = name.replace("_", " ")
    yield f"\n### {title[0].upper()}{title[1:]}\n\n{shape['description']}\n"
    for cells in (list(COLUMNS), ["---"] * len(COLUMNS), *rows):
        yield f"| {' | '.join(cells[i] for i in shown)} |"


def updated() -> str:
    """The text of the page, brought up to date."""
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    body = "\n".join(line for name in order() for line in section(name))
    return f"{before}{START}{body}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(updated(), encoding="utf-8")
