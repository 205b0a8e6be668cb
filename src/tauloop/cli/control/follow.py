"""``tauloop control follow``: a trajectory under sampled controllers, with and without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish, log_file
from tauloop.cli.outputs import FIGURE, RESULT, TABLE
from tauloop.cli.terminal.screen import bar


@command(out=TABLE.of("the motion under the last controller"), figure=FIGURE, json_file=RESULT)
def follow(
    machine: MachineArgument,
    options: tl.ControlOptions,
    coupling: tl.FmuCoupling,
    side: SideOption,
    out: Path | None = None,
    compiled: Annotated[
        bool,
        typer.Option(
            "--compiled",
            help="Run the code that `tauloop export controller` writes for these laws.",
        ),
    ] = False,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Follow a trajectory under sampled controllers, and report the tracking errors.

    With --fmu, a third-party FMU is a drive, or the controller itself. Exit code 1 when a run ends
    early (out of reach, singular, not finite) or goes beyond a stop; saturated forces are reported.
    """
    with bar("controllers") as progress:
        model = load_model(machine, side, threads=threads)
        if coupling != tl.FmuCoupling():
            if compiled:
                raise tl.InputError.of("compiled", "has no effect with --fmu", "omit --compiled")
            result: Any = tl.co_simulate(model, options, coupling, progress=progress)
        else:
            follow_path = tl.follow_path_with_exported_code if compiled else tl.follow_path
            result = follow_path(model, options, progress=progress)
    finish(result, log_file(out, result.log), within_limits=within_limits)
