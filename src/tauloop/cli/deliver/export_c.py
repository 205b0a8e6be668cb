"""``tauloop export c``: functions of a machine as C99."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, folder
from tauloop.cli.terminal.progress import bar


@command(out=folder)
def export_c(
    machine: MachineArgument,
    out: Annotated[
        Path, typer.Option(help="Write to this folder; other files in it are left alone.")
    ],
    options: tl.ExportOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Write functions of a machine as C99, with a program that checks them.

    Source, header, test program and a manifest. All parameters are baked in. The code needs only
    math.h, has no heap and keeps no state.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_c(model, out, options, progress=progress)
    finish(result, written=result.written)
