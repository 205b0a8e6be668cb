"""``tauloop export linuxcnc``: a component of LinuxCNC with the geometry of a machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.deliver.names import NameOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, folder
from tauloop.cli.terminal.progress import bar


@command(out=folder)
def export_linuxcnc(
    machine: MachineArgument,
    out: Annotated[
        Path, typer.Option(help="Write to this folder; other files in it are left alone.")
    ],
    options: tl.LinuxcncOptions,
    name: NameOption = None,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Write a component for LinuxCNC with the geometry on HAL pins, and a headless simulation.

    `halcompile` builds it.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_linuxcnc(model, out, replace(options, name=name), progress=progress)
    finish(result, written=result.written)
