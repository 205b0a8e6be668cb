"""``tauloop excite``: a motion that tells the dynamic parameters best, under all limits of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, command, figure_ending, finish, log_ending
from tauloop.cli.progress import bars
from tauloop.errors import Problem
from tauloop.identification.excitation import ExcitationOptions
from tauloop.identification.excitation import excite as excited
from tauloop.identification.excitation.result import slow_sampling
from tauloop.model import Model


def _slow_sampling(given: Mapping[str, Any]) -> Problem | None:
    """Whether a table that is asked for would not show its fastest term."""
    task = given["options"].task
    return slow_sampling(given["frequency"], task.harmonics, task.period) if given["out"] is not None else None


@command(out=log_ending, figure=figure_ending, also=_slow_sampling)
def excite(
    machine: MachineArgument,
    options: ExcitationOptions,
    side: SideOption,
    frequency: Annotated[float, typer.Option(help="Samples per second in the table, Hz.")] = 1000.0,
    out: Annotated[
        Path | None, typer.Option(help="Write one period of the motion to this CSV or Parquet file.")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Optimise an excitation: finite Fourier series under limits, from several starts.

    Ranges, speeds and forces of the machine file hold for all joints and rods, driven or not. Ctrl-C ends the search
    and keeps the best motion so far. Exit code 1 when no start ends at an optimum, or a check fails.
    """
    mechanism = load_machine(machine, side)
    announced(Model(mechanism), within_limits)
    with bars(as_json) as report:
        excitation = excited(mechanism, options, progress=report)
    if out is not None:
        excitation.write_log(out, frequency)
    finish(excitation, as_json, figure=figure, written=(out,))
