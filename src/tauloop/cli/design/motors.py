"""``tauloop design motors``: motor loads over a motion, and suitable motors and gears."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT
from tauloop.cli.terminal.screen import bar


@command(figure=FIGURE, json_file=RESULT)
def motors(
    machine: MachineArgument,
    motion: Annotated[
        Path,
        typer.Argument(
            metavar="MOTION",
            help="Table of a motion or cycle with positions, velocities and accelerations, as "
            "`plan cycle` and `plan stroke` write it.",
        ),
    ],
    options: tl.MotorSizingOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Size motors and gears for a motion.

    The command shows peak and root mean square of force, speed, power and energy of every motor.
    With a catalogue it ranks motors and gears by mass, and reports the limit that each is closest
    to.
    Exit code 1 when a motor of the machine file cannot drive the motion.
    """
    model = load_model(machine, side, threads=threads)
    with bar("forces") as progress:
        result = tl.size_motors(model, motion, options, progress=progress)
    finish(result, within_limits=within_limits)
