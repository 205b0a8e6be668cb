"""``tauloop regroup``: the base parameters of a machine as formulas."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import JsonOption, command, finish


@command()
def regroup(
    machine: MachineArgument, options: tl.RegroupingOptions, side: SideOption, as_json: JsonOption = False
) -> None:
    """Regroup a machine's inertial parameters: the combinations that its forces show, as formulas in its lengths.

    Exit code 1 when the formulas do not hold at other lengths.
    """
    finish(tl.regroup(load_model(machine, side).mechanism, options), as_json)
