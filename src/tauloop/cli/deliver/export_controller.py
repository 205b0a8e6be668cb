"""``tauloop export controller``: a sampled controller of a machine as C99."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.deliver.exported import (
    EXPORT_DEFAULT,
    EXPORT_FOLDER,
    NameOption,
    export_folder,
)
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.terminal.screen import bar


@command(out=EXPORT_FOLDER, out_default=EXPORT_DEFAULT)
def export_controller(
    machine: MachineArgument,
    options: tl.ControllerOptions,
    name: NameOption = None,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    out: Path | None = None,
) -> None:
    """Write a sampled controller as C99, with fault detection and a program that checks it."""
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_controller(
            model,
            export_folder(out, model, "controller"),
            options,
            name=name,
            progress=progress,
        )
    finish(result, written=result.written)
