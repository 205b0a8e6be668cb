"""``tauloop accuracy tolerances``: errors of the tool due to tolerances of parts and joints."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.compute.poses_given import PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT


@command(json_file=RESULT)
def tolerances(
    machine: MachineArgument,
    options: tl.ToleranceMapOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Compute the largest errors of the tool due to tolerances, at a pose or over the workspace.

    Actuators are locked. If legs share a parameter, its error can differ between legs. Exit code 1
    when the tolerances are too wide for first-order errors, or redundant loops do not close.
    """
    model = load_model(machine, side, within_limits=within_limits)
    result = tl.tolerance_map(model, pose, options)
    finish(result, within_limits=within_limits)
