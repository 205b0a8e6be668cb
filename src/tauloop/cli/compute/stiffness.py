"""``tauloop stiffness``: stiffness, deflection, stress and buckling of an elastic machine."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.compute.poses_given import ActuatorsOption, PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, text_file
from tauloop.cli.outputs import CSV, FIGURE, RESULT


@command(out=CSV.of("the compliance by part"), figure=FIGURE, json_file=RESULT)
def stiffness(
    machine: MachineArgument,
    options: tl.StiffnessOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    actuators: ActuatorsOption = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Compute stiffness at the tool, deflection, stress and buckling of an elastic machine.

    Motors are locked. Parts are listed by their fraction of the compliance, in descending order.
    The machine file states the sections of rods and bodies, and the stiffness of joints and
    actuators. Exit code 1 when a load exceeds a limit, or the pose is beyond a stop.
    """
    model = load_model(machine, side, within_limits=within_limits)
    result = tl.stiffness(model, pose, options, actuators=actuators)
    finish(result, text_file(out, result.to_csv), within_limits=within_limits)
