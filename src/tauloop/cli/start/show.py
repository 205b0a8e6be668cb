"""``tauloop show``: an overview of a machine."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE


@command(figure=FIGURE)
def show(
    machine: MachineArgument,
    options: tl.DescribeOptions,
    side: SideOption = None,
) -> None:
    """Show a machine: coordinates, mobility, loops, actuators, parameters."""
    finish(tl.describe(load_machine(machine, side), options))
