"""``tauloop model base-parameters``: the base parameters of a machine as formulas."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.terminal.screen import bar


@command()
def base_parameters(
    machine: MachineArgument, options: tl.SymbolicBaseOptions, side: SideOption
) -> None:
    """Derive base parameters, the identifiable combinations of inertial parameters.

    The results are formulas in the machine's lengths. Exit code 1 when the formulas do
    not hold at other lengths.
    """
    mechanism = load_model(machine, side).mechanism
    with bar("base parameters") as progress:
        result = tl.symbolic_base_parameters(mechanism, options, progress=progress)
    finish(result)
