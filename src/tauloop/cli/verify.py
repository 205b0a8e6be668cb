"""``tauloop verify``: Tauloop's dynamics and Jacobians beside those of independent engines."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from tauloop.assembly.ports import Port
from tauloop.cli.announced import announced
from tauloop.cli.assigned import assigned
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, console, print_json, reports_errors, table
from tauloop.engines import EngineComparison, Verification, check
from tauloop.engines.check import CONDITION
from tauloop.engines.verify import (
    FORWARD_DYNAMICS,
    OWN_FORWARD,
    OWN_INVERSE,
    OWN_UNDER_WRENCH,
    UNDER_WRENCH,
)
from tauloop.model import Model

#: Largest relative difference that passes; rounding through the loops' conditioning stays well below.
TOLERANCE = 1e-9
#: Accelerations pass through the mass matrix as well, whose condition number multiplies the rounding; and so do forces
#: that are worked out from them.
TOLERANCES = dict.fromkeys((FORWARD_DYNAMICS, OWN_FORWARD, OWN_INVERSE, UNDER_WRENCH, OWN_UNDER_WRENCH), 1e-8)
#: Force and moment at the tool centre point, in the base frame.
TOOL = Port(name="wrench", columns=("fx", "fy", "fz", "mx", "my", "mz"), units=("N",) * 3 + ("N m",) * 3)


def _agrees(row: EngineComparison) -> bool:
    return bool(row.worst <= TOLERANCES.get(row.quantity, TOLERANCE))


@reports_errors
def verify(
    machine: MachineArgument,
    side: SideOption = None,
    states: Annotated[int, typer.Option(min=1, help="How many random consistent states.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random states.")] = 0,
    wrench: Annotated[
        str | None, typer.Option(help="Also with this at the tool, such as 'fx=10,mz=0.5' (N, N m, base frame).")
    ] = None,
    condition: Annotated[
        float, typer.Option(min=1.0, help="Leave out states whose linear blocks have a larger condition number.")
    ] = CONDITION,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare inverse and forward dynamics and Jacobians with Pinocchio and MuJoCo on random consistent states.

    The engines give tree forces, mass matrices and Jacobians, from which loops are solved without regularisation;
    Pinocchio's own constraint solver (its mimic joints, where couplings act) is one more row. Exit code 1 when one
    disagrees by more than 1e-9 of the largest number of a state (1e-8 where accelerations have a part in it); what
    could not be compared is listed and does not count.
    """
    acting = None if wrench is None else assigned(TOOL, "--wrench", wrench, np.zeros(6))
    rng = np.random.default_rng(seed)
    mechanism = load_machine(machine, side)
    announced(Model(mechanism), within_limits)
    verification = check(mechanism, states, rng, wrench=acting, condition=condition)
    agrees = all(_agrees(row) for row in verification.comparisons)
    if as_json:
        print_json(
            {
                "machine": verification.mechanism,
                "states": states,
                "different_states": verification.different,
                "condition": condition,
                "seed": seed,
                "wrench": acting,
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
    again = "" if verification.different == verification.samples else f", {verification.different} of them different"
    rows = table(
        f"{verification.mechanism} over {verification.samples} random states (seed {seed}){again}",
        *("quantity", "engine", "by", "largest\ndifference", "engine's\nresidual", ""),
        numeric=(3, 4),
    )
    for row in verification.comparisons:
        verdict = "agrees" if _agrees(row) else f"DISAGREES at state {row.sample}, {row.column}"
        rows.add_row(
            row.quantity, row.engine, row.method, f"{row.largest_difference:.1e}", f"{row.residual:.1e}", verdict
        )
    screen = console()
    screen.print(rows)
    for reason in dict.fromkeys(reason for _, reason in verification.not_run):
        places = "; ".join(where for where, why in verification.not_run if why == reason)
        screen.print(f"not compared: {places}: {reason}")
    versions = ", ".join(dict.fromkeys(f"{row.engine} {row.version}" for row in verification.comparisons))
    screen.print(
        f"{versions}. Limit {TOLERANCE:.0e} of the largest number of a state, 1e-08 for accelerations; friction is "
        "left out on both sides."
    )
    screen.print("Residual: of the engine's loops and their rates (m, rad, s), and of forces that nothing balances.")
