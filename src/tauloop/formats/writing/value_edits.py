"""Replacement of values in the text of a machine file, which preserves comments and layout."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from tauloop.common.errors import DescriptionError
from tauloop.formats.writing.expression_writer import number
from tauloop.mechanism.description.cursor import Cursor
from tauloop.mechanism.description.reader import read_machine, read_with_nodes
from tauloop.mechanism.description.schema import EDITOR_LINE
from tauloop.mechanism.description.yaml_nodes import (
    Mapping as MappingNode,
    MappingEntry,
    Node,
    Scalar,
    read_text,
)
from tauloop.mechanism.expression import Parameter, ParameterTable
from tauloop.mechanism.model import Mechanism
from tauloop.mechanism.shipped import GALLERY, SHIPPED

#: Keys of a value's status and source, which a new value may change.
_PROVENANCE = ("status", "source")
#: Number of written digits. A number gets more digits if its rounding error would exceed
#: `_ROUNDING`.
_DIGITS = 15
#: Largest relative error of a number due to its conversion to the unit of the file.
_ROUNDING = 1e-15
_EDITOR_LINE = re.compile(r"\A# yaml-language-server:.*\n")


class TextNotKept(Exception):
    """Error if the text of a machine file cannot contain a mechanism's values.

    The message states the reason.

    Attributes:
        file: name of the machine file; empty if there is none.
    """

    def __init__(self, reason: str, file: str = "") -> None:
        """Initialize an error with its reason."""
        super().__init__(reason)
        self.file = file

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on losses, for a user who expects the text of this file."""
        if not self.file:
            return ()
        return (f"comments, order and legs of {self.file} are lost: {self}",)


def text_with_values_of(mechanism: Mechanism, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text of a mechanism's machine file, with the mechanism's values.

    Only differences are replaced: numbers, their status and source, and the machine's name. If the
    legs of a pattern now have different values, the value becomes a parameter of each leg.

    Args:
        mechanism: a mechanism that was read from a machine file.
        folder: folder of the new file, to which its references to other files are relative.

    Returns:
        The text, and notes on parameters with new names.

    Raises:
        TextNotKept: the file no longer exists, or its text would describe another machine.
    """
    reason = TextNotKept("there is no machine file")
    for path in _sources(mechanism.file):
        try:
            return _edited(path, mechanism, folder)
        except TextNotKept as error:
            reason = TextNotKept(str(error), path.name)
    raise reason


def _sources(file: str) -> Iterator[Path]:
    """Return the files to which a mechanism's file name may refer: a path, or a shipped machine."""
    path = Path(file)
    if path.suffix.lower() not in (".yaml", ".yml"):
        return
    if path.is_file():
        yield path
    if path.name == file:
        shipped = [folder / f"{path.stem}.yaml" for folder in (SHIPPED, GALLERY)]
        yield from (source for source in shipped if source.is_file())


def _edited(path: Path, mechanism: Mechanism, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Return the text of one file with the mechanism's values.

    Raises:
        TextNotKept: the text does not describe this machine.
    """
    try:
        text = read_text(path)
        original, nodes, root = read_with_nodes(text, mechanism.file, path.parent)
    except DescriptionError:
        raise TextNotKept(f"{path.name} is no longer a machine file") from None
    if original.parameters.names != mechanism.parameters.names:
        raise TextNotKept(f"the machine has other parameters than {path.name}")
    if original != replace(mechanism, name=original.name, parameters=original.parameters):
        raise TextNotKept(f"the machine differs from {path.name} in more than values")
    mechanism = _without_stale_sources(mechanism, original, nodes)
    editor = _Editor(text, root)
    editor.rename(mechanism.name)
    names_by_node: dict[int, list[str]] = {}
    for name, node in nodes.items():
        names_by_node.setdefault(id(node), []).append(name)
    for names in names_by_node.values():
        old = [original.parameters[name] for name in names]
        new = [mechanism.parameters[name] for name in names]
        if old != new:
            editor.change(nodes[names[0]], old, new)
    text = editor.edited()
    if path != Path(mechanism.file):  # the schema of a shipped machine is in another folder
        text = _EDITOR_LINE.sub(EDITOR_LINE, text)
    try:
        edited = read_machine(text, mechanism.file, folder)
    except DescriptionError as error:
        what = f"{path.name} is invalid with these values: {error.problems[0].what}"
        raise TextNotKept(what) from None
    if not _has_values(edited, mechanism, editor.renamed):
        raise TextNotKept(f"{path.name} cannot contain all of these values")
    return text, _notes(editor.renamed)


def _without_stale_sources(
    mechanism: Mechanism, original: Mechanism, nodes: Mapping[str, Node]
) -> Mechanism:
    """Return the machine with a new source for each chosen value that changed without its source.

    A source that the file states for all chosen values is preserved, because the new value is also
    chosen.
    """
    parameters: list[Parameter] = []
    for old, new in zip(original.parameters, mechanism.parameters, strict=True):
        node = nodes.get(new.name)
        keys_of_value = (
            {entry.key for entry in node.entries} if isinstance(node, MappingNode) else set()
        )
        is_stale = new.value != old.value and (new.status, new.source) == (old.status, old.source)
        if is_stale and new.status == "chosen" and "source" in keys_of_value:
            new = replace(new, source=old.change_text())
        parameters.append(new)
    return replace(mechanism, parameters=ParameterTable(tuple(parameters)))


def _notes(renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Return a note on values that became parameters of each leg."""
    names = sorted({re.sub(r"\d+\.", "*.", new, count=1) for new in renamed.values()})
    if not names:
        return ()
    return (
        f"legs now have different values, which are parameters of each leg: {', '.join(names)}",
    )


def _has_values(edited: Mechanism, mechanism: Mechanism, renamed: Mapping[str, str]) -> bool:
    """Return whether two machines have equal parameters and meshes, except for new names.

    Values that the file derives from parameters may differ: the reference pose and sizes of solids.
    """
    expected = {renamed.get(item.name, item.name): item for item in mechanism.parameters}
    if {item.name for item in edited.parameters} != set(expected):
        return False
    return (
        all(_is_same(item, expected[item.name]) for item in edited.parameters)
        and [solid.mesh for solid in edited.solids] == [solid.mesh for solid in mechanism.solids]
        and edited.name == mechanism.name
    )


def _is_same(parameter: Parameter, other: Parameter) -> bool:
    """Return whether two parameters are equal except for their names and rounding errors."""
    changed = replace(parameter, name=other.name, value=other.value)
    return changed == other and math.isclose(
        parameter.value, other.value, rel_tol=_ROUNDING, abs_tol=0.0
    )


class _Editor:
    """Replacements in the text of a machine file."""

    def __init__(self, text: str, root: Cursor) -> None:
        self._text = text
        self._root = root
        #: Start, end and new text of each replacement.
        self._edits: list[tuple[int, int, str]] = []
        #: Parameters of each leg to add, by the name of the pattern.
        self._each: dict[str, list[str]] = {}
        #: New names of parameters by their previous names.
        self.renamed: dict[str, str] = {}

    def edited(self) -> str:
        """Return the text with all replacements.

        Raises:
            TextNotKept: a pattern of legs cannot be extended.
        """
        for leg, lines in self._each.items():
            self._extend(self._leg(leg), lines)
        text = self._text
        for start, end, new in sorted(self._edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def rename(self, name: str) -> None:
        """Replace the name of the machine."""
        name_cursor = self._root.get("name")
        if (
            name_cursor is not None
            and isinstance(name_cursor.node, Scalar)
            and name_cursor.node.text != name
        ):
            self._replace(name_cursor.node, name)

    def change(self, node: Node, old: Sequence[Parameter], new: Sequence[Parameter]) -> None:
        """Replace values, status and source of the parameters of one node.

        Raises:
            TextNotKept: legs that share the node differ, and their pattern cannot be extended.
        """
        changed = [key for key in _PROVENANCE if _differ(key, old, new)]
        if len({(item.value, item.status, item.source) for item in new}) > 1:
            self._change_each(node, changed, new)
        elif isinstance(node, Scalar):
            self._replace(node, _value_text(new[0], changed))
        elif isinstance(node, MappingNode):
            self._change_mapping(node, changed, new[0])

    def _change_mapping(self, node: MappingNode, changed: Sequence[str], new: Parameter) -> None:
        """Change a value that is a mapping with a note, bounds or source."""
        entries = {entry.key: entry for entry in node.entries}
        value = entries["value"]
        self._replace(value.value, _number(new))
        added = []
        for key in changed:
            text = _flow(getattr(new, key))
            if key in entries:
                self._replace(entries[key].value, text)
            else:
                added.append(f"{key}: {text}")
        self._insert_after(value, node.is_flow, added)

    def _change_each(self, node: Node, changed: Sequence[str], new: Sequence[Parameter]) -> None:
        """Convert a value that differs between the legs of a pattern to parameters of the legs."""
        first, _, path = new[0].name.partition(".")
        leg = first.rstrip("0123456789")
        if self._leg(leg) is None:
            raise TextNotKept(f"{new[0].name} is not a value of a pattern of legs")
        name = re.sub(r"\W+", "_", path).strip("_")
        lines = self._each.setdefault(leg, [])
        while re.search(rf"\b{name}\b", "\n".join([self._text, *lines])):
            name += "_"
        if isinstance(node, MappingNode):
            node = next(entry.value for entry in node.entries if entry.key == "value")
        self._replace(node, name)
        lines.append(f"{name}: [{', '.join(_value_text(item, changed) for item in new)}]")
        for item in new:
            self.renamed[item.name] = f"{item.name.partition('.')[0]}.{name}"

    def _leg(self, name: str) -> MappingNode | None:
        """Return the pattern of legs with a name."""
        legs = (leg for leg in self._root.items_of("legs") if leg.word("name") == name)
        node = next((leg.node for leg in legs), None)
        return node if isinstance(node, MappingNode) else None

    def _extend(self, leg: MappingNode | None, lines: Sequence[str]) -> None:
        """Add lines to `each` of a pattern."""
        entries = {entry.key: entry for entry in leg.entries} if leg is not None else {}
        each = entries.get("each")
        if leg is not None and each is None:
            self._insert_after(entries["repeat"], leg.is_flow, [f"each: {{{', '.join(lines)}}}"])
        elif each is not None and isinstance(each.value, MappingNode) and each.value.entries:
            self._insert_after(each.value.entries[-1], each.value.is_flow, lines)
        else:
            raise TextNotKept("`each` of a pattern of legs is empty")

    def _replace(self, node: Node, new: str) -> None:
        """Replace a scalar; whitespace after a block of text is preserved."""
        if not isinstance(node, Scalar):
            raise AssertionError("only texts are replaced")
        length = len(self._text[node.start : node.end].rstrip())
        self._edits.append((node.start, node.start + length, new))

    def _insert_after(self, entry: MappingEntry, is_flow: bool, added: Sequence[str]) -> None:
        """Insert keys after another key: in the same braces, or on new lines."""
        if not added:
            return
        start = entry.value.start
        end = start + len(self._text[start : entry.value.end].rstrip())
        if is_flow:
            self._edits.append((end, end, "".join(f", {item}" for item in added)))
            return
        column = entry.start - (self._text.rfind("\n", 0, entry.start) + 1)
        line_end = self._text.find("\n", end)
        line_end = len(self._text) if line_end < 0 else line_end
        lines = "".join(f"\n{' ' * column}{item}" for item in added)
        self._edits.append((line_end, line_end, lines))


def _differ(key: str, old: Sequence[Parameter], new: Sequence[Parameter]) -> bool:
    """Return whether an attribute of any parameter differs."""
    return any(getattr(a, key) != getattr(b, key) for a, b in zip(old, new, strict=True))


def _value_text(parameter: Parameter, changed: Sequence[str]) -> str:
    """Return a value on one line, with its status and source if they have changed."""
    if not changed:
        return _number(parameter)
    items = [f"{key}: {_flow(getattr(parameter, key))}" for key in changed]
    return f"{{value: {_number(parameter)}, {', '.join(items)}}}"


def _number(parameter: Parameter) -> str:
    """Return the number of a parameter in the file's unit, with as many digits as needed."""
    quotient = parameter.value / parameter.scale
    rounded = float(f"{quotient:.{_DIGITS}g}")
    is_exact = math.isclose(
        rounded * parameter.scale, parameter.value, rel_tol=_ROUNDING, abs_tol=0
    )
    return f"{number(rounded if is_exact else quotient)} {parameter.unit}".strip()


def _flow(text: str) -> str:
    """Return a text as written between braces on one line."""
    flow_text = yaml.safe_dump([text], default_flow_style=True, width=10**9, allow_unicode=True)
    return flow_text.strip()[1:-1]
