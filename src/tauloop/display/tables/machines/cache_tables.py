"""Tables of the cache of compiled libraries."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tauloop.common.counts import counted
from tauloop.compiler.c import CompiledCache
from tauloop.display.pieces import Paragraph, Printed
from tauloop.display.tables import table

#: Maximum number of listed libraries.
MAX_LISTED = 20
#: Explanations of the states of libraries that are not loaded.
STATE_TEXTS = {
    "damaged": "differs from its checksum, or other users may write it",
    "unchecked": "without a checksum, from an older version",
}


def cache_tables(cache: CompiledCache) -> Iterator[Printed]:
    """Yield the number of removed files, or the libraries, the last used first."""
    if cache.removed is not None:
        yield f"{cache.folder}: {counted(cache.removed, 'file')} removed"
        return
    libraries = cache.libraries
    yield (
        f"{cache.folder}: {counted(len(libraries), 'library')}, {cache.size / 1e6:.1f} MB of at most "
        f"{cache.largest / 1e6:.0f} MB"
    )
    last_uses = [
        time.strftime("%Y-%m-%d %H:%M", time.localtime(library.used)) for library in libraries
    ]
    rows = (
        (
            library.path.stem,
            library.size / 1e3,
            last_use,
            library.state,
            ", ".join(library.functions),
        )
        for library, last_use in list(zip(libraries, last_uses, strict=True))[:MAX_LISTED]
    )
    if libraries:
        heads = (("library", ""), ("kB", ".0f"), ("used", ""), "state", "functions")
        yield table("Used last", *heads, rows=rows)
    if len(libraries) > MAX_LISTED:
        yield f"and {len(libraries) - MAX_LISTED} more; --json lists all"
    for state, meaning in STATE_TEXTS.items():
        if count := sum(entry.state == state for entry in libraries):
            yield Paragraph(
                text=f"{count} {state}: {meaning}; compiled again when needed", tone="doubtful"
            )
