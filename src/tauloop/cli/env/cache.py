"""``tauloop env cache``: the compiled libraries that are kept, and their removal."""

from __future__ import annotations

from tauloop.cli.output import command, finish
from tauloop.compiler.c import CacheOptions, compiled_cache


@command()
def cache(options: CacheOptions) -> None:
    """List the compiled libraries that are kept, or remove them.

    Exit code 1 when one of them is damaged or could have been written by another user: it is not
    loaded but made anew.
    """
    finish(compiled_cache(options))
