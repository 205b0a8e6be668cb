"""Legs written once and repeated: a machine file as a list of scopes, each with its prefix of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from tauloop.mechanism.cursor import Cursor
from tauloop.mechanism.grammar import MAX_REPEAT
from tauloop.mechanism.model import BASE
from tauloop.mechanism.suggestions import nearest
from tauloop.records import dataclass

#: Most legs, named parameters, and elements of all kinds, with all repeats written out.
MAX_LEGS, MAX_PARAMETERS, MAX_ELEMENTS = 1000, 20_000, 5000
#: Sections with elements, and what one element of each is called.
SECTIONS = {
    "frames": "frame",
    "bodies": "body",
    "joints": "joint",
    "rods": "rod",
    "couplings": "coupling",
    "actuators": "actuator",
    "losses": "loss",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of the file whose names share a prefix: the top, or one leg.

    Attributes:
        prefix: empty at the top, ``leg1.`` in a leg.
        cursor: where its sections stand.
        number: number of the leg, from 1; 0 at the top.
    """

    prefix: str
    cursor: Cursor
    number: int = 0

    def elements(self, section: str) -> Iterator[tuple[str, Cursor]]:
        """Complete name and place of every element of a section; its name also starts those of its leaves."""
        inside = self.cursor.get(section)
        for name, cursor in inside.entries() if inside is not None else ():
            full = self.prefix + name
            yield full, replace(cursor, leaf=full)

    def parameters(self) -> Iterator[tuple[str, Cursor]]:
        """Complete name and place of every named parameter, those of `each` included."""
        for full, values in self.elements("each"):
            items = values.items()
            if items:  # a list that is too short is noted once, in `scopes`
                yield full, replace(items[min(self.number, len(items)) - 1], leaf=full)
        yield from self.elements("parameters")


def scopes(machine: Cursor) -> list[Scope]:
    """The top and all legs, in the order of the file; lists of the wrong length are noted."""
    found = [Scope("", machine)]
    legs = machine.get("legs")
    for leg in legs.items() if legs is not None else ():
        name, repeat = leg.word("name"), leg.word("repeat") or ""
        number = int(repeat) if repeat.isdecimal() and len(repeat) < 4 else 0
        if name is None or not 1 <= number <= MAX_REPEAT:
            continue
        each = leg.get("each")
        for _, values in each.entries() if each is not None else ():
            count, remedy = len(values.items()), "write one value for each leg, or change repeat"
            if count > MAX_REPEAT:
                raise values.refused(f"{count} values for {number} legs", remedy)
            if count and count != number:
                values.problem(f"{count} value{'s' * (count != 1)} for {number} legs", remedy)
        if len(found) + number > MAX_LEGS:
            raise leg.refused(f"there are more than {MAX_LEGS} legs with all repeats", "repeat less")
        for i in range(1, number + 1):
            prefix = f"{name}{i}."
            found.append(Scope(prefix, replace(leg, leaf=prefix[:-1], prefix=prefix), i))
    _check_counts(found)
    return found


def _check_counts(parts: list[Scope]) -> None:
    """Refuse what grows beyond any machine when its legs are repeated.

    Raises:
        DescriptionError: how much there is.
    """
    parameters = elements = 0
    sizes: dict[int, tuple[int, int]] = {}  # the repeats of a leg share their node
    for part in parts:
        place = id(part.cursor.node)
        if place not in sizes:
            kinds = sum(len(list(part.elements(section))) for section in SECTIONS)
            sizes[place] = (len(list(part.parameters())), kinds)
        parameters, elements = parameters + sizes[place][0], elements + sizes[place][1]
        for what, count, most in (("parameters", parameters, MAX_PARAMETERS), ("elements", elements, MAX_ELEMENTS)):
            if count > most:
                more = f"there are more than {most} {what} with all repeats"
                raise part.cursor.refused(more, "describe the machine alone; machines have tens of bodies and joints")


@dataclass(slots=True)
class Names:
    """All elements by their complete names; each name once, whatever it names."""

    _kinds: dict[str, str] = field(default_factory=dict)
    _lines: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, kind: str, cursor: Cursor) -> None:
        """Take up a name; one that is taken already is noted."""
        if name in self._kinds:
            cursor.problem(
                f"the name {name} is taken: it is a {self._kinds[name]} in line {self._lines[name]}",
                "choose another name; elements of all kinds share their names",
            )
        else:
            self._kinds[name], self._lines[name] = kind, cursor.line

    def kind(self, name: str) -> str | None:
        """What a complete name names; None if nothing."""
        return "body" if name == BASE else self._kinds.get(name)

    def find(self, cursor: Cursor | None, kinds: Iterable[str]) -> str | None:
        """Complete name of what the text at a place refers to: looked up in the leg, then at the top.

        Args:
            cursor: a place that holds a name.
            kinds: what it may be; anything else, or nothing, is noted.
        """
        word = cursor.text if cursor is not None else None
        if cursor is None or not word:
            return None
        kinds = tuple(kinds)
        candidates = [name for name in (cursor.prefix + word, word) if self.kind(name) is not None]
        found = next((name for name in candidates if self.kind(name) in kinds), None)
        if found is not None:
            return found
        wanted = " or ".join(kinds)
        if candidates:
            cursor.problem(f"{word} is a {self.kind(candidates[0])}, not a {wanted}", f"name a {wanted}")
        else:
            note_unknown(cursor, word, wanted, [name for name in self._kinds if self._kinds[name] in kinds])
        return None


def note_unknown(cursor: Cursor, word: str, wanted: str, known: Iterable[str]) -> None:
    """Note that a name refers to nothing, and what it may have meant."""
    hint = "" if cursor.collector.is_full else nearest(word, known, cursor.prefix)
    cursor.problem(f"there is no {wanted} named {word}", hint or f"define it, or name a {wanted} that is there")
