"""``tauloop tune``: the control of a drive line tuned by simulated steps."""

from __future__ import annotations

from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.interrupts import keeping
from tauloop.cli.output import FigureOption, JsonOption, command, figure_ending, finish
from tauloop.cli.progress import bars
from tauloop.drives import load_drive


@command(figure=figure_ending)
def tune(
    line: Annotated[
        str, typer.Argument(metavar="LINE", help="A shipped drive line (dual_motor_axis, ...), or a drive-line file.")
    ],
    options: tl.TuningOptions,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tune parameters of a drive line: the least cost of a step of its reference, within bounds.

    The first Ctrl-C ends the search with the best so far. Exit code 1 when the result is doubtful; it says why.
    """
    drive = load_drive(line)
    steps = options.budget * options.starts
    with keeping(), bars(as_json) as report:
        result = tl.tune(drive, options, watcher=lambda count, _: report("steps", count, steps))
    finish(result, as_json, figure=figure)
