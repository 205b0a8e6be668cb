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

    Exit code 1 when it assembles but does not work as described: no actuator, independent
    coordinates that are constant or do not determine the pose, a start outside its limits, loops of
    unclear rank. Exit code 2 when it cannot be read or its loops do not close. Exit code 0 with
    notes: a regular pose replaces a singular reference pose, degrees of freedom without an actuator
    (--driven rejects them), redundant actuators, a guessed assembly mode.
    """
    finish(tl.check(load_machine(machine, side), options))
