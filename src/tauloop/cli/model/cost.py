"""``tauloop model cost``: operation counts of a machine's functions by formulation."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT
from tauloop.cli.terminal.screen import bar


@command(json_file=RESULT)
def cost(machine: MachineArgument, options: tl.CountOptions, side: SideOption = None) -> None:
    """Count the operations of a machine's functions with constant parameters.

    Common subexpressions count once. Every row includes kinematics, so the parts of a velocity
    matrix do not add up to the whole. A Newton block is counted separately, per iteration. If a
    paper states counts for the machine, they are listed under Tauloop's counts. Counts that take
    long are computed only on request; the last lines list them with their options.
    """
    model = load_model(machine, side)
    with bar("functions") as progress:
        result = tl.count_operations(model, options, progress=progress)
    finish(result)
