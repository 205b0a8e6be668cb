"""``tauloop env doctor``: a check of this computer and its installation."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.output import command, finish


@command()
def doctor() -> None:
    """Show versions, compiler, cache, extras and GPU, and how to install what is missing.

    Exit code 1 when compiled functions differ from the interpreter's. Attach the JSON output to bug
    reports.
    """
    finish(tl.doctor())
