"""``tauloop reduce``: a smaller machine with the same motion, what it preserves, and its error against the full one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import FAILED, JsonOption, any_ending, console, print_json, reports_errors, table, writes
from tauloop.files import write_file
from tauloop.formats.yaml_writer import to_yaml
from tauloop.kinematics.reduction import Reduction, ReductionOptions
from tauloop.kinematics.reduction import reduce as reduced
from tauloop.model import Model
from tauloop.reduction import as_laminas
from tauloop.result import Status

#: Digits of a displacement in metres: nanometres are rounding.
SHIFT_DIGITS = 9


@reports_errors
@writes(out=any_ending)
def reduce(
    machine: MachineArgument,
    side: SideOption = None,
    massless: Annotated[
        list[str] | None, typer.Option("--massless", help="Leave out the inertia of this rod (may be repeated).")
    ] = None,
    lumped: Annotated[
        list[str] | None,
        typer.Option("--lumped", help="Put the mass of this slender rod into its two ends (may be repeated)."),
    ] = None,
    share: Annotated[
        bool, typer.Option("--share-parameters", help="Let equal legs share their parameters of equal value.")
    ] = False,
    states: Annotated[int, typer.Option(min=1, help="How many random states the error is taken over.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random states.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the reduced machine to this machine file (YAML).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Reduce a machine by equivalent lumped masses and parts that move alike.

    Exact steps run wherever they apply; approximations only when asked for. Exit code 1 when no approximation was asked
    for and a force differs nevertheless.
    """
    options = ReductionOptions(
        massless_rods=tuple(massless or ()), lumped_rods=tuple(lumped or ()), shares_parameters=share, states=states
    )
    mechanism = load_machine(machine, side)
    announced(Model(mechanism), within_limits)
    found = reduced(mechanism, np.random.default_rng(seed), options)
    if out is not None:
        text = to_yaml(as_laminas(found.mechanism))
        write_file(out, lambda temporary: temporary.write_text(text, encoding="utf-8"))
    if as_json:
        print_json(found.as_dict() | {"seed": seed})
    else:
        _print(found, seed)
        if out is not None:
            console().print(f"written: {out}")
    if found.status is not Status.OK:
        raise typer.Exit(FAILED)


def _print(found: Reduction, seed: int) -> None:
    screen = console()
    screen.print(f"Reduction of {found.full.name}", style="bold")
    screen.print(_sizes(found))
    screen.print(_steps(found) if found.steps else "No step applies: nothing moves alike.")
    screen.print(_errors(found, seed))
    for what in dict.fromkeys(what for step in found.steps for what in step.lost):
        screen.print(f"no longer told: {what}")
    for evidence in found.evidence:
        if not evidence.is_good:
            screen.print(f"doubtful: {evidence}", style="red")
    screen.print("exact" if found.is_exact else "approximate, as was asked for")


def _sizes(found: Reduction) -> Table:
    comparison = found.comparison
    shift = " ".join(f"{1e3 * x + 0.0:.3f}" for x in comparison.center_shift.round(SHIFT_DIGITS))
    rows = table("", "", "full", "reduced", numeric=(1, 2))
    rows.add_row("coordinates", *map(str, found.coordinates))
    rows.add_row("loop equations", *map(str, found.equations))
    rows.add_row("parameters", str(len(found.full.parameters)), str(len(found.mechanism.parameters)))
    rows.add_row("mass, kg", *(f"{mass:.6g}" for mass in comparison.mass))
    rows.add_row("mass centre moved by, mm", "", f"({shift}), constant to {1e3 * comparison.center_deviation:.1e}")
    return rows


def _steps(found: Reduction) -> Table:
    rows = table("Steps", "step", "instead of", "stands", "preserved exactly", "approximated")
    for step in found.steps:
        removed, kept = ", ".join(step.removed), ", ".join(step.kept)
        rows.add_row(step.name, removed, kept, "\n".join(step.preserved), "\n".join(step.approximated))
    return rows


def _errors(found: Reduction, seed: int) -> Table:
    units = dict(zip(*Model(found.full).output_ports("actuators"), strict=True))
    states = f"{found.comparison.states} random states (seed {seed})"
    rows = table(
        f"Errors of the actuator forces as shares of the largest, over {states}",
        *("actuator", "largest\nforce", "unit", "rms", "largest", "from\ngravity", "from\ninertia", "from\nvelocity"),
        numeric=(1, 3, 4, 5, 6, 7),
    )
    for e in found.comparison.errors:
        shares = (e.rms, e.maximum, e.gravity, e.inertia, e.velocity)
        rows.add_row(e.actuator, f"{e.largest:.6g}", units[e.actuator], *(f"{share:.1e}" for share in shares))
    return rows
