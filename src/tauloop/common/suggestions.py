"""Suggestions of similar names for misspelt ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: Longer words are not compared: names are short.
MAX_LENGTH = 60
#: Maximum number of names that are compared: a machine has hundreds of names.
MAX_NAMES = 2000


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a sentence ``did you mean a or b?``; an empty text if no name is similar."""
    candidates = {name.lower(): name for name in list(known)[:MAX_NAMES]}
    if len(word) > MAX_LENGTH:
        return ""
    near = difflib.get_close_matches(word.lower(), candidates, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(candidates[name] for name in near)}?" if near else ""
