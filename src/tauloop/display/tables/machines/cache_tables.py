"""Tables of the cache of compiled libraries."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tauloop.compiler.c import CompiledCache
from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import table

#: Libraries that are listed.
LISTED = 20
#: What is meant by the states of libraries that are not loaded.
STATE_TEXTS = {
    "damaged": "differs from its checksum, or others may write it",
    "unchecked": "without a checksum, of an older version",
}


def cache_tables(cache: CompiledCache) -> Iterator[Printed]:
    """Yield the number of removed files, or the libraries, last used first, with rejected ones."""
    if cache.removed is not None:
        yield f"{cache.folder}: {cache.removed} files removed"
        return
    kept = cache.libraries
    yield (
        f"{cache.folder}: {len(kept)} libraries, {cache.size / 1e6:.1f} MB of at most {cache.largest / 1e6:.0f} MB"
    )
    used = [time.strftime("%Y-%m-%d %H:%M", time.localtime(library.used)) for library in kept]
    rows = (
        (library.path.stem, library.size / 1e3, at, library.state, ", ".join(library.functions))
        for library, at in list(zip(kept, used, strict=True))[:LISTED]
    )
    if kept:
        heads = (("library", ""), ("kB", ".0f"), ("used", ""), "state", "functions")
        yield table("Used last", *heads, rows=rows)
    if len(kept) > LISTED:
        yield f"and {len(kept) - LISTED} more; --json lists all"
    for state, what in STATE_TEXTS.items():
        if count := sum(entry.state == state for entry in kept):
            yield Paragraph(
                text=f"{count} {state}: {what}; compiled again when needed", tone="doubtful"
            )
