"""``tauloop cost``: how many operations the functions of a machine take, by formulation, beside the papers' figures."""

from __future__ import annotations

from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import JsonOption, command, finish
from tauloop.model import Model
from tauloop.model.operation_counts import CountOptions, count_operations


@command()
def cost(
    machine: MachineArgument,
    options: CountOptions,
    side: SideOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the operations of a machine's functions, all numbers baked in, after sharing common subexpressions.

    Kinematics are included in every row, so the parts of a velocity matrix do not add up to the whole; a Newton
    block is counted apart, per iteration. What a paper prints of its own machine stands below ours.
    """
    finish(count_operations(announced(Model(load_machine(machine, side))), options), as_json)
