"""Output to the terminal: text without control characters, progress bars, and JSON."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
)
from rich.segment import Segment
from rich.text import Text

from tauloop.common import progress

#: Control characters except line ends and tabs, characters that change the direction of text or end
#: lines, and surrogates.
CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
#: Options of every command, set while a command runs, by their names in Python.
SHARED_OPTIONS: ContextVar[Mapping[str, Any]] = ContextVar(
    "SHARED_OPTIONS", default=MappingProxyType({})
)
#: Function that receives the phase of a workflow (with its state after a comma), the completed work
#: and the total work.
Report = Callable[[str, float, float | None], None]


def is_quiet() -> bool:
    """Return whether the running command prints only problems (`--quiet`)."""
    return bool(SHARED_OPTIONS.get().get("quiet"))


def is_json() -> bool:
    """Return whether the running command prints JSON (`--json`)."""
    return bool(SHARED_OPTIONS.get().get("as_json"))


def visible(text: str) -> str:
    """Return text with control characters replaced by their escape sequences."""
    return CONTROL_CHARACTERS.sub(
        lambda match: match[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text
    )


def json_text(data: Any) -> str:
    """Return plain data as JSON, with control characters as equivalent JSON escapes."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)
    return CONTROL_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class Screen(Console):
    """A console that prints text without interpreting markup; control characters are escaped."""

    def __init__(self, **options: Any) -> None:
        """See `rich.console.Console`."""
        super().__init__(markup=False, highlight=False, emoji=False, **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Return segments with visible text; Rich's own styles and cursor movements stay."""
        for segment in super().render(renderable, options):
            if segment.control is None and CONTROL_CHARACTERS.search(segment.text):
                yield Segment(visible(segment.text), segment.style)
            else:
                yield segment

    def on_broken_pipe(self) -> None:
        """Let `streams` handle a closed pipe; Rich would exit with the code of a doubtful result.

        Raises:
            BrokenPipeError: always.
        """
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


@contextmanager
def bars(is_silent: bool = False) -> Iterator[Report]:
    """Return a context with a bar for each phase and its remaining time, on standard error.

    The bars disappear at the end. There are no bars for JSON, for a quiet command, or if standard
    output or error is not a terminal.
    """
    is_terminal = sys.stdout.isatty() and sys.stderr.isatty()
    is_disabled = is_silent or is_json() or is_quiet() or not is_terminal
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeLeft(),
    )
    with Progress(
        *columns, console=Screen(stderr=True), transient=True, disable=is_disabled
    ) as display:
        phases: dict[str, TaskID] = {}

        def report(phase: str, done: float, total: float | None) -> None:
            name = phase.partition(",")[0]
            if name not in phases:
                phases[name] = display.add_task(phase)
            display.update(phases[name], description=phase, completed=done, total=total)

        yield report


@contextmanager
def bar(phase: str) -> Iterator[progress.Progress]:
    """Return a context whose value is the progress function of a workflow with a single phase."""
    with bars() as report:
        yield partial(report, phase)


class TimeLeft(ProgressColumn):
    """Column with the remaining time, estimated from the average time per step."""

    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        """Return the remaining time, or the elapsed time until the first step is done."""
        if not task.completed or not task.total:
            return Text(f"{_clock(task.elapsed)} so far")
        return Text(f"{_clock((task.elapsed or 0.0) * (task.total / task.completed - 1.0))} left")


def _clock(seconds: float | None) -> str:
    """Return a time as hours:minutes:seconds."""
    return str(timedelta(seconds=round(seconds or 0.0)))


def search_progress(report: Report) -> Callable[[Any], None]:
    """Return the progress function of a search for modes: one bar for each phase of a block."""

    def report_search(state: Any) -> None:
        phase = f"block {state.block} of {state.blocks}: {state.phase}, {state.solutions} known"
        report(phase, state.done, state.total)

    return report_search
