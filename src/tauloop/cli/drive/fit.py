"""``tauloop drive fit``: parameters of a drive line from measured steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import LineArgument
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE
from tauloop.cli.terminal.screen import bar
from tauloop.drives import load_drive


@command(figure=FIGURE)
def fit(
    line: LineArgument,
    steps: Annotated[
        Path,
        typer.Argument(metavar="STEPS", help="A file of measured steps (docs/drive-tuning.md)."),
    ],
    options: tl.DriveLineFitOptions,
) -> None:
    """Identify drive-line parameters from measured steps, and report undetermined parameters.

    Exit code 1 when the fit misses a measured value by more than three tolerances.
    """
    drive = load_drive(line)
    with bar("search") as progress:
        result = tl.fit_drive_line(drive, steps, options, progress=progress)
    finish(result)
