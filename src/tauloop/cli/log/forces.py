"""``tauloop log forces``: external forces on a platform, estimated from a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WorkersOption, load_model
from tauloop.cli.output import command, finish, log_file
from tauloop.cli.outputs import FIGURE, RESULT, TABLE
from tauloop.cli.terminal.screen import bar


@command(out=TABLE.of("the estimates over time"), figure=FIGURE, json_file=RESULT)
def forces(
    machine: MachineArgument,
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="Recording with the positions and forces of all actuators, as for identify.",
        ),
    ],
    options: tl.ExternalWrenchOptions,
    side: SideOption,
    out: Path | None = None,
    threads: WorkersOption = "1",
) -> None:
    """Estimate the external wrench on the platform, and find contacts in a log.

    The contact threshold follows from intervals without contact, which --contact-free states or the
    command detects. Exit code 1 when the result is doubtful, for example when
    another log without contact raises too many alarms.
    """
    with bar("logs") as progress:
        result = tl.estimate_external_wrench(
            load_model(machine, side, threads=threads), log, options, progress=progress
        )
    finish(result, log_file(out, result.log))
