"""``tauloop run plant``: a machine as a plant for hardware in the loop."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish, log_file
from tauloop.cli.outputs import TABLE


@command(out=TABLE.of("forces and measurements (needs a duration)"))
def run_plant(
    machine: MachineArgument,
    options: tl.PlantOptions,
    side: SideOption = None,
    out: Path | None = None,
) -> None:
    """Run a machine with its drive lines as a plant for a controller in another process.

    The loop is compiled; packets use UDP or shared memory. The run starts with the controller's
    hello packet and ends after the duration or by Ctrl-C, SIGTERM or SIGHUP. The command reports
    lost, late, repeated and rejected packets and the times of its steps, and writes the recorded
    log. Exit code 1 when the computation of a step takes more than a tenth of its period, or a step
    has no solution.
    """
    if out is not None and options.duration is None:
        raise tl.InputError.of("out", "a run without a duration has no log", "give a duration")
    result = tl.run_plant(load_model(machine, side), options)
    if out is not None and not result.counts["steps"]:
        reason = "the plant ended before its first step, so there is nothing to write"
        raise tl.InputError.of(
            "out", reason, "start a controller while the plant runs, or give --without-controller"
        )
    finish(result, log_file(out, result.to_xarray))
