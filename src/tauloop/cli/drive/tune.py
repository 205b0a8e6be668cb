"""``tauloop drive tune``: the control of a drive line tuned by simulated steps."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import LineArgument
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE
from tauloop.cli.terminal.interrupts import keeping
from tauloop.cli.terminal.progress import bars
from tauloop.drives import load_drive


@command(figure=FIGURE)
def tune(
    line: LineArgument,
    options: tl.TuningOptions,
) -> None:
    """Tune parameters of a drive line: the least cost of a step of its reference, within bounds.

    The first Ctrl-C ends the search with the best so far. Exit code 1 when the result is doubtful;
    it says why.
    """
    drive = load_drive(line)
    steps = options.budget * options.starts
    with keeping(), bars() as report:
        result = tl.tune_drive_line(
            drive, options, watcher=lambda count, _: report("steps", count, steps)
        )
    finish(result)
