"""``tauloop design tolerances``: the cheapest tolerances that keep the tool's limits."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.compute.poses_given import PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT


@command(json_file=RESULT)
def tolerances(
    machine: MachineArgument,
    options: tl.ToleranceAllocationOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Choose the cheapest tolerances of parts with which the tool's error stays within limits.

    A tolerance t costs c t0 / t, where t0 is its value in --tolerances and c its cost in --costs.
    The command shows the total cost, the cost of tighter limits, and the cost that a calibration
    saves. Exit code 1 when the tolerances are
    too wide for first-order errors, or redundant loops do not close.
    """
    model = load_model(machine, side, within_limits=within_limits)
    result = tl.allocate_tolerances(model, pose, options)
    finish(result, within_limits=within_limits)
