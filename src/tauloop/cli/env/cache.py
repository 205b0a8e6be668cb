"""``tauloop env cache``: the cache of compiled libraries."""

from __future__ import annotations

from tauloop.cli.output import command, finish
from tauloop.compiler.c import CacheOptions, compiled_cache


@command()
def cache(options: CacheOptions) -> None:
    """List the cached compiled libraries, or remove them.

    Exit code 1 when a library is damaged or could have been written by another user: it is not
    loaded but compiled again.
    """
    finish(compiled_cache(options))
