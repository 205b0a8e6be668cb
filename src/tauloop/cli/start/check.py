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

    Exit code 1 when the machine assembles but does not work as described, for example because it
    has no actuators. Exit code 2 when the file cannot be read or the loops do not close. Notes,
    such as on degrees of freedom without an actuator, leave exit code 0 (--driven rejects them).
    """
    finish(tl.check(load_machine(machine, side), options))
