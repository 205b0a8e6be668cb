"""Reader of YAML text as plain nodes with line numbers, without tags, aliases or Python objects.

Text is converted event by event, so that a hostile file (multiplying aliases, endless nesting) is
rejected before its nodes are built. Scalars remain text; the reader of a section interprets them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from tauloop.common.errors import DescriptionError, Problem
from tauloop.common.records import dataclass

#: Maximum size of a file, bytes; machine files typically have about 10 kB.
MAX_BYTES = 2_000_000
#: Maximum nesting depth.
MAX_DEPTH = 32


# `start` and `end` are the positions in the file's text at which a node begins and ends. A block
# collection (without brackets) or a text of several lines ends at the start of the line after it.


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar; `is_quoted` distinguishes ``""`` from a missing value."""

    text: str
    line: int
    is_quoted: bool = False
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of nodes."""

    items: tuple[Node, ...]
    line: int
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class MappingEntry:
    """A key of a mapping and its node; `start` is the position of the key."""

    key: str
    line: int
    value: Node
    start: int = 0


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and nodes in the order of the file; keys are unique.

    `is_flow` states whether the mapping is written in braces.
    """

    entries: tuple[MappingEntry, ...]
    line: int
    start: int = 0
    end: int = 0
    is_flow: bool = False

    def get(self, key: str) -> Node | None:
        """Return the node of a key."""
        # a loop is four times as fast as a generator, and this function is called for each key
        for entry in self.entries:
            if entry.key == key:
                return entry.value
        return None


Node = Scalar | Sequence | Mapping

# The parser of LibYAML is ten times faster; both yield the same events.
_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file.

    Raises:
        DescriptionError: the file is missing, not a file, too large, or not text.
    """

    def file_error(what: str, remedy: str) -> DescriptionError:
        return DescriptionError.of("", what, remedy, file=str(path))

    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise file_error("there is no such file", "check the path") from None
    except IsADirectoryError:
        raise file_error("this is a folder, not a file", "name the file itself") from None
    except OSError as error:
        raise file_error(
            f"the file cannot be read: {error.strerror}", "check the path and its permissions"
        ) from None
    except ValueError:
        raise file_error(
            "the file name contains a null byte or cannot be encoded", "check the path"
        ) from None
    if len(data) > MAX_BYTES:
        raise file_error(
            f"the file is larger than {MAX_BYTES / 1e6:g} MB",
            "check that this is a description and not a log or a mesh",
        )
    if b"\0" in data:
        raise file_error(
            f"this is a binary file: byte {data.index(0) + 1} is zero", "give a text file in UTF-8"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = Problem(
            where="",
            what=f"byte {error.start + 1} is not UTF-8 text",
            remedy="save the file as UTF-8 (a binary file is not a description)",
            file=str(path),
            line=line,
        )
        raise DescriptionError(problem) from None


def parse_nodes(text: str, file: str) -> Node:
    """Return the nodes of a YAML text.

    Args:
        text: YAML text.
        file: file name for messages.

    Raises:
        DescriptionError: the text is not YAML, is empty, or uses features that descriptions exclude:
            anchors, aliases, tags, several documents, repeated keys, lists or mappings as keys,
            deep nesting.
    """
    return _NodeReader(text, file).document()


class _NodeReader:
    """Reader that converts events into nodes."""

    def __init__(self, text: str, file: str) -> None:
        if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            raise DescriptionError.of(
                "",
                f"the text is larger than {MAX_BYTES / 1e6:g} MB",
                "check that this is a description and not a log or a mesh",
                file=file,
            )
        self._file = file
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._repeated_keys: list[Problem] = []

    def _problem(self, line: int | None, what: str, remedy: str, where: str = "") -> Problem:
        return Problem(where=where, what=what, remedy=remedy, file=self._file, line=line)

    def _error(self, line: int | None, what: str, remedy: str, where: str = "") -> DescriptionError:
        return DescriptionError([*self._repeated_keys, self._problem(line, what, remedy, where)])

    def _next(self) -> yaml.Event:
        try:
            event = next(self._events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = ": ".join(text for text in (error.context, error.problem) if text)
            raise self._error(
                mark.line + 1 if mark else None,
                f"this is not YAML: {what}",
                "check indentation, colons, brackets and quotes here and in the line before",
            ) from None
        except (yaml.YAMLError, UnicodeError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise self._error(
                None, f"this is not YAML text: {reason}", "save the file as plain UTF-8 text"
            ) from None
        return event

    def document(self) -> Node:
        """Return the only document of the text."""
        self._next()  # start of the stream
        event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise self._error(
                None, "the file is empty", "write a description; docs/machine-file.md shows one"
            )
        node = self._node(self._next(), 0, "")
        self._next()  # end of the document
        event = self._next()
        if not isinstance(event, yaml.StreamEndEvent):
            line = _line(event)
            raise self._error(
                line,
                "a second document starts here (---)",
                "put each description into a separate file",
            )
        DescriptionError.raise_if_any(self._repeated_keys)
        if isinstance(node, Scalar) and not node.text and not node.is_quoted:
            raise self._error(
                None, "the file is empty", "write a description; docs/machine-file.md shows one"
            )
        return node

    def _node(self, event: yaml.Event, depth: int, where: str) -> Node:
        line = _line(event)
        if isinstance(event, yaml.AliasEvent):
            raise self._error(
                line,
                f"the alias *{event.anchor} is not allowed",
                "repeat the value, or define a parameter",
                where,
            )
        if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            raise AssertionError(f"a node cannot start with {event}")
        if event.anchor is not None:
            what = f"the anchor &{event.anchor} is not allowed"
            remedy = "remove it; use a parameter for a repeated value"
            raise self._error(line, what, remedy, where)
        if event.tag is not None:
            what = f"the tag {event.tag} is not allowed"
            remedy = "remove it: values are text and numbers"
            raise self._error(line, what, remedy, where)
        if isinstance(event, yaml.ScalarEvent):
            is_quoted = event.style not in (None, "")
            return Scalar(event.value, line, is_quoted, *_extent(event, event))
        if depth >= MAX_DEPTH:
            raise self._error(
                line, f"nested more than {MAX_DEPTH} levels deep", "flatten the description", where
            )
        if isinstance(event, yaml.SequenceStartEvent):
            start = event
            items: list[Node] = []
            while not isinstance(event := self._next(), yaml.SequenceEndEvent):
                items.append(self._node(event, depth + 1, f"{where}[{len(items)}]"))
            return Sequence(tuple(items), line, *_extent(start, event))
        return self._mapping(event, depth, where)

    def _mapping(self, start: yaml.CollectionStartEvent, depth: int, where: str) -> Mapping:
        entries: dict[str, MappingEntry] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key_line = _line(event)
            key = self._node(event, depth + 1, where)
            if not isinstance(key, Scalar):
                raise self._error(
                    key_line,
                    "a key is a list or a mapping",
                    "write a plain name before the colon",
                    where,
                )
            path = f"{where}.{key.text}" if where else key.text
            value = self._node(self._next(), depth + 1, path)
            if key.text in entries:
                first_line = entries[key.text].line
                self._repeated_keys.append(
                    self._problem(
                        key_line,
                        f"the key is repeated; it is already in line {first_line}",
                        "keep one of the two",
                        path,
                    )
                )
            else:
                entries[key.text] = MappingEntry(key.text, key_line, value, key.start)
        return Mapping(
            tuple(entries.values()), _line(start), *_extent(start, event), bool(start.flow_style)
        )


def _line(event: yaml.Event) -> int:
    """Return the line of an event, counted from one."""
    return int(event.start_mark.line) + 1 if event.start_mark is not None else 0


def _extent(first: yaml.Event, last: yaml.Event) -> tuple[int, int]:
    """Return the positions at which a node begins and ends, from its first and last event."""
    if first.start_mark is None or last.end_mark is None:
        raise AssertionError("an event of the YAML parser has no position mark")
    return int(first.start_mark.index), int(last.end_mark.index)
