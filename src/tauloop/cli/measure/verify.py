"""``tauloop verify``: Tauloop's dynamics and Jacobians beside those of independent engines."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT
from tauloop.cli.terminal.progress import bar


@command(json_file=RESULT)
def verify(
    machine: MachineArgument,
    options: tl.VerifyOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Compare inverse and forward dynamics and Jacobians with Pinocchio and MuJoCo on random consistent states.

    The engines give tree forces, mass matrices and Jacobians, from which loops are solved without
    regularisation; Pinocchio's own constraint solver (its mimic joints, where couplings act) is one
    more row. Exit code 1 when one disagrees by more than 1e-9 of the largest number of a state
    (1e-8 where accelerations have a part in it); what could not be compared is listed and does not
    count.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("engines") as progress:
        result = tl.verify(model, options, progress=progress)
    finish(result)
