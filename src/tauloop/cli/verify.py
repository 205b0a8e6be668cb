"""``tauloop verify``: Tauloop's inverse dynamics beside those of independent engines."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors, table
from tauloop.engines.check import check_inverse_dynamics

#: Largest relative difference that passes; rounding through the loops' conditioning stays well below.
TOLERANCE = 1e-9


@reports_errors
def verify(
    machine: MachineArgument,
    side: SideOption = None,
    states: Annotated[int, typer.Option(min=1, help="How many random consistent states.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random states.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare inverse dynamics with Pinocchio and MuJoCo on random consistent states.

    Exit code 1 when an engine disagrees by more than 1e-9 of the largest force of a state.
    """
    verification = check_inverse_dynamics(load_machine(machine, side), states, np.random.default_rng(seed))
    agrees = verification.worst <= TOLERANCE
    if as_json:
        print_json(
            {
                "machine": verification.mechanism,
                "states": states,
                "seed": seed,
                "tolerance": TOLERANCE,
                "status": "ok" if agrees else "failed",
                "engines": verification.comparisons,
                "not_run": [{"engine": where, "reason": reason} for where, reason in verification.not_run],
            }
        )
    else:
        rows = table(
            f"Inverse dynamics of {verification.mechanism} over {states} random states (seed {seed})",
            *("engine", "version", "largest\ndifference", "force not\nbalanced", "loop\nresidual", ""),
            numeric=(2, 3, 4),
        )
        for row in verification.comparisons:
            rows.add_row(
                row.engine,
                row.version,
                f"{row.largest_difference:.1e}",
                f"{row.balance:.1e}",
                f"{row.closure:.1e} m",
                "agrees" if row.worst <= TOLERANCE else f"DISAGREES at state {row.sample}, {row.actuator}",
            )
        screen = console()
        screen.print(rows)
        for where, reason in verification.not_run:
            screen.print(f"not run: {where}: {reason}")
        screen.print(f"Limit {TOLERANCE:.0e} of the largest force of a state; friction is left out on both sides.")
    if not agrees:
        raise typer.Exit(FAILED)
