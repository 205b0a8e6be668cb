"""``tauloop plan poses``: the poses to measure for a calibration, and their number."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import CSV, FIGURE, RESULT
from tauloop.cli.terminal.screen import bars


@command(out=CSV.of("the selected poses"), figure=FIGURE, json_file=RESULT)
def poses(
    machine: MachineArgument,
    options: tl.PosePlanOptions,
    side: SideOption,
    figure: Path | None = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Choose the poses that determine a calibration best, within reach, limits and clearance.

    Exit code 1 when the uncertainty that the poses leave is larger than the instrument's noise.
    """
    model = load_model(machine, side, within_limits=within_limits, threads=threads)
    with bars() as report:
        plan = tl.plan_poses(model, options, progress=report)
    finish(plan, (out, plan.write_csv), figure=figure)
