"""What the writer of an unknown name may have meant."""

from __future__ import annotations

from collections.abc import Iterable

from tauloop.common.errors import Problem
from tauloop.common.suggestions import suggestion as suggestion


def listing(names: Iterable[str], most: int = 12) -> str:
    """Names in a row, cut off after the first few."""
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def a(noun: str) -> str:
    """A noun with its article."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun}"


def unknown_names(
    names: Iterable[str], known: Iterable[str], what: str, where: str = "{}", remedy: str = ""
) -> list[Problem]:
    """A problem for each name that is not among those that are known, with what it may have meant.

    Args:
        names: that were given; anything but a text is unknown.
        known: that there are.
        what: is wrong, and where; ``{}`` or ``{!r}`` stands for the name in either.
        where: see above.
        remedy: where nothing is near; the known names to choose among without it.
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
    """What an unknown name may have meant: names of the same leg and of the top come before those of other legs."""
    visible = [name.removeprefix(prefix) for name in known]
    return suggestion(word, [name for name in visible if "." not in name]) or suggestion(
        word, visible
    )
