"""``tauloop fold``: dynamic parameters of a machine from many logs, folded where they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import any_ending, command, finish, folder as a_folder
from tauloop.cli.progress import bar


@command(out=any_ending, folder=a_folder, json_file=any_ending)
def fold(
    machine: MachineArgument,
    log: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG", help="Recordings, as of `tauloop identify`; any number of them."
        ),
    ],
    options: tl.FoldOptions,
    side: SideOption = None,
    folder: Annotated[
        Path,
        typer.Option(
            help="Write what is made of each log into this folder, from which --resume goes on."
        ),
    ] = Path("folded"),
    out: Annotated[
        Path | None,
        typer.Option(help="Write the triangle of all logs to this NumPy file, for a later --add."),
    ] = None,
) -> None:
    """Identify base parameters from any number of logs: each is folded into a small triangle by a worker.

    The result is that of identify with all logs at once, whose samples would have to be in memory
    together. A log that comes later is folded into a written triangle by --add, without reading the
    old ones. Exit code 1 when the result is doubtful: it says what is wrong with which logs.
    """
    mechanism = load_model(machine, side).mechanism
    with bar("readings") as progress:
        result = tl.fold_logs(mechanism, log, folder, options, progress=progress)
    finish(result, (out, result.write_triangle))
