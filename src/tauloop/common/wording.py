"""Wording of messages."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun in the singular or plural, such as ``1 sample``.

    Args:
        number: the number.
        noun: singular of the noun, with its adjectives.
        plural: plural of the noun; the singular with an "s" if empty.

    Examples:
        >>> counted(1, "pose"), counted(2, "pose"), counted(0, "entry", "entries")
        ('1 pose', '2 poses', '0 entries')
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
