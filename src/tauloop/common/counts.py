"""Numbers with their nouns and verbs, for messages and tables."""

from __future__ import annotations

#: Singular forms of irregular verbs.
_SINGULAR_VERBS = {"are": "is", "do": "does", "have": "has", "were": "was"}


def counted(number: int, noun: str, verb: str = "") -> str:
    """Return a number with its noun, such as "1 pose", "3 poses" or "2 libraries".

    Args:
        number: the number, which may be a NumPy integer.
        noun: noun in the singular, with its adjectives. Its last word gets a regular plural; in
            "degree of freedom", the word before "of".
        verb: verb in the plural that follows, such as "are" or "drive".

    Examples:
        >>> from tauloop.common.counts import counted
        >>> counted(1, "more box"), counted(2, "library"), counted(3, "degree of freedom")
        ('1 more box', '2 libraries', '3 degrees of freedom')
        >>> counted(1, "sample", "are"), counted(2, "sample", "are")
        ('1 sample is', '2 samples are')
    """
    is_one = number == 1
    words = [str(number), noun if is_one else _plural(noun)]
    if verb:
        words.append(_singular_verb(verb) if is_one else verb)
    return " ".join(words)


def _plural(noun: str) -> str:
    """Return the regular plural of a noun."""
    head, of, rest = noun.partition(" of ")
    if of:
        return f"{_plural(head)}{of}{rest}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return f"{noun}es"
    return f"{noun}s"


def _singular_verb(verb: str) -> str:
    """Return the third person singular of a verb."""
    return _SINGULAR_VERBS.get(verb) or f"{verb}s"
