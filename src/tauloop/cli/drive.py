"""``tauloop drive``: a step of a drive line: criteria, limit cycle, figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tauloop.cli.output import JsonOption, command, figure_ending, finish
from tauloop.drives import DriveOptions, load_drive
from tauloop.drives import drive as driven
from tauloop.errors import InputError, Problem
from tauloop.report.drive_figure import drive_figure


@command(figure=figure_ending)
def drive(
    line: Annotated[str, typer.Argument(help="A shipped drive line (dual_motor_axis, ...), or a drive-line file.")],
    options: DriveOptions,
    beside: Annotated[
        str | None, typer.Option(help="A second drive line, for the figure: the same step beside the first.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate a step of a drive line with its control, and judge it.

    Exit code 1 when the run diverges or is given up.
    """
    if beside is not None and figure is None:
        what = "given without --figure, the only thing that it changes"
        raise InputError(Problem(where="--beside", what=what, remedy="name a figure, or leave it out"))
    found = driven(load_drive(line), options)
    picture = None
    if figure is not None:
        shown = {found.line.name: found}
        if beside is not None:
            second = driven(load_drive(beside), replace(options, parameters={}, cycle=False))
            shown[second.line.name] = second
        title = f"Step of {options.step:g} of {' and '.join(shown)}"
        records = {name: one.record for name, one in shown.items()}
        picture = drive_figure(records, found.line.performance.of, title=title)
    finish(found, as_json, figure=figure, picture=picture)
