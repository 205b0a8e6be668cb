"""``tauloop verify``: Tauloop's dynamics and Jacobians beside those of independent engines."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors, table
from tauloop.engines import EngineComparison, Verification, check
from tauloop.engines.verify import FORWARD_DYNAMICS, OWN_CONSTRAINTS

#: Largest relative difference that passes; rounding through the loops' conditioning stays well below.
TOLERANCE = 1e-9
#: Accelerations pass through the mass matrix as well, whose condition number multiplies the rounding.
TOLERANCES = {FORWARD_DYNAMICS: 1e-8, OWN_CONSTRAINTS: 1e-8}


def _agrees(row: EngineComparison) -> bool:
    return bool(row.worst <= TOLERANCES.get(row.quantity, TOLERANCE))


@reports_errors
def verify(
    machine: MachineArgument,
    side: SideOption = None,
    states: Annotated[int, typer.Option(min=1, help="How many random consistent states.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random states.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare inverse and forward dynamics and Jacobians with Pinocchio and MuJoCo on random consistent states.

    The engines give tree forces, mass matrices and Jacobians, from which loops are solved without regularisation;
    Pinocchio's own constraint solver is one more row. Exit code 1 when one disagrees by more than 1e-9 of the largest
    number of a state (1e-8 for accelerations); what could not be compared is listed and does not count.
    """
    verification = check(load_machine(machine, side), states, np.random.default_rng(seed))
    agrees = all(_agrees(row) for row in verification.comparisons)
    if as_json:
        print_json(
            {
                "machine": verification.mechanism,
                "states": states,
                "seed": seed,
                "tolerance": TOLERANCE,
                "tolerances": TOLERANCES,
                "status": "ok" if agrees else "failed",
                "engines": verification.comparisons,
                "not_run": [{"engine": where, "reason": reason} for where, reason in verification.not_run],
            }
        )
    else:
        _print(verification, seed)
    if not agrees:
        raise typer.Exit(FAILED)


def _print(verification: Verification, seed: int) -> None:
    rows = table(
        f"{verification.mechanism} over {verification.samples} random states (seed {seed})",
        *("quantity", "engine", "largest\ndifference", "engine's\nresidual", ""),
        numeric=(2, 3),
    )
    for row in verification.comparisons:
        verdict = "agrees" if _agrees(row) else f"DISAGREES at state {row.sample}, {row.column}"
        rows.add_row(row.quantity, row.engine, f"{row.largest_difference:.1e}", f"{row.residual:.1e}", verdict)
    screen = console()
    screen.print(rows)
    for where, reason in verification.not_run:
        screen.print(f"not compared: {where}: {reason}")
    versions = ", ".join(dict.fromkeys(f"{row.engine} {row.version}" for row in verification.comparisons))
    screen.print(
        f"{versions}. Limit {TOLERANCE:.0e} of the largest number of a state, 1e-08 for accelerations; friction is "
        "left out on both sides."
    )
    screen.print("Residual: of the engine's loops and their rates (m, rad, s), and of forces that nothing balances.")
