"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable

from tauloop.common.errors import Problem
from tauloop.common.names.suggestions import suggestion as suggestion


def listing(names: Iterable[str], most: int = 12) -> str:
    """Return the names in a row, cut off after the first few."""
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
        names: the given names; anything but a text is unknown.
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
    """Return names similar to an unknown name; those of the same leg and of the top come first."""
    visible = [name.removeprefix(prefix) for name in known]
    return suggestion(word, [name for name in visible if "." not in name]) or suggestion(
        word, visible
    )
