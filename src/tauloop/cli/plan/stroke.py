"""``tauloop plan stroke``: a trajectory along a path, as a table that other commands read."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, log_file
from tauloop.cli.outputs import FIGURE, TABLE
from tauloop.cli.plan.planned import RateOption
from tauloop.cli.values import frequency


@command(out=TABLE.of("time, positions, velocities and accelerations"), figure=FIGURE)
def stroke(
    machine: MachineArgument,
    options: tl.StrokeOptions,
    side: SideOption,
    rate: RateOption = "1000",
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Plan a trajectory: a path, a motion law, and a duration (given, or the shortest possible).

    `tauloop dynamics --motion` reads the table. A path that leaves the workspace or passes through
    a singularity is rejected, and the location is reported. `tauloop plan transfer` optimizes
    the path too (--optimize time, energy or wear); `tauloop plan path` respects more limits along a
    path.
    """
    result = tl.plan_stroke(load_model(machine, side, within_limits=within_limits), options)
    finish(result, log_file(out, lambda: result.log(frequency("--rate", rate))))
