"""What may stand somewhere in a machine file: the building blocks of `tauloop.mechanism.grammar`."""

from __future__ import annotations

from collections.abc import Collection

from tauloop.mechanism.units import Dimension
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A physical value: number, literal with unit, expression, or a mapping `QUALIFIED`.

    Attributes:
        linear: its dimension; None where any will do, or one of `among`.
        angular: its dimension where it belongs to a turning freedom, if different.
        group: parameter group that its leaves belong to; empty for a value that only steers a computation and is
            read as a plain number.
        sign: "positive", "not negative", "not zero" or empty.
        among: dimensions that it may have, where there are several.
    """

    linear: Dimension | None
    angular: Dimension | None = None
    group: str = ""
    sign: str = ""
    among: tuple[Dimension, ...] = ()

    def dimension(self, is_angular: bool) -> Dimension | None:
        """What is asked for, on a turning or a sliding freedom."""
        return self.angular if is_angular and self.angular is not None else self.linear

    def dimensions(self, is_angular: bool) -> tuple[Dimension, ...]:
        """All that it may be; none where any will do."""
        dimension = self.dimension(is_angular)
        return self.among if dimension is None else (dimension,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Free text; `is_needed` where an empty one says nothing."""

    is_needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A new name: letters, digits and underscores, a letter first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The name of something defined elsewhere; it may hold dots."""

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
    """A list, of a certain length if one is given; not empty."""

    item: Kind
    length: int | None = None
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOf:
    """A mapping from names to things of one kind.

    Attributes:
        item: what stands behind the names.
        key: what the names are.
        is_known: whether they name what is defined elsewhere, whose reader looks them up.
        may_be_empty: whether there may be none.
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
        name: its name in the schema and on the reference page.
        doc: what it describes.
        fields: its keys.
    """

    name: str
    doc: str
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        """The field of that name."""
        return next((field for field in self.fields if field.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Either:
    """Alternatives, told apart by what stands there: text, a list, or a mapping."""

    kinds: tuple[Kind, ...]


Kind = Value | Text | Name | Reference | Choice | Whole | ListOf | MapOf | Shape | Either


def field(name: str, kind: Kind, doc: str, required: bool = False) -> Field:
    """A key that may be left out."""
    return Field(name=name, kind=kind, doc=doc, required=required)


def need(name: str, kind: Kind, doc: str) -> Field:
    """A key that must be there."""
    return Field(name=name, kind=kind, doc=doc, required=True)
