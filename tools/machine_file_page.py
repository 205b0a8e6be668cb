"""``python tools/machine_file_page.py``: write the keys of docs/machine-file.md from the JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

from tauloop.mechanism import json_schema

MACHINE_FILE_PAGE = Path(__file__).parents[1] / "docs" / "machine-file.md"
#: Lines between which the generated part is.
START = "<!-- written by tools/machine_file_page.py: start -->\n"
END = "<!-- written by tools/machine_file_page.py: end -->\n"
SCHEMA = json_schema()
#: Definitions that mean a value of any kind.
VALUES = ("value", "number_or_text")
#: Definitions whose own text explains the short form that may replace them.
WITH_SHORT_FORM = ("body", "limits", "output", "placement")
#: What a description states of an absent key: "origin; zero if absent", "T_i; absent: no
#: integral part".
ABSENT = re.compile(r"[;.] (?:(?P<word>[^;.]+) if absent|absent: (?P<meaning>.+))$")
#: A definition refers to an earlier one where this replaces at least this number of words.
MIN_WORDS = 8


def name_of(node: dict[str, Any]) -> str:
    """Return the name of the definition that a node refers to."""
    return str(node.get("$ref", "")).rpartition("/")[2]


@cache
def order() -> list[str]:
    """Return definitions in the order of reading, each once; that of values with sources is the last."""
    listed: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, dict):
            name = name_of(node)
            if name and name not in (*listed, *VALUES):
                listed.append(name)
                visit(SCHEMA["$defs"][name])
        for child in children(node):
            visit(child)

    visit({"$ref": SCHEMA["$ref"]})
    return [*listed, "qualified_value"]


def children(node: Any) -> Iterable[Any]:
    """Return the nodes inside a node of the schema."""
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def article(word: str) -> str:
    """Return a word with its article."""
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def words(node: dict[str, Any]) -> str:
    """Return the type of a node in words."""
    if name := name_of(node):
        return (
            "value"
            if name in VALUES
            else f"[{name.replace('_', ' ')}](#{name.replace('_', '-').lower()})"
        )
    if "anyOf" in node:
        for choice in node["anyOf"]:
            if name_of(choice) in WITH_SHORT_FORM:
                return words(choice)
        return " or ".join(dict.fromkeys(words(kind) for kind in node["anyOf"]))
    if "enum" in node:
        return ", ".join(f"`{word}`" for word in node["enum"])
    if "items" in node:
        if "maxItems" in node.get("items", {}) and "maxItems" in node:
            return f"{node['maxItems']} x {node['items']['maxItems']} matrix"
        inside = words(node["items"])
        count = f"{node['maxItems']} " if "maxItems" in node else "list of "
        if inside in ("value", "text"):
            return f"{count}{inside}s"
        if "maxItems" in node and ", " in inside:
            return f"{count}entries, each {inside}"
        return f"{count}({inside})" if ", " in inside else f"{count}{inside}"
    if "additionalProperties" in node:
        return f"{node['x-key']}: {words(node['additionalProperties'])}"
    if node["type"] == "integer":
        return "whole number"
    if "pattern" in node:
        return f"name of {article(node['x-names'])}" if "x-names" in node else "new name"
    return "text"


def facts(node: Any, key: str) -> Iterator[str]:
    """Yield the entries of a node and of those inside it under a key, without definitions that it refers to."""
    if isinstance(node, dict):
        if key in node:
            yield str(node[key])
        if key == "x-bounds" and node.get("type") == "integer":
            yield f"{node['minimum']} to {node['maximum']}"
    for child in children(node):
        yield from facts(child, key)


def details(node: dict[str, Any]) -> str:
    """Return the kind of a key's value, its units and bounds, and the default."""
    kind = words(node)
    units = ", ".join(dict.fromkeys("–" if unit == "1" else unit for unit in facts(node, "x-unit")))
    units = units.replace(" or ", ", ")
    bounds = ", ".join(dict.fromkeys(facts(node, "x-bounds")))
    absent = ABSENT.search(str(node["description"]))
    default = (absent["word"] or absent["meaning"]) if absent else ""
    parts = [
        "" if kind == "value" else kind,
        "" if units == "–" else units,
        bounds,
        f"default: {default}" if default else "",
    ]
    return "; ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the page states of a key."""

    required: bool
    details: str
    meaning: str


@cache
def entries(name: str) -> dict[str, Entry]:
    """Return the entry of each key of a definition."""
    shape = SCHEMA["$defs"][name]
    return {
        key: Entry(
            required=key in shape["required"],
            details=details(node),
            meaning=ABSENT.sub("", str(node["description"])),
        )
        for key, node in shape["properties"].items()
    }


@cache
def references(name: str) -> dict[str, list[str]]:
    """Return the earlier definitions that a definition refers to, each with the keys it explains."""
    sources: dict[str, list[str]] = {}
    remaining = dict(entries(name))
    earlier = order()[: order().index(name)]
    while True:
        equal = {other: equal_keys(remaining, other) for other in earlier}
        best = max(earlier, key=lambda other: words_in(remaining, equal[other]), default="")
        if not best or words_in(remaining, equal[best]) < MIN_WORDS:
            return sources
        sources[best] = equal[best]
        remaining = {key: entry for key, entry in remaining.items() if key not in equal[best]}


def equal_keys(remaining: dict[str, Entry], other: str) -> list[str]:
    """Return the keys whose entries a definition explains itself, without a reference, alike."""
    referred = [key for keys in references(other).values() for key in keys]
    explained = {key: entry for key, entry in entries(other).items() if key not in referred}
    return [key for key, entry in remaining.items() if explained.get(key) == entry]


def words_in(remaining: dict[str, Entry], keys: list[str]) -> int:
    """Return the number of words of the explanations of these keys."""
    return sum(len(f"{remaining[key].details} {remaining[key].meaning}".split()) for key in keys)


def pattern_of(key: str, entry: Entry) -> Entry:
    """Return an entry with its key or its key's axis replaced, by which `rx` and `ry` are alike."""
    meaning = re.sub(rf"(?<![a-z]){key}(?![a-z])", "KEY", entry.meaning)
    if key[-1] in "xyz":
        meaning = re.sub(rf"(?<![a-z]){key[-1]}(?![a-z])", "AXIS", meaning)
    return replace(entry, meaning=meaning)


def shared_beginning(texts: list[list[str]]) -> int:
    """Return the number of words with which all texts begin."""
    same = (len(set(words_there)) == 1 for words_there in zip(*texts, strict=False))
    return sum(takewhile(bool, same))


def alternatives(meanings: list[str]) -> str:
    """Return meanings as one text, in which only the words that differ are listed.

    Examples:
        >>> alternatives(["mass at the start", "mass at the end"])
        'mass at the start or end'
    """
    if len(set(meanings)) == 1:
        return meanings[0]
    texts = [meaning.split() for meaning in meanings]
    before = shared_beginning(texts)
    after = shared_beginning([text[before:][::-1] for text in texts])
    end = len(texts[0]) - after
    differing = [" ".join(text[before : len(text) - after]) for text in texts]
    choice = f"{', '.join(differing[:-1])} or {differing[-1]}"
    return " ".join([*texts[0][:before], choice, *texts[0][end:]])


def listed(name: str, keys: Iterable[str]) -> str:
    """Return keys of a definition with commas between them, the required ones in bold."""
    return ", ".join(f"**`{key}`**" if entries(name)[key].required else f"`{key}`" for key in keys)


def repeats_key(key: str, entry: Entry) -> bool:
    """Return whether the meaning of a key is only the key itself in words."""
    return bool(entry.details) and entry.meaning.lower() == key.replace("_", " ")


def lines(name: str) -> Iterator[str]:
    """Return a line for each key; keys that differ in their names alone share one."""
    shared = [key for keys in references(name).values() for key in keys]
    remaining = {key: entry for key, entry in entries(name).items() if key not in shared}
    for _, group in groupby(remaining.items(), key=lambda item: pattern_of(*item)):
        items = list(group)
        entry = items[0][1]
        keys = listed(name, (key for key, _ in items))
        noted = f" ({entry.details})" if entry.details else ""
        meaning = f": {alternatives([member.meaning for _, member in items])}"
        yield f"- {keys}{noted}{'' if repeats_key(items[0][0], entry) else meaning}"
    for other, keys_of_other in references(name).items():
        title, anchor = other.replace("_", " "), other.replace("_", "-").lower()
        yield f"- {listed(name, keys_of_other)}: as in [{title}](#{anchor})"


def section(name: str) -> Iterator[str]:
    """Return the heading, the sentence and the keys of a definition."""
    title = name.replace("_", " ")
    yield f"\n### {title[0].upper()}{title[1:]}\n\n{SCHEMA['$defs'][name]['description']}\n"
    yield from lines(name)


def updated() -> str:
    """Return the text of the page, brought up to date."""
    before, rest = MACHINE_FILE_PAGE.read_text(encoding="utf-8").split(START)
    body = "\n".join(line for name in order() for line in section(name))
    return f"{before}{START}{body}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    MACHINE_FILE_PAGE.write_text(updated(), encoding="utf-8")
