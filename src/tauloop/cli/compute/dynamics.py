"""``tauloop dynamics``: inverse dynamics of one pose, or of a motion from a table."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import (
    FormulationOption,
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish, log_file, text_file
from tauloop.cli.outputs import FIGURE, LOAD_CASES, RESULT, TABLE
from tauloop.cli.terminal.screen import bar


@command(
    load_cases=LOAD_CASES,
    out=TABLE.of("time, motion of platform and actuators, and forces"),
    figure=FIGURE,
    json_file=RESULT,
)
def dynamics(
    machine: MachineArgument,
    options: tl.DynamicsOptions,
    side: SideOption = None,
    formulation: FormulationOption = "newton-euler",
    load_cases: Path | None = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Compute the actuator forces of a motion (inverse dynamics).

    For one pose, give the coordinates that differ from the reference pose; for many poses, give a
    table. For a machine with passive degrees of freedom, give the positions of the actuators
    (--actuators, or --coordinates actuators with a table). The accelerations of the passive degrees
    of freedom are then computed together with the forces. A table that passes a singularity between
    two rows is rejected. Exit code 1 when a pose is beyond a stop.
    """
    model = load_model(machine, side, formulation=formulation, threads=threads)
    with bar("forces") as progress:
        result = tl.inverse_dynamics(model, options, progress=progress)
    log = log_file(out, result.log)
    cases = text_file(load_cases, lambda: result.joint_forces.load_cases().to_csv())
    finish(result, log, cases, within_limits=within_limits)
