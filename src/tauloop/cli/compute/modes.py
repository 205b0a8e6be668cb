"""``tauloop modes``: all assembly modes or working modes of a machine at one position."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.compute.poses_given import ActuatorsOption, PoseOption
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT
from tauloop.cli.terminal.screen import bars, search_progress


@command(figure=FIGURE, json_file=RESULT)
def modes(
    machine: MachineArgument,
    options: tl.ModeOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    actuators: ActuatorsOption = None,
    working: Annotated[
        bool,
        typer.Option("--working", help="List working modes, at --pose or at the reference pose."),
    ] = False,
    figure: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """List all assembly modes: every pose in which the loops close at given actuator positions.

    With --pose or --working it lists all working modes: every posture of the legs at a pose. A mode
    beyond a stop is reported; --within-limits omits these modes, and rejects a position
    without any other mode. Exit code 1 when the diagnostics do not confirm that the list is
    complete.
    """
    if actuators is not None and (working or pose is not None):
        what = "cannot be combined with a pose of the platform"
        raise tl.InputError.of("actuators", what, "give one of them")
    model = load_model(machine, side, threads=threads)
    with bars() as report:
        if working or pose is not None:
            result = tl.working_modes(model, pose, options, report=search_progress(report))
        else:
            result = tl.assembly_modes(model, actuators, options, report=search_progress(report))
    if within_limits:
        result = result.within_limits()
    finish(result, figure=figure)
