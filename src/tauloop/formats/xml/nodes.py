"""Safe reading of XML as plain nodes with line numbers.

Document types and entities are rejected; size and depth are limited.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TypeVar
from xml.parsers import expat

import numpy as np

from tauloop.common.errors import DescriptionError, Problem, Problems
from tauloop.common.files import unreadable
from tauloop.common.records import dataclass
from tauloop.mechanism.suggestions import suggestion

#: Maximum file size, bytes; models that refer to mesh files are far smaller.
MAX_FILE_BYTES = 20_000_000
#: Maximum nesting depth. URDF needs six levels; MJCF needs two more than the bodies in a chain.
MAX_NESTING = 200
#: Maximum number of bodies or links. Machines have tens of bodies; assembling a scene with
#: thousands would take hours.
MAX_BODIES = 2000
#: Largest permitted number in SI units; squares and products of larger numbers overflow.
MAX_NUMBER = 1e30


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlNode:
    """An element of an XML file.

    Attributes:
        tag: tag of the element.
        attributes: attributes of the element.
        line: first line of the element.
        children: elements inside the element.
        pieces: fragments of its text.
        file: name of the file.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[XmlNode] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    file: str = ""

    @property
    def content(self) -> str:
        """Text of the element without surrounding whitespace."""
        return "".join(self.pieces).strip()

    def all(self, tag: str) -> Iterator[XmlNode]:
        """Yield the children with a tag."""
        return (child for child in self.children if child.tag == tag)

    def walk(self) -> Iterator[XmlNode]:
        """Yield the element and all elements inside it, in file order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def first(self, tag: str) -> XmlNode | None:
        """Return the first child with a tag, or None."""
        return next(self.all(tag), None)


def read_xml(path: str | Path) -> XmlNode:
    """Return the root element of a file.

    Syntax errors that TinyXML tolerates are accepted (`_as_tinyxml`). Gazebo, Drake and ROS use
    TinyXML, so files with such errors are common.

    Raises:
        DescriptionError: the file does not exist, is too large, has too many bodies, is not XML, or
            has a document type or entity declaration, which may expand without limit or name files.
    """
    path = Path(path)
    if reason := unreadable(path):
        raise _file_error(path, *reason)
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        what = f"is {size / 1e6:.1f} MB; the limit is {MAX_FILE_BYTES / 1e6:.0f} MB"
        raise _file_error(path, what, "store meshes in separate files")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _file_error(
            path, f"the file cannot be read: {error.strerror}", "check its permissions"
        ) from None
    try:
        return _parsed(path, content, None)
    except expat.ExpatError as original_error:
        try:
            return _parsed(path, _as_tinyxml(content), "utf-8")
        except expat.ExpatError as error:
            # report the error of the original file, unless it is one that TinyXML accepts
            reported = original_error if original_error.lineno == error.lineno else error
            message = expat.ErrorString(reported.code)
            what = f"not well-formed XML: {message} at column {reported.offset + 1}"
            raise _file_error(
                path, what, "correct the XML at this position", reported.lineno
            ) from None


def parse_xml(text: str, file: str) -> XmlNode:
    """Return the root element of XML text that a program wrote.

    Args:
        text: well-formed XML.
        file: file name for messages.

    Raises:
        DescriptionError: as for `read_xml`.
    """
    return _parsed(Path(file), text.encode("utf-8"), "utf-8")


def _file_error(path: Path, what: str, remedy: str, line: int | None = None) -> DescriptionError:
    """Return an error about a file, optionally at a line."""
    return DescriptionError.of("", what, remedy, file=str(path), line=line)


def _parsed(path: Path, content: bytes, encoding: str | None) -> XmlNode:
    """Return the root element of a file's content.

    Args:
        path: path of the file, for messages.
        content: bytes of the file.
        encoding: encoding that replaces the declared one.

    Raises:
        ExpatError: the content is not well-formed XML.
        DescriptionError: as for `read_xml`.
    """
    parser = expat.ParserCreate(encoding)
    file = str(path)
    open_nodes = [XmlNode(tag="", attributes={}, line=0)]
    body_count = [0]  # a list, so that the nested function can change it

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(open_nodes) > MAX_NESTING:
            what = f"elements are nested more than {MAX_NESTING} levels deep"
            raise _file_error(
                path, what, "check that the file describes a machine", parser.CurrentLineNumber
            )
        body_count[0] += tag in ("body", "link")
        if body_count[0] > MAX_BODIES:
            what = f"there are more than {MAX_BODIES} bodies"
            raise _file_error(
                path,
                what,
                "give the machine alone, without its surroundings",
                parser.CurrentLineNumber,
            )
        node = XmlNode(tag=tag, attributes=attributes, line=parser.CurrentLineNumber, file=file)
        open_nodes[-1].children.append(node)
        open_nodes.append(node)

    def end(_tag: str) -> None:
        open_nodes.pop()

    def text(data: str) -> None:
        if open_nodes[-1].pieces or not data.isspace():
            open_nodes[-1].pieces.append(data)

    def declaration(*_: object) -> None:
        what = "document type and entity declarations are rejected, because they may expand without limit"
        raise _file_error(
            path, what, "remove <!DOCTYPE ...> and <!ENTITY ...>", parser.CurrentLineNumber
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = declaration
    parser.EntityDeclHandler = declaration
    try:
        parser.Parse(content, True)
    # raised by Python's codecs for the encoding that the file declares
    except (LookupError, ValueError, TypeError) as error:
        raise _file_error(
            path, f"its encoding cannot be read: {error}", "save the file as UTF-8"
        ) from None
    return open_nodes[0].children[0]


#: An XML declaration at the start of a file.
_DECLARATION = re.compile(r"\s*<\?xml\s[^<>]*\?>")
#: An ampersand that does not begin a reference.
_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
#: Delimiters of comments and of CDATA sections.
_COMMENT = ("<!--", "-->")
_CDATA = ("<![CDATA[", "]]>")


def _as_tinyxml(content: bytes) -> bytes:
    """Return a text, as UTF-8, without errors that TinyXML accepts; line numbers do not change.

    Comments may contain "--", whitespace may precede the XML declaration, a bare ampersand is
    allowed, and bytes that are not UTF-8 count as Latin-1.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if (match := _DECLARATION.match(text)) is not None:
        text = _line_ends(match[0]) + text[match.end() :]
    return _AMPERSAND.sub("&amp;", _without_comments(text)).encode("utf-8")


def _without_comments(text: str) -> str:
    """Return a text without its comments, except their line ends.

    An unclosed comment is not changed.
    """
    pieces: list[str] = []
    position = 0
    comment = text.find(_COMMENT[0])
    cdata = text.find(_CDATA[0])
    while comment >= 0:
        is_cdata = 0 <= cdata < comment
        start = cdata if is_cdata else comment
        opening, closing = _CDATA if is_cdata else _COMMENT
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        end += len(closing)
        pieces.append(
            text[position:end] if is_cdata else text[position:start] + _line_ends(text[start:end])
        )
        position = end
        # search for a delimiter only after passing its last position: the text is scanned once
        if 0 <= comment < position:
            comment = text.find(_COMMENT[0], position)
        if 0 <= cdata < position:
            cdata = text.find(_CDATA[0], position)
    return "".join([*pieces, text[position:]])


def _line_ends(text: str) -> str:
    """Return only the line ends of a text."""
    return "\n" * text.count("\n")


T = TypeVar("T")


class XmlReader:
    """Reader of values from nodes; it collects problems and replaces invalid numbers by NaN."""

    def __init__(self, file: str) -> None:
        """Create a reader with an empty list of problems.

        Args:
            file: name of the file for messages.
        """
        self.file = file
        self.problems = Problems()

    def problem(self, node: XmlNode, where: str, what: str, remedy: str = "") -> None:
        """Add a problem at a node."""
        self.problems.add(where, what, remedy, file=node.file or self.file, line=node.line)

    def look_up(
        self, node: XmlNode, where: str, word: str, known: Mapping[str, T], what: str, remedy: str
    ) -> T | None:
        """Return the value of a word. If it is unknown, add a problem and return None."""
        if word not in known:
            self.problem(node, where, what, suggestion(word, known) or remedy)
        return known.get(word)

    def raise_any(self) -> None:
        """Raise an error with all problems by line; problems of included files come last."""
        DescriptionError.raise_if_any(sorted(self.problems, key=self._line_order))

    def _line_order(self, problem: Problem) -> tuple[bool, str, int]:
        return problem.file != self.file, problem.file, problem.line or 0

    def text(self, node: XmlNode, where: str, attribute: str) -> str:
        """Return a required attribute. If it is missing, add a problem and return an empty text."""
        value = node.attributes.get(attribute, "").strip()
        if not value:
            what = f"<{node.tag}> has no attribute {attribute!r}"
            self.problem(node, where, what, f'write <{node.tag} {attribute}="...">')
        return value

    def number(
        self, node: XmlNode, where: str, attribute: str, default: float | None = None
    ) -> float:
        """Return an attribute as a finite number; it is required if there is no default."""
        if attribute not in node.attributes and default is not None:
            return default
        text = self.text(node, where, attribute)
        return self._numbers(node, where, attribute, text, 1)[0] if text else math.nan

    def vector(
        self, node: XmlNode | None, where: str, attribute: str, default: tuple[float, ...]
    ) -> tuple[float, ...]:
        """Return an attribute as len(default) finite numbers, or `default` if it is absent."""
        if node is None or attribute not in node.attributes:
            return default
        return self._numbers(node, where, attribute, node.attributes[attribute], len(default))

    def _numbers(
        self, node: XmlNode, where: str, attribute: str, text: str, count: int
    ) -> tuple[float, ...]:
        words = text.split()
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            values = (math.nan,)
        if len(values) != count or not all(abs(value) < MAX_NUMBER for value in values):
            expected = "a finite number" if count == 1 else f"{count} finite numbers"
            what = f"{attribute}={text!r} of <{node.tag}> is not {expected}"
            self.problem(node, where, what, "write plain numbers in SI units")
            return (math.nan,) * count
        return values


def unused_notes(elements: Mapping[str, int], attributes: Mapping[str, int]) -> list[str]:
    """Return notes on unused elements and attributes, with their counts."""
    texts: list[str] = []
    for title, counts in (("not used", elements), ("attributes not used", attributes)):
        items = [f"{name} ({count})" for name, count in sorted(counts.items()) if count]
        if items:
            texts.append(f"{title}: {', '.join(items)}")
    return texts


def impossible_inertia(inertia: np.ndarray) -> str:
    """Return why an inertia (3, 3) about the mass center is impossible; an empty text if valid."""
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    if smallest >= 0.0 and smallest + middle >= largest * (1.0 - 1e-9):
        return ""
    moments = f"{smallest:.4g}, {middle:.4g}, {largest:.4g} kg m^2"
    return f"no rigid body has the principal moments of inertia {moments}"
