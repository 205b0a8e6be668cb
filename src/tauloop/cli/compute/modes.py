"""``tauloop modes``: all ways in which a machine can be assembled at one position."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    ThreadsOption,
    WithinLimitsOption,
    load_model,
)
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT
from tauloop.cli.terminal.progress import bars, search


@command(figure=FIGURE, json_file=RESULT)
def modes(
    machine: MachineArgument,
    options: tl.ModeOptions,
    side: SideOption = None,
    position: Annotated[
        str | None,
        typer.Option(
            help="What is given, such as 'motor_1=20deg,motor_2=1.2' (SI); the rest as at reference."
        ),
    ] = None,
    working: Annotated[
        bool,
        typer.Option(
            "--working", help="The platform's position is given; list the postures of the legs."
        ),
    ] = False,
    figure: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: ThreadsOption = "1",
) -> None:
    """List all assembly modes: every pose in which the loops close at given actuator positions.

    What is beyond a stop in a mode is named; --within-limits leaves such modes out, and refuses
    where no other is. Exit code 1 when the diagnostics leave a doubt whether these are all.
    """
    model = load_model(machine, side, threads=threads)
    with bars() as report:
        result = (tl.working_modes if working else tl.assembly_modes)(
            model, position, options, report=search(report)
        )
    if within_limits:
        result = result.within_limits()
    finish(result, figure=figure)
