"""Named values in the text of a machine file, and replacement of values that preserves comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import yaml

from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import UnitError, literal, read_quantity
from tauloop.mechanism.suggestions import listing, suggestion, unknown_names

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Maximum number of names of values in an error message.
MAX_LISTED_VALUES = 24
#: Status and source of a value that the user changed in a copied file.
OWN_PROVENANCE = {"status": "chosen", "source": "own dimension"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedValue:
    """A named value of a machine file.

    Attributes:
        name: name of the parameter: ``arm_length``, or ``tower1.arm`` of one leg.
        text: the value as written, with its unit; a formula if it depends on others.
        note: description; "" if there is none.
        bounds: lower and upper bound as written; empty if there are none.
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
            current, new = literal(self.text), literal(text)
        except UnitError:  # a formula, which is checked when the file is read
            return text
        read_quantity(text, current.dimension, is_si=True)
        has_unit = new.unit or not str(current.dimension)
        return text if has_unit else f"{text} {current.dimension}"

    def accepted(self, answer: str) -> str:
        """Return an answer of the user as text for a machine file, after checking it.

        Raises:
            InputError: the unit has another dimension, or the value is out of bounds.
        """
        try:
            text = self.written(answer)
            if not self.bounds:
                return text
            lower = literal(self.bounds[0]).value
            upper = literal(self.bounds[1]).value
            value = literal(text).value
        except UnitError as error:
            raise InputError.of(self.name, error.what, error.remedy) from None
        if not lower <= value <= upper:
            raise InputError.of(
                self.name, f"{text} is out of bounds", f"give {' to '.join(self.bounds)}"
            )
        return text

    def scaled(self, factor: float) -> str:
        """Return the value times a factor as text, in its unit, rounded to three digits."""
        current = literal(self.text)
        return f"{float(f'{current.number * factor:.3g}'):g} {current.unit}".strip()


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
        origin: name of the machine from which the text was copied; empty for a template. If
            there is a name, the source of changed values is "own dimension", and the description
            lists them.

    Raises:
        InputError: names are unknown, or units have another dimension.
    """
    known, problems = named_values(text), Problems()
    groups = {key: [key] for key in known}
    for key in known:
        group = _leg_group(key)
        if group and group not in known:
            groups.setdefault(group, []).append(key)
    problems += _unknown_values(values, groups, {key: item for key, (item, _) in known.items()})
    root = _keys(yaml.compose(text, Loader=_LOADER))
    edits = [(root["name"], name)]
    if origin and values and isinstance(root.get("description"), yaml.ScalarNode):
        note = f"Derived from {origin}, with these values changed: {', '.join(values)}."
        description = f"{root['description'].value.rstrip()}\n{note}"
        edits.append((root["description"], _block(description)))
    for key, value in values.items():
        for full_name in groups.get(key, ()):
            named_value, node = known[full_name]
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


def _leg_group(name: str) -> str:
    """Return the name of a value for all legs: ``tower.arm`` for ``tower1.arm``.

    The result is empty if the value does not belong to a leg.
    """
    leg, dot, rest = name.partition(".")
    return leg.rstrip("0123456789") + dot + rest if dot else ""


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
    for leg in _items(root.get("legs")):
        keys = _keys(leg)
        prefix = getattr(keys.get("name"), "value", "")
        for key, node in _keys(keys.get("each")).items():
            for number, item in enumerate(_items(node), 1):
                yield _named_value(f"{prefix}{number}.{key}", item), item


def _named_value(name: str, node: yaml.Node) -> NamedValue:
    keys = _keys(node)
    return NamedValue(
        name=name,
        text=" ".join(str(keys.get("value", node).value).split()),
        note=str(getattr(keys.get("note"), "value", "")),
        bounds=tuple(item.value for item in _items(keys.get("bounds"))),
    )


def _edit(node: yaml.Node, text: str, is_copied: bool) -> tuple[yaml.Node, str]:
    """Return the node to replace and its new text.

    In a copied file the provenance of the original does not hold for a changed value. Therefore the
    value gets `OWN_PROVENANCE` there.
    """
    keys = _keys(node)
    if not is_copied:
        return keys.get("value", node), _flow(text)
    rest = {
        key: yaml.safe_load(yaml.serialize(item)) for key, item in keys.items() if key != "value"
    }
    items = ", ".join(f"{key}: {_flow(item)}" for key, item in {**rest, **OWN_PROVENANCE}.items())
    return node, f"{{value: {_flow(text)}, {items}}}"


def _flow(value: object) -> str:
    """Return a value as YAML flow text on one line."""
    text = yaml.safe_dump([value], default_flow_style=True, width=10**9, allow_unicode=True)
    return text.strip()[1:-1]


def _block(text: str) -> str:
    """Return a text as a YAML literal block."""
    return "|\n" + "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    """Return the items of a YAML list; empty for other nodes."""
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _keys(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """Return the values of a YAML mapping by key; empty for other nodes."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): item for key, item in node.value}
