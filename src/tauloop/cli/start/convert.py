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
            help="File to write; for arm.urdf, arm.urdf.side.yaml is written next to it.",
        ),
    ],
    options: tl.ConvertOptions,
    side: SideOption = None,
) -> None:
    """Write a machine as a machine file (YAML), for MuJoCo (MJCF), for Gazebo (SDF), or as URDF.

    Reading a machine file gives an equal machine, with all its parameters. The other formats
    contain only numbers, and rods become bodies. A side file contains the data that a URDF or SDF
    cannot represent; all other losses are listed. The written file is read again and compared at
    random states. Exit code 1 when forces or tool poses differ.
    """
    conversion = tl.convert(load_machine(machine, side), target, options)
    finish(conversion, written=conversion.written.files)
