"""Bars of progress while a workflow is at work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
)
from rich.text import Text

from tauloop.cli.asked import is_json, is_quiet
from tauloop.cli.terminal.screen import Screen
from tauloop.common import progress

#: Called with the phase of a workflow (and, behind a comma, how it stands), what is done of it and
#: to do.
Report = Callable[[str, float, float | None], None]


@contextmanager
def bars(is_silent: bool = False) -> Iterator[Report]:
    """One bar for each phase, with the time that is left, on standard error; all gone when the work is done.

    None where the command prints JSON or is quiet, nor where standard output or error is no
    terminal: nobody looks.
    """
    silent = (
        is_silent or is_json() or is_quiet() or not (sys.stdout.isatty() and sys.stderr.isatty())
    )
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeLeft(),
    )
    with Progress(*columns, console=Screen(stderr=True), transient=True, disable=silent) as shown:
        phases: dict[str, TaskID] = {}

        def report(phase: str, done: float, total: float | None) -> None:
            name = phase.partition(",")[0]
            if name not in phases:
                phases[name] = shown.add_task(phase)
            shown.update(phases[name], description=phase, completed=done, total=total)

        yield report


@contextmanager
def bar(phase: str) -> Iterator[progress.Progress]:
    """The bar of a workflow of one phase: what it calls with what is done and what there is to do."""
    with bars() as report:
        yield partial(report, phase)


class TimeLeft(ProgressColumn):
    """The time that is left, if the rest goes as what is done: from the first step on, however far apart they are."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Hours, minutes and seconds; those so far before anything is done."""
        if not task.completed or not task.total:
            return Text(f"{_clock(task.elapsed)} so far")
        return Text(f"{_clock((task.elapsed or 0.0) * (task.total / task.completed - 1.0))} left")


def _clock(seconds: float | None) -> str:
    return str(timedelta(seconds=round(seconds or 0.0)))


def search(report: Report) -> Callable[[Any], None]:
    """What a search for modes calls with its `SearchProgress`: one bar for each phase of a block."""
    return lambda at: report(
        f"block {at.block} of {at.blocks}: {at.phase}, {at.solutions} known", at.done, at.total
    )
