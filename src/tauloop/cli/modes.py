"""``tauloop modes``: all ways in which a machine can be assembled at one position."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, command, figure_ending, finish
from tauloop.kinematics.homotopy_monodromy import Report, SearchProgress
from tauloop.kinematics.modes import ModeOptions, assembly_modes, working_modes
from tauloop.model import Model


@command(figure=figure_ending)
def modes(
    machine: MachineArgument,
    options: ModeOptions,
    side: SideOption = None,
    position: Annotated[
        str | None,
        typer.Option(help="What is given, such as 'motor_1=20deg,motor_2=1.2' (SI); the rest as at reference."),
    ] = None,
    working: Annotated[
        bool, typer.Option("--working", help="The platform's position is given; list the postures of the legs.")
    ] = False,
    figure: Annotated[Path | None, typer.Option(help="Draw the modes side by side (PNG, SVG or PDF).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """List all assembly modes: every pose in which the loops close at given actuator positions.

    What is beyond a stop in a mode is named; --within-limits leaves such modes out, and refuses where no other is. Exit
    code 1 when the evidence leaves a doubt whether these are all.
    """
    model = announced(Model(load_machine(machine, side)))
    with progress(as_json) as report:
        found = (working_modes if working else assembly_modes)(model, position, options, report=report)
    if within_limits:
        found = found.within_limits()
    picture = None
    if figure is not None:
        from tauloop.report.modes_figure import modes_figure

        picture = modes_figure(model.assembly.loops, found)
    finish(found, as_json, figure=figure, picture=picture)


@contextmanager
def progress(is_quiet: bool) -> Iterator[Report]:
    """A bar on the error stream that says what the search does and how far it is, while it runs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=is_quiet) as bars:
        bar = bars.add_task("writing the equations", total=None)

        def report(at: SearchProgress) -> None:
            text = f"block {at.block} of {at.blocks}: {at.phase}, {at.solutions} known"
            bars.update(bar, description=text, completed=at.done, total=at.total)

        yield report
