"""``tauloop log track``: payload and friction along a log, estimated as on a controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import (
    command,
    finish,
    log_file,
)
from tauloop.cli.outputs import FIGURE, FOLDER, RESULT, TABLE
from tauloop.cli.terminal.screen import bar
from tauloop.export.microcontroller import export_tracker


@command(
    out=TABLE.of("estimates and deviations over time"),
    figure=FIGURE,
    tracker_c=FOLDER.of("the observer as C code for a controller"),
    json_file=RESULT,
)
def track(
    machine: MachineArgument,
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="Recording with the positions and forces of all actuators, as for identify.",
        ),
    ],
    fit: Annotated[
        Path,
        typer.Argument(
            metavar="FIT", help="Saved fit: the JSON file that `tauloop identify --out` wrote."
        ),
    ],
    options: tl.TrackOptions,
    side: SideOption,
    out: Path | None = None,
    tracker_c: Path | None = None,
) -> None:
    """Track payload and friction along a log by a recursive fit, starting from a saved fit.

    Samples pass causal filters, as on a controller. Exit code 1 when the saved fit does not match
    the log.
    """
    model = load_model(machine, side)
    with bar("samples") as progress:
        result = tl.track_parameters(model, log, fit, options, progress=progress)
    written: tuple[Path, ...] = ()
    if tracker_c is not None:
        code = export_tracker(model, fit, options, filters=result.filters, folder=tracker_c)
        written = code.written
    finish(result, log_file(out, result.log), written=written)
