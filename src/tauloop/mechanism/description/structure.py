"""Check of a machine file against the grammar, and the scopes of its legs and names.

All unknown, missing and misplaced keys and invalid words are reported. A leg is written once and
repeated; each repetition is a scope whose names have a prefix. Names must be unique.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from tauloop.common.counts import counted
from tauloop.common.names.deprecated import MACHINE_KEYS
from tauloop.common.records import dataclass
from tauloop.mechanism.description.cursor import (
    Choice,
    Collector,
    Cursor,
    Either,
    Field,
    Kind,
    ListOf,
    MapOf,
    Name,
    Reference,
    Shape,
    Text,
    Value,
    Whole,
    accepts,
    chosen,
)
from tauloop.mechanism.description.grammar import MAX_REPEAT, QUALIFIED
from tauloop.mechanism.description.parser import CONSTANTS
from tauloop.mechanism.description.peer_words import EXAMPLES, peer_word
from tauloop.mechanism.description.yaml_nodes import Mapping, MappingEntry, Node, Scalar, Sequence
from tauloop.mechanism.expression import FUNCTIONS
from tauloop.mechanism.model import BASE
from tauloop.mechanism.suggestions import a, listing, nearest, suggestion

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
REFERENCE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*", re.ASCII)
#: Name of a parameter. It can be dotted, and it can end with a list index, as the names of
#: independent parameters do (``gravity[2]``).
PARAMETER = re.compile(
    r"[A-Za-z][A-Za-z0-9_]*(\[\d+\])*(\.[A-Za-z][A-Za-z0-9_]*(\[\d+\])*)*",
    re.ASCII,
)
MAX_NAME = 64

#: Reserved names and their meaning, by the kind of name.
_RESERVED = {
    "parameter": {
        "i": "the number of a leg",
        **dict.fromkeys(CONSTANTS, "a constant"),
        **dict.fromkeys(FUNCTIONS, "a function"),
    },
}


def document(
    node: Node,
    file: str,
    shape: Shape,
    folder: Path | None = None,
    collector: Collector | None = None,
) -> Cursor:
    """Return the root cursor of a document after checking its form.

    Problems are added to its collector, which raises them.

    Args:
        node: contents of the file.
        file: name of the file, for messages.
        shape: grammar of the document.
        folder: folder of the files to which the document refers; None for a text without a file.
        collector: receives the problems; a new one if None.
    """
    collector = collector or Collector(file, folder)
    root = Cursor(node=node, kind=shape, where="", leaf="", prefix="", collector=collector)
    check_structure(root)
    return root


def check_structure(cursor: Cursor, alternative: str = "") -> None:
    """Report every node at or below a cursor whose form differs from its kind.

    Args:
        cursor: where to start.
        alternative: text about another key that permits another form, appended to the remedy.
    """
    kind = chosen(cursor.kind, cursor.node)
    if isinstance(cursor.node, Scalar) and not cursor.node.text and not cursor.node.is_quoted:
        cursor.problem(
            "the value after the colon is missing",
            f"write {describe(cursor.kind)}, or remove the key",
        )
    elif not accepts(cursor.kind, cursor.node):
        remedy = f"write {describe(cursor.kind)}{alternative or _example(cursor)}"
        cursor.problem(f"this is {_form(cursor)}", remedy)
    elif isinstance(kind, Value):
        if isinstance(cursor.node, Mapping):
            check_structure(qualified(cursor))
    elif isinstance(kind, Shape):
        _check_shape(cursor, kind)
    elif isinstance(kind, ListOf):
        _check_list(cursor, kind)
    elif isinstance(kind, MapOf):
        if not kind.may_be_empty and not list(cursor.entries()):
            cursor.problem("the mapping is empty", f"write {describe(kind)}")
        for name, child in cursor.entries():
            if not kind.is_known:
                check_name(child, name, kind.key, key_pattern(kind.key))
            check_structure(child)
    else:
        _check_word(cursor, kind)


def qualified(cursor: Cursor) -> Cursor:
    """Return the cursor with the form of a qualified value."""
    return replace(cursor, kind=QUALIFIED)


def _check_shape(cursor: Cursor, shape: Shape) -> None:
    """Report unknown, outdated and missing keys of a mapping, and check its values."""
    known = [field.name for field in shape.fields]
    if isinstance(cursor.node, Mapping):
        for entry in cursor.node.entries:
            new_key = MACHINE_KEYS.get(entry.key)
            if entry.key in known:
                continue
            where = f"{cursor.where}.{entry.key}" if cursor.where else entry.key
            if new_key is None or new_key not in known:
                remedy = _remedy(cursor, entry, known)
                cursor.collector.add(where, entry.line, f"unknown key in {a(shape.name)}", remedy)
            elif cursor.node.get(new_key) is None:
                cursor.collector.note_old_key(entry.key, new_key, entry.line)
            else:
                what = f"is the old name of {new_key}, which is given too"
                cursor.collector.add(where, entry.line, what, f"give {new_key} only")
    lacks_all = bool(shape.one_of) and not any(cursor.has(key) for key in shape.one_of)
    for field in shape.fields:
        child = cursor.get(field.name)
        if child is not None:
            check_structure(child, _alternative(shape, field))
        elif field.required or (lacks_all and field.name == shape.one_of[0]):
            where = f"{cursor.where}.{field.name}" if cursor.where else field.name
            cursor.collector.add(
                where,
                cursor.line,
                f"this key of {a(shape.name)} is missing",
                f"add {field.name}: {_explanation(field)}",
            )


def _explanation(field: Field) -> str:
    """Return the remedy for a missing key: its only value, or its meaning and an example."""
    if isinstance(field.kind, Choice) and len(field.kind.options) == 1:
        return listing(field.kind.options)
    example = EXAMPLES.get(field.name)
    return field.doc if example is None else f"{field.doc}, such as `{field.name}: {example}`"


def _example(cursor: Cursor) -> str:
    """Return an example for a value of the wrong form; empty if there is none."""
    if cursor.leaf in EXAMPLES:
        return f", such as `{cursor.leaf}: {EXAMPLES[cursor.leaf]}`"
    kind, text = chosen(cursor.kind, cursor.node), cursor.text or ""
    is_one_of_a_list = isinstance(kind, ListOf) and kind.length is None
    return f", such as [{text}]" if is_one_of_a_list and REFERENCE.fullmatch(text) else ""


def _alternative(shape: Shape, field: Field) -> str:
    """Return advice on the key for several names instead of one, or vice versa; empty if none."""
    for other in shape.fields:
        if isinstance(field.kind, Reference) and isinstance(other.kind, MapOf):
            if field.kind.to == other.kind.key:
                return f"; several go under {other.name}: {{NAME: value, ...}}"
        elif isinstance(field.kind, MapOf) and isinstance(other.kind, Reference):
            if field.kind.key == other.kind.to:
                return f": {field.name}: {{NAME: value, ...}}; or write one name under {other.name}"
    return ""


def _remedy(cursor: Cursor, entry: MappingEntry, known: list[str]) -> str:
    """Return the remedy for an unknown key."""
    if " " in entry.key:
        return "inside {...} a comma ends a text: put texts that contain commas in quotes"
    hint = peer_word(entry.key, known)
    if not hint and not cursor.collector.is_full:
        hint = suggestion(entry.key, known)
    return hint or f"known keys are {listing(known, 20)}"


def _check_list(cursor: Cursor, kind: ListOf) -> None:
    """Report a list of wrong length, and check its items."""
    items = cursor.items()
    if kind.length is not None and len(items) != kind.length:
        number = counted(len(items), "item")
        cursor.problem(f"the list has {number}, not {kind.length}", f"write {describe(kind)}")
    elif not items and not kind.may_be_empty:
        cursor.problem("the list is empty", f"write {describe(kind)}, or remove the key")
    for item in items:
        check_structure(item)


def _check_word(cursor: Cursor, kind: Kind) -> None:
    """Report a word or number that its kind does not permit."""
    text = cursor.text or ""
    if isinstance(kind, Choice) and text not in kind.options:
        cursor.problem(
            f"{text!r} is not a valid value",
            peer_word(text, kind.options)
            or suggestion(text, kind.options)
            or f"write {describe(kind)}{_vector(text)}",
        )
    elif isinstance(kind, Text) and kind.is_needed and not text:
        cursor.problem("the text is empty", "write a text, or remove the key")
    elif isinstance(kind, Name):
        check_name(cursor, text, "name", IDENTIFIER)
    elif isinstance(kind, Reference) and not REFERENCE.fullmatch(text):
        cursor.problem(f"{text!r} is not a valid name", f"write the name of {a(kind.to)}")
    elif isinstance(kind, Whole) and not (
        re.fullmatch(r"\d{1,9}", text, re.ASCII) and kind.least <= int(text) <= kind.most
    ):
        cursor.problem(f"{text!r} is out of range", f"write {describe(kind)}")


def _vector(text: str) -> str:
    """Return advice to write three numbers as a list; empty for another text."""
    words = text.replace(",", " ").split()
    is_vector = len(words) == 3 and all(re.fullmatch(r"-?\d*\.?\d+", word) for word in words)
    return f"; a vector is a list, [{', '.join(words)}]" if is_vector else ""


def key_pattern(kind: str) -> re.Pattern[str]:
    """Return the pattern of the names in a mapping; they may be dotted (``leg1.arm``)."""
    return PARAMETER if kind == "parameter" else REFERENCE


def check_name(cursor: Cursor, name: str, kind: str, pattern: re.Pattern[str]) -> None:
    """Report a new name that is invalid or reserved."""
    if not pattern.fullmatch(name) or max(map(len, name.split("."))) > MAX_NAME:
        dots = "no dots" if pattern is IDENTIFIER else "and dots only between such names"
        cursor.problem(
            f"{name[:MAX_NAME]!r} is not a valid name",
            f"use letters, digits and _, start with a letter, at most {MAX_NAME} characters, {dots}",
        )
    elif name == BASE:
        cursor.problem(f"the name {BASE} is reserved for the immovable body", "choose another name")
    elif name in _RESERVED.get(kind, {}):
        cursor.problem(
            f"the name {name} is reserved: it is {_RESERVED[kind][name]}", "choose another name"
        )


def _form(cursor: Cursor) -> str:
    """Return a description of the form of a node, for messages."""
    if isinstance(cursor.node, Sequence):
        return "a list"
    if isinstance(cursor.node, Mapping):
        return "a mapping"
    return f"the text {cursor.node.text[:40]!r}"


def describe(kind: Kind) -> str:
    """Return a description of the form that a kind permits, for messages."""
    if isinstance(kind, Either):
        return " or ".join(describe(alternative) for alternative in kind.kinds)
    if isinstance(kind, Value):
        return (
            "a number with its unit, or an expression" if kind.is_plain else "a value with its unit"
        )
    if isinstance(kind, Choice):
        options = listing(kind.options, 20)
        return f"one of {options}" if len(kind.options) > 1 else options
    if isinstance(kind, Whole):
        return f"a whole number from {kind.least} to {kind.most}"
    if isinstance(kind, Reference):
        return f"the name of {a(kind.to)}"
    if isinstance(kind, ListOf):
        return f"a list of {kind.length} items" if kind.length is not None else "a list"
    if isinstance(kind, MapOf):
        return "a mapping from names" if kind.key == "name" else f"a mapping from {kind.key} names"
    if isinstance(kind, Shape):
        return (
            f"{a(kind.name)}: a mapping with {listing([field.name for field in kind.fields], 20)}"
        )
    return "text" if isinstance(kind, Text) else "a name"


#: Maximum numbers of legs, named parameters and elements, counting each repeated leg.
MAX_LEGS = 1000
MAX_PARAMETERS = 20_000
MAX_ELEMENTS = 5000
#: Sections that contain elements, and the noun for one element.
SECTIONS = {
    "frames": "frame",
    "bodies": "body",
    "joints": "joint",
    "rods": "rod",
    "couplings": "coupling",
    "actuators": "actuator",
    "losses": "loss",
    "outputs": "output",
    "visual": "visual",
    "materials": "material",
    "structures": "structure",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of the file whose names share a prefix: the top level or one leg.

    Attributes:
        prefix: empty at the top level, ``leg1.`` in a leg.
        cursor: the mapping with its sections.
        number: number of the leg, from 1; 0 at the top level.
    """

    prefix: str
    cursor: Cursor
    number: int = 0

    def elements(self, section: str) -> Iterator[tuple[str, Cursor]]:
        """Yield the full name and the cursor of every element of a section.

        The name also prefixes the names of its independent parameters.
        """
        for name, cursor in self.cursor.entries_of(section):
            full_name = self.prefix + name
            yield full_name, replace(cursor, leaf=full_name)

    def parameters(self) -> Iterator[tuple[str, Cursor]]:
        """Yield the full name and cursor of every named parameter, including those of `each`."""
        for full, values in self.elements("each"):
            items = values.items()
            if items:  # `scopes` reports lists that are too short
                yield full, replace(items[min(self.number, len(items)) - 1], leaf=full)
        yield from self.elements("parameters")


def scopes(machine: Cursor) -> list[Scope]:
    """Return the top level and all legs in the order of the file; report lists of wrong length."""
    result = [Scope("", machine)]
    for leg in machine.items_of("legs"):
        name, repeat = leg.word("name"), leg.word("repeat") or ""
        number = int(repeat) if repeat.isdecimal() and len(repeat) < 4 else 0
        if name is None or not 1 <= number <= MAX_REPEAT:
            continue
        for _, values in leg.entries_of("each"):
            count, remedy = len(values.items()), "write one value for each leg, or change repeat"
            if count > MAX_REPEAT:
                raise values.refused(f"{count} values for {counted(number, 'leg')}", remedy)
            if count and count != number:
                what = f"{counted(count, 'value')} for {counted(number, 'leg')}"
                values.problem(what, remedy)
        if len(result) + number > MAX_LEGS:
            raise leg.refused(
                f"there are more than {MAX_LEGS} legs, counting each repetition", "reduce repeat"
            )
        for leg_number in range(1, number + 1):
            prefix = f"{name}{leg_number}."
            result.append(Scope(prefix, replace(leg, leaf=prefix[:-1], prefix=prefix), leg_number))
    _check_counts(result)
    return result


def _check_counts(all_scopes: list[Scope]) -> None:
    """Reject a file with too many parameters or elements after repeating its legs.

    Raises:
        DescriptionError: there are more than `MAX_PARAMETERS` or `MAX_ELEMENTS`.
    """
    parameters = elements = 0
    counts: dict[int, tuple[int, int]] = {}  # repetitions of a leg share their node
    for scope in all_scopes:
        node_id = id(scope.cursor.node)
        if node_id not in counts:
            element_count = sum(len(list(scope.elements(section))) for section in SECTIONS)
            counts[node_id] = (len(list(scope.parameters())), element_count)
        parameters, elements = parameters + counts[node_id][0], elements + counts[node_id][1]
        for what, count, limit in (
            ("parameters", parameters, MAX_PARAMETERS),
            ("elements", elements, MAX_ELEMENTS),
        ):
            if count > limit:
                message = f"there are more than {limit} {what}, counting each repeated leg"
                raise scope.cursor.refused(
                    message, "describe only the machine; machines have tens of bodies and joints"
                )


@dataclass(slots=True)
class Names:
    """All elements by full name; elements of all kinds share one set of names."""

    _kinds: dict[str, str] = dataclasses.field(default_factory=dict)
    _lines: dict[str, int] = dataclasses.field(default_factory=dict)

    def add(self, name: str, kind: str, cursor: Cursor) -> None:
        """Add a name; report a name that is already used."""
        if name in self._kinds:
            cursor.problem(
                f"the name {name} is already used by a {self._kinds[name]} in line {self._lines[name]}",
                "choose another name; no two elements may have the same name",
            )
        else:
            self._kinds[name], self._lines[name] = kind, cursor.line

    def kind(self, name: str) -> str | None:
        """Return the kind of the element with a full name; None if there is none."""
        return "body" if name == BASE else self._kinds.get(name)

    def find(self, cursor: Cursor | None, kinds: Iterable[str]) -> str | None:
        """Return the full name of the element to which a cursor refers, or None if invalid.

        The name is looked up in the leg first, then at the top level.

        Args:
            cursor: position of the name.
            kinds: permitted kinds of element; other kinds and unknown names are reported.
        """
        word = cursor.text if cursor is not None else None
        if cursor is None or not word:
            return None
        return self.find_word(word, cursor, kinds)

    def find_word(self, word: str, cursor: Cursor, kinds: Iterable[str]) -> str | None:
        """Return the full name of the element with a name in the scope of a cursor (see `find`)."""
        kinds = tuple(kinds)
        candidates = [name for name in (cursor.prefix + word, word) if self.kind(name) is not None]
        match = next((name for name in candidates if self.kind(name) in kinds), None)
        if match is not None:
            return match
        expected = " or ".join(kinds)
        if candidates:
            cursor.problem(
                f"{word} is a {self.kind(candidates[0])}, not a {expected}", f"name a {expected}"
            )
        else:
            note_unknown(
                cursor, word, expected, [name for name in self._kinds if self._kinds[name] in kinds]
            )
        return None


def note_unknown(cursor: Cursor, word: str, kind: str, known: Iterable[str]) -> None:
    """Report an unknown name, with suggestions."""
    names = [*known, BASE] if "body" in kind else [*known]
    hint = peer_word(word, names)
    if not hint and not cursor.collector.is_full:
        hint = nearest(word, names, cursor.prefix)
    cursor.problem(
        f"there is no {kind} named {word}", hint or f"define it, or use an existing {kind}"
    )
