"""Bars of progress while a workflow is at work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, TaskID

#: Called with the phase of a workflow, what is done of it and what there is to do.
Report = Callable[[str, float, float], None]


@contextmanager
def bars(is_quiet: bool) -> Iterator[Report]:
    """One bar for each phase, on standard error, all gone when the work is done."""
    with Progress(console=Console(stderr=True), transient=True, disable=is_quiet) as progress:
        phases: dict[str, TaskID] = {}

        def report(phase: str, done: float, total: float) -> None:
            if phase not in phases:
                phases[phase] = progress.add_task(phase)
            progress.update(phases[phase], completed=done, total=total)

        yield report
