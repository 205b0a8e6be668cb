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
    """Run a machine with its drive lines as a plant that a controller in another process drives.

    The loop is compiled; packets go over UDP or shared memory. It begins with the hello of a
    controller, and ends after the duration or by Ctrl-C, SIGTERM or SIGHUP, with counts of lost,
    late, repeated and refused packets and of times; what was recorded by then is written. Exit code
    1 where a step takes more than a tenth of its period, or has no solution.
    """
    if out is not None and options.duration is None:
        raise tl.InputError.of("out", "a run without an end has no log", "give a duration")
    result = tl.run_plant(load_model(machine, side), options)
    if out is not None and not result.counts["steps"]:
        reason = "the plant was ended before its first step: there is nothing to write"
        raise tl.InputError.of(
            "out", reason, "start a controller while the plant runs, or give --alone"
        )
    finish(result, log_file(out, result.to_xarray))
