"""Bars of progress while a workflow is at work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

from tauloop.cli.output import is_quiet

#: Called with the phase of a workflow (and, behind a comma, how it stands), what is done of it and to do.
Report = Callable[[str, float, float | None], None]


@contextmanager
def bars(is_silent: bool) -> Iterator[Report]:
    """One bar for each phase, with the time that is left, on standard error; all gone when the work is done.

    None where the command prints JSON or is quiet, nor where standard output or error is no terminal: nobody looks.
    """
    silent = is_silent or is_quiet() or not (sys.stdout.isatty() and sys.stderr.isatty())
    with Progress(console=Console(stderr=True), transient=True, disable=silent) as progress:
        phases: dict[str, TaskID] = {}

        def report(phase: str, done: float, total: float | None) -> None:
            name = phase.partition(",")[0]
            if name not in phases:
                phases[name] = progress.add_task(phase)
            progress.update(phases[name], description=phase, completed=done, total=total)

        yield report


def search(report: Report) -> Callable[[Any], None]:
    """What a search for modes calls with its `SearchProgress`: one bar for each phase of a block."""
    return lambda at: report(f"block {at.block} of {at.blocks}: {at.phase}, {at.solutions} known", at.done, at.total)
