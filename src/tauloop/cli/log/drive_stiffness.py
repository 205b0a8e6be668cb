"""``tauloop log drive-stiffness``: stiffness and damping of drives, from logs of both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT


@command(json_file=RESULT)
def drive_stiffness(
    machine: MachineArgument,
    log: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG",
            help="One or several recordings with position.ACTUATOR and force.ACTUATOR of the motor, "
            "and position.COORDINATE of all coordinates that it drives, or of the platform.",
        ),
    ],
    options: tl.DriveStiffnessOptions,
    side: SideOption,
) -> None:
    """Identify stiffness and damping of drives from the positions of motor and load.

    The model of the load is not needed. Exit code 1 when the result is doubtful, for example when
    the noise of the encoders hides the deflection.
    """
    finish(tl.identify_drive_stiffness(load_model(machine, side), log, options))
