"""``tauloop log subtract``: forces of the structure from runs with and without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import command, finish, log_file
from tauloop.cli.outputs import FIGURE, TABLE
from tauloop.cli.terminal.screen import bar


@command(out=TABLE.of("positions and the difference of the forces"), figure=FIGURE)
def subtract(
    connected: Annotated[
        Path,
        typer.Argument(
            metavar="CONNECTED",
            help="Log of the run with the structure: columns time, position.NAME, force.NAME; "
            "velocity.NAME is copied.",
        ),
    ],
    disconnected: Annotated[
        Path,
        typer.Argument(
            metavar="DISCONNECTED", help="Log of the same motion without the structure."
        ),
    ],
    options: tl.SubtractionOptions,
    out: Path | None = None,
) -> None:
    """Subtract the actuators' own forces, measured without the structure, sample by sample.

    The runs are aligned by their positions. `tauloop identify` reads the result, for a machine
    whose carts, drives and friction are zero. Exit code 1 when the motions differ too much for
    their forces to be comparable.
    """
    with bar("runs") as progress:
        result = tl.subtract_actuator_forces(connected, disconnected, options, progress=progress)
    finish(result, log_file(out, result.log_with_noise))
