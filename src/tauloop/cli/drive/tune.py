"""``tauloop drive tune``: tuning of a drive line's control by simulated steps."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import LineArgument
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE
from tauloop.cli.terminal.process import keeping
from tauloop.cli.terminal.screen import bars
from tauloop.drives import load_drive


@command(figure=FIGURE)
def tune(
    line: LineArgument,
    options: tl.TuningOptions,
) -> None:
    """Tune parameters of a drive line to minimize the cost of its step response, within bounds.

    The first Ctrl-C ends the search with the best result so far. Exit code 1 when the result is
    doubtful; the reason is printed.
    """
    drive = load_drive(line)
    steps = options.budget * options.starts
    with keeping(), bars() as report:
        result = tl.tune_drive_line(
            drive, options, watcher=lambda count, _: report("steps", count, steps)
        )
    finish(result)
