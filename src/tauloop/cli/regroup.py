"""``tauloop regroup``: the base parameters of a machine as formulas."""

from __future__ import annotations

from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import JsonOption, command, finish
from tauloop.identification import RegroupingOptions
from tauloop.identification import regroup as regrouped
from tauloop.model import Model


@command()
def regroup(
    machine: MachineArgument, options: RegroupingOptions, side: SideOption, as_json: JsonOption = False
) -> None:
    """Regroup a machine's inertial parameters: the combinations that its forces show, as formulas in its lengths.

    Exit code 1 when the formulas do not hold at other lengths.
    """
    mechanism = load_machine(machine, side)
    announced(Model(mechanism))
    finish(regrouped(mechanism, options), as_json)
