"""``tauloop convert``: a machine in another format, and what that format cannot represent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import any_ending, command, finish
from tauloop.cli.outputs import FIGURE


@command(target=any_ending, figure=FIGURE)
def convert(
    machine: MachineArgument,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="File of the machine; arm.urdf gets arm.urdf.side.yaml next to it.",
        ),
    ],
    options: tl.ConvertOptions,
    side: SideOption = None,
) -> None:
    """Write a machine as a machine file (YAML), for MuJoCo (MJCF), for Gazebo (SDF), or as URDF.

    A machine file reads back to an equal machine, with all its parameters. The other formats
    contain numbers only, and their rods are bodies. A side file has what a URDF or SDF cannot
    represent, and losses are listed. The written file is read again and compared at random states;
    exit code 1 when forces or tool poses differ.
    """
    conversion = tl.convert(load_machine(machine, side), target, options)
    finish(conversion, written=conversion.written.files)
