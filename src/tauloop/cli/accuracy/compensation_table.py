"""``tauloop accuracy compensation-table``: corrections of motors over a grid of poses."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, text_file
from tauloop.cli.outputs import CSV, RESULT
from tauloop.cli.terminal.screen import bar


@command(out=CSV.of("the corrections"), json_file=RESULT)
def compensation_table(
    machine: MachineArgument,
    options: tl.CompensationTableOptions,
    side: SideOption = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Write a lookup table of motor corrections for weight, wrench and temperatures.

    The grid is refined until the error of the tool midway between grid points is below
    --table-tolerance.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("points") as progress:
        result = tl.compensation_table(model, options, progress=progress)
    finish(result, text_file(out, result.to_csv))
