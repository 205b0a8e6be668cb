"""``tauloop jacobian``: the Jacobian of tool, actuators or platform at a pose."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.compute.poses_given import ActuatorsOption, PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish


@command()
def jacobian(
    machine: MachineArgument,
    options: tl.JacobianOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    actuators: ActuatorsOption = None,
) -> None:
    """Compute the Jacobian of tool, actuators or platform at one pose.

    Its columns belong to the velocities of the platform or of the actuators. Exit code 1 when the
    pose is singular or beyond a stop.
    """
    model = load_model(machine, side, within_limits=options.within_limits)
    result = tl.jacobian(model, pose=pose, actuators=actuators, options=options)
    finish(result)
