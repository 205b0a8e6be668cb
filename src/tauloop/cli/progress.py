"""Bars of progress while a workflow is at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, TaskID

#: Called with the phase of a workflow (and, behind a comma, how it stands), what is done of it and to do.
Report = Callable[[str, float, float | None], None]


@contextmanager
def bars(is_quiet: bool) -> Iterator[Report]:
    """One bar for each phase, on standard error, all gone when the work is done."""
    with Progress(console=Console(stderr=True), transient=True, disable=is_quiet) as progress:
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
