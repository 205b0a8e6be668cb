"""``tauloop drive step``: step response of a drive line, its performance and limit cycle."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import LineArgument
from tauloop.cli.output import (
    command,
    finish,
    log_file,
)
from tauloop.cli.outputs import FIGURE, FOLDER, RESULT, TABLE
from tauloop.drives import load_drive
from tauloop.export.drive_control import export_control

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@command(
    out=TABLE.of("all signals"),
    figure=FIGURE,
    control_c=FOLDER.of("the control law as C99 with its test program"),
    json_file=RESULT,
)
def step(
    line: LineArgument,
    options: tl.DriveOptions,
    compare: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Compare with this drive line (shipped or a file) in the figure."
        ),
    ] = None,
    out: Path | None = None,
    figure: Path | None = None,
    control_c: Path | None = None,
) -> None:
    """Simulate the step response of a drive line with its control, and report its performance.

    Exit code 1 when the run diverges or is aborted.
    """
    if compare is not None and figure is None:
        what = "affects only the figure, and no figure is written"
        raise tl.InputError(
            tl.Problem(where="compare", what=what, remedy="add --out step.png, or omit --compare")
        )
    results = [tl.simulate_drive_line(load_drive(line), options)]
    if compare is not None:
        results.append(
            tl.simulate_drive_line(load_drive(compare), replace(options, values={}, cycle=False))
        )
    control = None
    if control_c is not None:
        parameters = {name: float(value) for name, value in results[0].options.values.items()}
        control = export_control(results[0].line, parameters, folder=control_c)
    written = () if control is None else control.written

    def draw() -> Figure:
        # Matplotlib is slow to import, and most calls draw nothing.
        from tauloop.display.renderers.result_figures import steps_figure

        return steps_figure(*results)

    log = log_file(out, results[0].to_xarray)
    finish(results[0], log, figure=figure, draw=draw, written=written)
