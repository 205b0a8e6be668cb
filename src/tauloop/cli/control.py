"""``tauloop control``: a trajectory followed under sampled controllers, with and without the machine's model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.assembly.limits import require_within_limits
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, command, figure_ending, finish, log_ending
from tauloop.logs import write_log
from tauloop.model import Model
from tauloop.simulation import ControlOptions
from tauloop.simulation import control as controlled


@command(out=log_ending, figure=figure_ending)
def control(
    machine: MachineArgument,
    options: ControlOptions,
    side: SideOption,
    out: Annotated[
        Path | None,
        typer.Option(help="Write the motion under the last controller to this CSV or Parquet file."),
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Follow a trajectory under sampled controllers, and say how far the machine stays behind.

    Exit code 1 when a run ends early (out of reach, singular, not finite) or goes beyond a stop; saturated forces are
    reported.
    """
    model = announced(Model(load_machine(machine, side)))
    found = controlled(model, options)
    if within_limits:
        require_within_limits(found.evidence)
    if out is not None:
        write_log(out, found.log())
    finish(found, as_json, figure=figure, written=(out,))
