"""``tauloop check``: whether a machine works as its file describes."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE


@command(figure=FIGURE)
def check(
    machine: MachineArgument,
    options: tl.CheckOptions,
    side: SideOption = None,
) -> None:
    """Check a machine file: is it valid, do its loops close, is it driven?

    Exit code 1 when it assembles but does not work as described, such as without actuators.
    Exit code 2 when it cannot be read or its loops do not close. Exit code 0 with notes, such as
    degrees of freedom without an actuator (--driven rejects them).
    """
    finish(tl.check(load_machine(machine, side), options))
