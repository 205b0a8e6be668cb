"""``tauloop verify``: comparison of dynamics and Jacobians with independent engines."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import RESULT
from tauloop.cli.terminal.screen import bar


@command(json_file=RESULT)
def verify(
    machine: MachineArgument,
    options: tl.VerifyOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Compare dynamics and Jacobians with Pinocchio and MuJoCo at random consistent states.

    The engines compute forces, mass matrices and Jacobians of the spanning tree; the loop
    constraints are then solved without regularization. Pinocchio's own constraint solver (or its
    mimic joints, for couplings) adds a row. Exit code 1 when a quantity differs by more than 1e-9
    of its largest value in a state (1e-8 with accelerations). Quantities without a comparison are listed and
    do not affect the exit code.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("engines") as progress:
        result = tl.verify(model, options, progress=progress)
    finish(result)
