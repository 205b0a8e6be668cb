"""Lookup by name, and suggestions of similar names for unknown ones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, SupportsIndex, TypeVar, overload

from tauloop.common.errors import InputError, Problem
from tauloop.common.names.suggestions import suggestion as suggestion


def listing(names: Iterable[str], most: int = 12) -> str:
    """Return the names separated by commas; after the first `most`, only their number."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def a(noun: str) -> str:
    """Return a noun with its article."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def unknown_names(
    names: Iterable[str], known: Iterable[str], what: str, where: str = "{}", remedy: str = ""
) -> list[Problem]:
    """Return a problem for each unknown name, with suggestions.

    Args:
        names: the names to check; anything except a text counts as unknown.
        known: the names that exist.
        what: what is wrong; ``{}`` or ``{!r}`` is replaced by the name.
        where: the place; ``{}`` or ``{!r}`` is replaced by the name.
        remedy: advice where no name is similar; the list of known names if empty.
    """
    known = list(known)
    return [
        Problem(
            where.format(name),
            what.format(name),
            (isinstance(name, str) and suggestion(name, known))
            or remedy
            or f"choose among {listing(known) or 'none'}",
        )
        for name in names
        if not isinstance(name, str) or name not in known
    ]


def nearest(word: str, known: Iterable[str], prefix: str) -> str:
    """Return a suggestion of names similar to an unknown name; names of the same leg come first."""
    visible = [name.removeprefix(prefix) for name in known]
    return suggestion(word, [name for name in visible if "." not in name]) or suggestion(
        word, visible
    )


class HasName(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


T = TypeVar("T", bound=HasName)


def by_name(items: Iterable[T], name: str, kind: str) -> T:
    """Return the item with this name.

    Args:
        items: the items to search.
        name: name of the item.
        kind: noun for the error, such as "body".

    Raises:
        InputError: there is no item with this name; the message suggests similar names.
    """
    items = tuple(items)
    return items[place(name, [item.name for item in items], kind)]


def place(name: str, names: Iterable[str], kind: str) -> int:
    """Return the index of a name in a sequence.

    Raises:
        InputError: the name is not in the sequence; the message suggests similar names.
    """
    names = list(names)
    if name not in names:
        remedy = suggestion(str(name), names) or (
            f"there are {listing(names)}" if names else f"there is no {kind}"
        )
        raise InputError.of(str(name), f"no {kind} has this name", remedy)
    return names.index(name)


class Named(tuple[T, ...]):
    """A tuple whose items can be looked up by index or by name."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[T, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> T | tuple[T, ...]:
        return by_name(self, key, "entry") if isinstance(key, str) else super().__getitem__(key)

    def __repr__(self) -> str:
        return f"{len(self)}: {listing(item.name for item in self)}"
