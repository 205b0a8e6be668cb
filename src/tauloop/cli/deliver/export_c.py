"""``tauloop export c``: functions of a machine as C99."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.deliver.exported import EXPORT_DEFAULT, EXPORT_FOLDER, export_folder
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.terminal.screen import bar


@command(out=EXPORT_FOLDER, out_default=EXPORT_DEFAULT)
def export_c(
    machine: MachineArgument,
    options: tl.ExportOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    out: Path | None = None,
) -> None:
    """Write functions of a machine as C99, with a program that checks them.

    The files are source, header, test program and a manifest. All parameters are constants in the
    code. The code needs only math.h, allocates no memory and has no internal state.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_c(model, export_folder(out, model, "c"), options, progress=progress)
    finish(result, written=result.written)
