"""``tauloop accuracy compensate``: motor positions that correct for load and heat."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.compute.poses_given import PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, text_file
from tauloop.cli.outputs import CSV, RESULT


@command(out=CSV.of("the corrected motor positions"), json_file=RESULT)
def compensate(
    machine: MachineArgument,
    options: tl.CompensationOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Correct motor positions for deflection by load and inertia, and for heat.

    The remaining error of the tool is listed by direction, because a machine with fewer than six
    degrees of freedom cannot correct all directions. Exit code 1 when the correction is doubtful,
    or the pose is beyond a stop.
    """
    model = load_model(machine, side, within_limits=within_limits)
    result = tl.compensate(model, pose, options)
    finish(result, text_file(out, result.to_csv), within_limits=within_limits)
