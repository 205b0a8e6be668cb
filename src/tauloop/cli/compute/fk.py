"""``tauloop fk``: the platform's pose at given positions of the actuators."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.compute.poses_given import ActuatorsOption
from tauloop.cli.machine import MachineArgument, SideOption, WorkersOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.terminal.screen import bars, search_progress


@command()
def fk(
    machine: MachineArgument,
    options: tl.KinematicsOptions,
    side: SideOption = None,
    actuators: ActuatorsOption = None,
    threads: WorkersOption = "1",
) -> None:
    """Compute forward kinematics: the poses of platform and tool at given actuator positions.

    The pose is continued from the reference pose; --all-modes lists every pose in which the loops
    close. Passive degrees of freedom without a value come to rest under springs, gravity and stops.
    Exit code 1 when a pose is beyond a stop, when continuation along a straight line from the
    reference pose does not reach it, or when springs, gravity and stops do not determine a passive
    degree of freedom.
    """
    model = load_model(machine, side, within_limits=options.within_limits, threads=threads)
    with bars(not options.all_modes) as report:
        finish(tl.forward_kinematics(model, actuators, options, report=search_progress(report)))
