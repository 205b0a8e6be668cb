"""The name that a misspelt one may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Longest word and largest number of names that are compared: a name is short, and a machine has
#: hundreds of names.
MAX_LENGTH, MAX_NAMES = 60, 2000


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a sentence ``did you mean a or b?``; an empty text where no name is similar."""
    candidates = {name.lower(): name for name in list(known)[:MAX_NAMES]}
    if len(word) > MAX_LENGTH:
        return ""
    near = difflib.get_close_matches(word.lower(), candidates, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(candidates[name] for name in near)}?" if near else ""
