"""Named values in the text of a machine file, and replacement of values that preserves comments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import yaml

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import UnitError, literal, read_quantity
from tauloop.mechanism.suggestions import listing, suggestion, unknown_names

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Maximum number of listed names of values.
MAX_LISTED_VALUES = 24
#: Status and source of a changed value in a file with other sources.
OWN_PROVENANCE = {"status": "chosen", "source": "own dimension"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedValue:
    """A named value of a machine file.

    Attributes:
        name: name of the parameter: ``arm_length``, or ``tower1.arm`` of one leg.
        text: the value as written, with its unit; a formula if it depends on others.
        note: description; "" if there is none.
        bounds: least and greatest value as written; empty if there are none.
    """

    name: str
    text: str
    note: str
    bounds: tuple[str, ...]

    @property
    def value(self) -> float | None:
        """Value, SI; None for a formula."""
        try:
            return literal(self.text).value
        except UnitError:
            return None

    def written(self, value: str | float) -> str:
        """Return a value as text for a machine file; a number without a unit gets the SI unit.

        Raises:
            UnitError: the unit has another dimension.
        """
        text = f"{value:.12g}" if isinstance(value, int | float) else value.strip()
        try:
            own, other = literal(self.text), literal(text)
        except UnitError:  # one of them is a formula, which is checked when the file is read
            return text
        read_quantity(text, own.dimension, is_si=True)
        return text if other.unit or not str(own.dimension) else f"{text} {own.dimension}"

    def accepted(self, answer: str) -> str:
        """Return an accepted input, formatted for a machine file.

        Raises:
            InputError: the unit has another dimension, or the value is out of bounds.
        """
        try:
            text = self.written(answer)
            low, high = (
                (literal(end).value for end in self.bounds)
                if self.bounds
                else (-math.inf, math.inf)
            )
            value = literal(text).value if self.bounds else low
        except UnitError as error:
            raise InputError.of(self.name, error.what, error.remedy) from None
        if not low <= value <= high:
            raise InputError.of(
                self.name, f"{text} is out of bounds", f"give {' to '.join(self.bounds)}"
            )
        return text

    def scaled(self, factor: float) -> str:
        """Return the value times a factor, in its unit with three digits."""
        own = literal(self.text)
        return f"{float(f'{own.number * factor:.3g}'):g} {own.unit}".strip()


def named_values(text: str) -> dict[str, tuple[NamedValue, yaml.Node]]:
    """Return the named values of a machine file by name, each with its node.

    The text must be a valid machine file.
    """
    return {
        item.name: (item, node) for item, node in _values(_keys(yaml.compose(text, Loader=_LOADER)))
    }


def with_values(text: str, name: str, values: Mapping[str, str | float], origin: str = "") -> str:
    """Return the text of a machine file with another name and other values.

    Args:
        text: text of a machine file that has been read.
        name: name of the machine.
        values: new values by parameter name; the name `tower.arm` sets the value of every leg.
            Numbers without a unit are SI.
        origin: name of the original machine, if description and sources are those of another
            machine. The source of changed values is then "own dimension", and the description lists
            them.

    Raises:
        InputError: names are unknown, or units have another dimension.
    """
    known, problems = named_values(text), Problems()
    groups = {key: [key] for key in known}
    for key in known:
        leg, dot, rest = key.partition(".")
        if dot and leg.rstrip("0123456789") + dot + rest not in known:
            groups.setdefault(leg.rstrip("0123456789") + dot + rest, []).append(key)
    problems += _unknown_values(values, groups, {key: item for key, (item, _) in known.items()})
    root = _keys(yaml.compose(text, Loader=_LOADER))
    edits = [(root["name"], name)]
    if origin and values and isinstance(root.get("description"), yaml.ScalarNode):
        made = f"Derived from {origin}, with these values changed: {', '.join(values)}."
        story = f"{root['description'].value.rstrip()}\n{made}"
        edits.append((root["description"], _block(story)))
    for key, value in values.items():
        for place in groups.get(key, ()):
            named_value, node = known[place]
            try:
                edits.append(_edit(node, named_value.written(value), bool(origin)))
            except UnitError as error:
                problems.add(key, error.what, error.remedy)
    InputError.raise_if_any(problems)
    for node, new in sorted(edits, key=lambda edit: edit[0].start_mark.index, reverse=True):
        # the end mark of a block is at the start of the next node
        start, end = node.start_mark.index, node.end_mark.index
        text = text[:start] + new + text[start + len(text[start:end].rstrip()) :]
    return text


def _unknown_values(
    values: Mapping[str, object], groups: Mapping[str, list[str]], known: Mapping[str, NamedValue]
) -> list[Problem]:
    """Return a problem for each unknown name; the last one lists the values that are not formulas."""
    problems = unknown_names(values, groups, "is not a named value of this machine")
    if not problems:
        return []
    numbers = [name for name, keys in groups.items() if known[keys[0]].value is not None]
    listed = listing(numbers, MAX_LISTED_VALUES)
    last = problems[-1]
    similar = suggestion(last.where, groups)
    remedy = f"{similar} Named values: {listed}" if similar else f"choose among {listed}"
    return [*problems[:-1], replace(last, remedy=remedy)]


def _values(root: Mapping[str, yaml.Node]) -> Iterator[tuple[NamedValue, yaml.Node]]:
    for key, node in _keys(root.get("parameters")).items():
        yield _named_value(key, node), node
    legs = root.get("legs")
    for leg in legs.value if isinstance(legs, yaml.SequenceNode) else ():
        keys = _keys(leg)
        prefix = getattr(keys.get("name"), "value", "")
        for key, node in _keys(keys.get("each")).items():
            for i, item in enumerate(node.value if isinstance(node, yaml.SequenceNode) else (), 1):
                yield _named_value(f"{prefix}{i}.{key}", item), item


def _named_value(name: str, node: yaml.Node) -> NamedValue:
    keys = _keys(node)
    bounds = keys.get("bounds")
    return NamedValue(
        name=name,
        text=" ".join(str(keys.get("value", node).value).split()),
        note=str(getattr(keys.get("note"), "value", "")),
        bounds=tuple(item.value for item in bounds.value)
        if isinstance(bounds, yaml.SequenceNode)
        else (),
    )


def _edit(node: yaml.Node, text: str, is_foreign: bool) -> tuple[yaml.Node, str]:
    """Return the node to replace and its new text.

    Only the value is replaced if the source of the file applies; otherwise the source is added.
    """
    keys = _keys(node)
    if not is_foreign:
        return keys.get("value", node), _flow(text)
    rest = {
        key: yaml.safe_load(yaml.serialize(item)) for key, item in keys.items() if key != "value"
    }
    items = ", ".join(f"{key}: {_flow(item)}" for key, item in {**rest, **OWN_PROVENANCE}.items())
    return node, f"{{value: {_flow(text)}, {items}}}"


def _flow(value: object) -> str:
    """Return a value as written between braces, on one line."""
    text = yaml.safe_dump([value], default_flow_style=True, width=10**9, allow_unicode=True)
    return text.strip()[1:-1]


def _block(text: str) -> str:
    return "|\n" + "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _keys(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): item for key, item in node.value}
