"""Lookup by name; an unknown name is an error that suggests similar names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, SupportsIndex, TypeVar, overload

from tauloop.common.errors import InputError
from tauloop.mechanism.suggestions import listing, suggestion


class HasName(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name it is found by."""
        ...


T = TypeVar("T", bound=HasName)


def by_name(items: Iterable[T], name: str, kind: str) -> T:
    """Return the item with this name.

    Args:
        items: the items to search.
        name: its name.
        kind: noun for the error: "body", "parameter".

    Raises:
        InputError: there is none, with the names that are near.
    """
    items = tuple(items)
    return items[place(name, [item.name for item in items], kind)]


def place(name: str, names: Iterable[str], kind: str) -> int:
    """Return the index of a name in a sequence.

    Raises:
        InputError: it does not exist; the message suggests similar names.
    """
    names = list(names)
    if name not in names:
        remedy = suggestion(str(name), names) or (
            f"there are {listing(names)}" if names else f"there is no {kind}"
        )
        raise InputError.of(str(name), f"no {kind} has this name", remedy)
    return names.index(name)


class Named(tuple[T, ...]):
    """A sequence whose items are found by index or by name."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[T, ...]: ...
    def __getitem__(self, key: SupportsIndex | slice | str) -> T | tuple[T, ...]:
        return by_name(self, key, "entry") if isinstance(key, str) else super().__getitem__(key)

    def __repr__(self) -> str:
        return f"{len(self)}: {listing(item.name for item in self)}"
