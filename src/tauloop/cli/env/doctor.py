"""``tauloop env doctor``: what this computer has for Tauloop."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.output import command, finish


@command()
def doctor() -> None:
    """List versions, compiler, cache, extras and GPU; what is missing, with the command that brings it.

    Exit code 1 when compiled functions differ from the interpreter's. Put the JSON into reports of
    faults.
    """
    finish(tl.doctor())
