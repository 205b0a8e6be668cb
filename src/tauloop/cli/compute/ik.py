"""``tauloop ik``: the actuators' positions at a given pose of the platform."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.compute.poses_given import PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WorkersOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.terminal.screen import bars, search_progress


@command()
def ik(
    machine: MachineArgument,
    options: tl.KinematicsOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    threads: WorkersOption = "1",
) -> None:
    """Compute inverse kinematics: the actuator positions at a given pose of the platform.

    The working mode is that of the reference pose; --all-modes lists every posture of the legs.
    Exit code 1 when a pose is beyond a stop, or when continuation along a straight line from the
    reference pose does not reach it.
    """
    model = load_model(machine, side, within_limits=options.within_limits, threads=threads)
    with bars(not options.all_modes) as report:
        finish(tl.inverse_kinematics(model, pose, options, report=search_progress(report)))
