"""``tauloop export controller``: a sampled controller of a machine as C99."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.deliver.names import NameOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, folder
from tauloop.cli.terminal.progress import bar


@command(out=folder)
def export_controller(
    machine: MachineArgument,
    out: Annotated[
        Path, typer.Option(help="Write to this folder; other files in it are left alone.")
    ],
    options: tl.ControllerOptions,
    name: NameOption = None,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Write a sampled controller of a machine as C99 that is safe by construction, and a program that checks it."""
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_controller(model, out, options, name=name, progress=progress)
    finish(result, written=result.written)
