"""``tauloop model reduce``: a smaller machine with the same motion, and its error."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, machine_file
from tauloop.cli.outputs import MACHINE_FILE
from tauloop.cli.terminal.screen import bar
from tauloop.mechanism.reduction import as_laminas


@command(out=MACHINE_FILE.of("the reduced machine"))
def reduce(
    machine: MachineArgument,
    options: tl.ReductionOptions,
    side: SideOption,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Reduce a machine: lump masses of rods, and merge parts with the same motion.

    Exact steps are always applied; approximations only on request. Exit code 1 when a force differs
    although no approximation was requested.
    """
    mechanism = load_model(machine, side, within_limits=within_limits).mechanism
    with bar("reduction") as progress:
        reduction = tl.reduce_model(mechanism, options, progress=progress)
    finish(reduction, machine_file(out, lambda: as_laminas(reduction.mechanism)))
