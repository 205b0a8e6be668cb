"""``tauloop jacobian``: how the tool, the actuators and the platform move together."""

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
    platform: PoseOption = None,
    actuators: ActuatorsOption = None,
) -> None:
    """The Jacobian of the tool, the actuators or the platform at one pose, per unit of platform or actuators.

    Exit code 1 when the pose is singular or beyond a stop.
    """
    model = load_model(machine, side, within_limits=options.within_limits)
    result = tl.jacobian(model, platform=platform, actuators=actuators, options=options)
    finish(result)
