"""Classes for the permitted form of a file, and cursors: positions in a file with their form."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from tauloop.common.counts import counted
from tauloop.common.errors import DescriptionError, Problem, TauloopError
from tauloop.common.names.deprecated import MACHINE_KEYS, warn_old_key
from tauloop.common.records import dataclass
from tauloop.mechanism.description.units import Dimension
from tauloop.mechanism.description.yaml_nodes import Mapping, Node, Scalar, Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A physical value: number, literal with unit, expression, or a mapping `QUALIFIED`.

    Attributes:
        linear: dimension of the value; None if any dimension, or any dimension of `among`, is
            permitted.
        angular: dimension of the value for a rotational degree of freedom, if different.
        group: group of the independent parameters in the value. Empty for a value that only
            controls a computation, such as a limit; such a value is not a parameter.
        sign: "positive", "not negative", "not zero" or empty.
        among: permitted dimensions, if there are several.
        is_plain: whether only a scalar is permitted, as inside a mapping `QUALIFIED`.
    """

    linear: Dimension | None
    angular: Dimension | None = None
    group: str = ""
    sign: str = ""
    among: tuple[Dimension, ...] = ()
    is_plain: bool = False

    def dimension(self, is_angular: bool) -> Dimension | None:
        """Return the first permitted dimension for a linear or a rotational degree of freedom."""
        return self.angular if is_angular and self.angular is not None else self.linear

    def dimensions(self, is_angular: bool) -> tuple[Dimension, ...]:
        """Return all permitted dimensions; empty if any dimension is permitted."""
        dimension = self.dimension(is_angular)
        return self.among if dimension is None else (dimension,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Free text; an empty text is rejected if `is_needed`."""

    is_needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A new name: letters, digits and underscores, a letter first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The name of an element defined elsewhere; it may contain dots."""

    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of a few words."""

    options: Collection[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number in a range."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list with at least one item, or of a given length."""

    item: Kind
    length: int | None = None
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """A mapping from names to contents of one form.

    Attributes:
        item: form of the contents.
        key: noun for the names in messages.
        is_known: whether the names refer to elements that are defined elsewhere.
        may_be_empty: whether an empty mapping is permitted.
    """

    item: Kind
    key: str = "name"
    is_known: bool = False
    may_be_empty: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One key of a shape."""

    name: str
    kind: Kind
    doc: str
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A mapping with named fields.

    Attributes:
        name: name in the schema and on the reference page.
        doc: description on the reference page.
        fields: keys of the mapping.
        one_of: keys of which at least one is required.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]
    one_of: tuple[str, ...] = ()

    def field(self, name: str) -> Field | None:
        """Return the field with this name."""
        return next((field for field in self.fields if field.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Either:
    """Alternatives, distinguished by the form of the node: text, list or mapping."""

    kinds: tuple[Kind, ...]


Kind = Value | Text | Name | Reference | Choice | Whole | ListOf | MapOf | Shape | Either


def value(
    dimensions: Dimension | tuple[Dimension | None, Dimension] | None,
    group: str = "",
    sign: str = "",
) -> Value:
    """Return the form of a value.

    Args:
        dimensions: dimension of the value; a pair of dimensions for linear and rotational degrees
            of freedom; or None for any dimension.
        group: as in `Value`.
        sign: as in `Value`.
    """
    linear, angular = dimensions if isinstance(dimensions, tuple) else (dimensions, None)
    return Value(linear=linear, angular=angular, group=group, sign=sign)


def field(name: str, kind: Kind, doc: str, required: bool = False) -> Field:
    """Return an optional key."""
    return Field(name=name, kind=kind, doc=doc, required=required)


def need(name: str, kind: Kind, doc: str) -> Field:
    """Return a required key."""
    return Field(name=name, kind=kind, doc=doc, required=True)


#: Old names of keys, which are read too.
_OLD_KEYS = {new: old for old, new in MACHINE_KEYS.items()}
#: Maximum number of problems that are reported; further ones are only counted.
MAX_PROBLEMS = 100


@dataclass(slots=True)
class Collector:
    """The problems of one file, without duplicates.

    Attributes:
        file: name of the file.
        folder: folder of the files to which the file refers; None for a text without a file.
    """

    file: str
    folder: Path | None = None
    _problems: dict[tuple[str, str, int | None], Problem] = dataclasses.field(default_factory=dict)
    _old_keys: set[str] = dataclasses.field(default_factory=set)

    def add(self, where: str, line: int | None, what: str, remedy: str, prefix: str = "") -> None:
        """Add a problem unless it was added before.

        A problem that several repeated legs share is added once; their names differ by `prefix`.
        """
        problem = Problem(where=where, what=what, remedy=remedy, file=self.file, line=line)
        self._problems.setdefault(
            (where, what.replace(prefix, "") if prefix else what, line), problem
        )

    def note_old_key(self, old: str, new: str, line: int) -> None:
        """Warn that a key has an old name, once for each name in the file."""
        if old not in self._old_keys:
            self._old_keys.add(old)
            warn_old_key(old, new, self.file, line)

    def include(self, problems: Iterable[Problem]) -> None:
        """Add the problems of another file to which this file refers."""
        for problem in problems:
            self._problems.setdefault(
                (f"{problem.file}: {problem.where}", problem.what, problem.line), problem
            )

    @property
    def count(self) -> int:
        """Number of problems."""
        return len(self._problems)

    def has_problem_in(self, where: str) -> bool:
        """Return whether a problem was added at a key path of this file or below it."""
        prefixes = (f"{where}.", f"{where}[")
        return any(
            position == where or position.startswith(prefixes) for position, _, _ in self._problems
        )

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted, so their remedies need not be determined."""
        return len(self._problems) >= MAX_PROBLEMS

    def raise_any(self, error: type[TauloopError] = DescriptionError) -> None:
        """Raise an error with all collected problems; return if there are none.

        Args:
            error: type of the error.

        Raises:
            TauloopError: of the given type, with all problems in the order of the lines.
        """
        if not self._problems:
            return
        problems = sorted(
            self._problems.values(),
            key=lambda problem: (
                problem.file != self.file,
                problem.line is not None,
                problem.line or 0,
            ),
        )
        if len(problems) > MAX_PROBLEMS:
            text = f"and {counted(len(problems) - MAX_PROBLEMS, 'more problem')}"
            last_problem = Problem(
                where="", what=text, remedy="correct those above first", file=self.file
            )
            problems = [*problems[:MAX_PROBLEMS], last_problem]
        raise error(problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """A node of a file with its position, permitted form and problems.

    Attributes:
        node: YAML node at this position.
        kind: the permitted form.
        where: key path in the file, for messages.
        leaf: key path in the machine, used to name independent parameters. It has a leg's name
            where `where` has ``legs[0]``.
        prefix: prefix of element names in its scope: empty at the top level, ``leg1.`` in a leg.
        collector: collects the problems.
    """

    node: Node
    kind: Kind
    where: str
    leaf: str
    prefix: str
    collector: Collector

    @property
    def line(self) -> int:
        """Line in the file."""
        return self.node.line

    @property
    def text(self) -> str | None:
        """The text of a scalar."""
        return self.node.text if isinstance(self.node, Scalar) else None

    def problem(self, what: str, remedy: str, key: str = "") -> None:
        """Add a problem at this position, or at a key of this mapping."""
        child = self.get(key.partition(".")[0]) if key else None
        where = f"{self.where}.{key}" if key and self.where else key or self.where
        self.collector.add(where, child.line if child else self.line, what, remedy, self.prefix)

    def refused(self, what: str, remedy: str) -> DescriptionError:
        """Return the error that ends reading the file; it includes all earlier problems."""
        try:
            self.problem(what, remedy)
            self.collector.raise_any()
        except DescriptionError as error:
            return error
        raise AssertionError("an added problem was not reported")

    def get(self, key: str) -> Cursor | None:
        """Return the cursor of a key of a shape; None if it is absent or of the wrong form."""
        shape = chosen(self.kind, self.node)
        node = self._node_of(key)
        if node is None or not isinstance(shape, Shape):
            return None
        field_of_key = shape.field(key)
        return self._child(node, field_of_key.kind, f".{key}") if field_of_key is not None else None

    def has(self, key: str) -> bool:
        """Return whether a key is present."""
        return self._node_of(key) is not None

    def _node_of(self, key: str) -> Node | None:
        """Return the node of a key or of its old name; None if both are absent."""
        if not isinstance(self.node, Mapping):
            return None
        node = self.node.get(key)
        if node is None and key in _OLD_KEYS:
            return self.node.get(_OLD_KEYS[key])
        return node

    def has_any(self, keys: Iterable[str]) -> bool:
        """Return whether at least one of some keys is present."""
        return any(self.has(key) for key in keys)

    def word(self, key: str) -> str | None:
        """Return the text of a key; None if it is absent or not a text."""
        child = self.get(key)
        return child.text if child is not None else None

    def items(self) -> list[Cursor]:
        """Return the items of a list; empty if this is not a list."""
        kind = chosen(self.kind, self.node)
        if not isinstance(self.node, Sequence) or not isinstance(kind, ListOf):
            return []
        return [self._child(node, kind.item, f"[{i}]") for i, node in enumerate(self.node.items)]

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Yield the name and contents of each entry of a `MapOf` mapping."""
        kind = chosen(self.kind, self.node)
        if isinstance(self.node, Mapping) and isinstance(kind, MapOf):
            for entry in self.node.entries:
                yield entry.key, self._child(entry.value, kind.item, f".{entry.key}")

    def items_of(self, key: str) -> list[Cursor]:
        """Return the items of the list at a key; empty if the key is absent."""
        child = self.get(key)
        return child.items() if child is not None else []

    def entries_of(self, key: str) -> list[tuple[str, Cursor]]:
        """Return the names and contents of the mapping at a key; empty if the key is absent."""
        child = self.get(key)
        return list(child.entries()) if child is not None else []

    def _child(self, node: Node, kind: Kind, suffix: str) -> Cursor:
        """Return the cursor of a node inside this node."""

        def joined(path: str) -> str:
            return path + suffix if path else suffix.removeprefix(".")

        if isinstance(kind, Either) and accepts(kind, node):
            kind = chosen(kind, node)
        return Cursor(
            node=node,
            kind=kind,
            where=joined(self.where),
            leaf=joined(self.leaf),
            prefix=self.prefix,
            collector=self.collector,
        )


def chosen(kind: Kind, node: Node) -> Kind:
    """Return the alternative that accepts the form of a node; the first if none does."""
    if not isinstance(kind, Either):
        return kind
    return next(
        (alternative for alternative in kind.kinds if accepts(alternative, node)), kind.kinds[0]
    )


def accepts(kind: Kind, node: Node) -> bool:
    """Return whether a node is a text, list or mapping as its kind requires."""
    if isinstance(kind, Either):
        return any(accepts(alternative, node) for alternative in kind.kinds)
    if isinstance(kind, Value):
        is_qualified = isinstance(node, Mapping) and node.get("value") is not None
        return isinstance(node, Scalar) or (is_qualified and not kind.is_plain)
    if isinstance(kind, Text | Name | Reference | Choice | Whole):
        return isinstance(node, Scalar)
    return isinstance(node, Sequence if isinstance(kind, ListOf) else Mapping)
