"""``tauloop simulate``: forward dynamics in time: constant forces, conservative swings, round trips of motions."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from tauloop.assembly.limits import require_within_limits
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, command, figure_ending, finish, log_ending
from tauloop.errors import InputError, Problem
from tauloop.logs import write_log
from tauloop.model import Model
from tauloop.simulation import RoundTripOptions, SimulationOptions, SwingComparison, SwingOptions
from tauloop.simulation import simulate as simulated
from tauloop.simulation.swing import AMPLITUDE, FREQUENCY


@command(out=log_ending, figure=figure_ending)
def simulate(
    machine: MachineArgument,
    options: SimulationOptions,
    side: SideOption,
    swing: Annotated[
        bool, typer.Option("--swing", help="Without friction, in springs at its drives, pushed: by every route.")
    ] = False,
    frequency: Annotated[float, typer.Option(help="Of the swing's springs, Hz.")] = FREQUENCY,
    amplitude: Annotated[float, typer.Option(help="Of the swing, rad or characteristic lengths.")] = AMPLITUDE,
    motion: Annotated[
        Path | None,
        typer.Option(
            help="Round trip of a motion: CSV or Parquet with columns time and position.NAME of the platform; its "
            "forces by inverse dynamics are fed to forward dynamics."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the simulated motion to this CSV or Parquet file.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Simulate a machine: constant forces (a free fall without any), a swing, or the round trip of a motion.

    Cables pull, become slack and are tautened again; without --force their winches are held as they hold the start at
    rest. Exit code 1 when the end is not reached, energy, loops or the round trip miss their limits, or the motion goes
    beyond a stop, which does not hold it (put an event there).
    """
    model = announced(Model(load_machine(machine, side)))
    found = simulated(model, _chosen(options, swing, frequency, amplitude, motion))
    if within_limits:
        require_within_limits(found.evidence)
    if out is not None and not isinstance(found, SwingComparison):
        write_log(out, found.log())
    finish(found, as_json, figure=figure, written=(out,))


def _chosen(
    options: SimulationOptions, swing: bool, frequency: float, amplitude: float, motion: Path | None
) -> SimulationOptions | SwingOptions | RoundTripOptions:
    """The options of what is asked for.

    Raises:
        InputError: options that do not go together.
    """
    if not swing and motion is None:
        return options
    problems = [Problem(where="--swing", what="given beside --motion", remedy="give one of them")] * bool(
        motion and swing
    )
    general = SimulationOptions()
    shared = ("duration", "integration", "route")
    problems += [
        Problem(
            where=item.name, what=f"means nothing beside {'--swing' if swing else '--motion'}", remedy="leave it out"
        )
        for item in fields(options)
        if item.name not in shared and getattr(options, item.name) != getattr(general, item.name)
    ]
    InputError.raise_if_any(problems)
    if motion is None:
        duration, integration = options.duration or SwingOptions.duration, options.integration
        return SwingOptions(duration=duration, frequency=frequency, amplitude=amplitude, integration=integration)
    return RoundTripOptions(
        motion=motion, duration=options.duration, route=options.route, integration=options.integration
    )
