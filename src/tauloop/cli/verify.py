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
    seed: Annotated[int, typer.Option(help="Seed of the random states.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Compare inverse dynamics with Pinocchio and MuJoCo on random consistent states.

    Exit code 1 when an engine disagrees by more than 1e-9 of the largest force of a state.
    """
    verification = check_inverse_dynamics(load_machine(machine, side), states, np.random.default_rng(seed))
    agrees = all(row.difference <= TOLERANCE for row in verification)
    if as_json:
        print_json(
            {
                "machine": machine,
                "states": states,
                "seed": seed,
                "tolerance": TOLERANCE,
                "status": "ok" if agrees else "failed",
                "engines": [row.as_dict() for row in verification],
            }
        )
    else:
        rows = table(
            f"Inverse dynamics of {machine} over {states} random states (seed {seed})",
            "engine",
            "version",
            "largest relative difference",
            "engine's loop residual",
            "",
            numeric=(2, 3),
        )
        for row in verification:
            rows.add_row(
                row.engine,
                row.version,
                f"{row.difference:.1e}",
                f"{row.closure_residual:.1e} m",
                "agrees" if row.difference <= TOLERANCE else f"DISAGREES (limit {TOLERANCE:.0e})",
            )
        console().print(rows)
        console().print("Friction is left out of the comparison; differences are of the largest force of each state.")
    if not agrees:
        raise typer.Exit(FAILED)
