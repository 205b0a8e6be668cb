"""``tauloop model cost``: operations of a machine's functions by formulation, next to papers' counts."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT
from tauloop.cli.terminal.progress import bar


@command(json_file=RESULT)
def cost(machine: MachineArgument, options: tl.CountOptions, side: SideOption = None) -> None:
    """Count the operations of a machine's functions, all numbers baked in, after sharing common subexpressions.

    Kinematics are included in every row, so the parts of a velocity matrix do not add up to the
    whole; a Newton block is counted apart, per iteration. What a paper prints of its own machine
    stands below ours.
    """
    model = load_model(machine, side)
    with bar("functions") as progress:
        result = tl.count_operations(model, options, progress=progress)
    finish(result)
