"""Progress bars of workflows."""

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

#: Called with the phase of a workflow (and its state after a comma), the completed and the total
#: work.
Report = Callable[[str, float, float | None], None]


@contextmanager
def bars(is_silent: bool = False) -> Iterator[Report]:
    """Return a context with a bar for each phase and its remaining time, on standard error.

    The bars disappear at the end. There are no bars for JSON, for a quiet command, or if standard
    output or error is not a terminal.
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
    """Return a context with the bar of a workflow of one phase, as its progress function."""
    with bars() as report:
        yield partial(report, phase)


class TimeLeft(ProgressColumn):
    """The remaining time at the average rate so far, from the first step on."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Return hours, minutes and seconds; the elapsed time before the first step is done."""
        if not task.completed or not task.total:
            return Text(f"{_clock(task.elapsed)} so far")
        return Text(f"{_clock((task.elapsed or 0.0) * (task.total / task.completed - 1.0))} left")


def _clock(seconds: float | None) -> str:
    return str(timedelta(seconds=round(seconds or 0.0)))


def search(report: Report) -> Callable[[Any], None]:
    """Return the progress function of a search for modes: one bar for each phase of a block."""
    return lambda at: report(
        f"block {at.block} of {at.blocks}: {at.phase}, {at.solutions} known", at.done, at.total
    )
