"""``tauloop export linuxcnc``: a component of LinuxCNC with the geometry of a machine."""

from __future__ import annotations

from dataclasses import replace
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
def export_linuxcnc(
    machine: MachineArgument,
    options: tl.LinuxcncOptions,
    name: NameOption = None,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    out: Path | None = None,
) -> None:
    """Write a component for LinuxCNC with the geometry on HAL pins, and a headless simulation.

    Build the component with `halcompile`.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_linuxcnc(
            model,
            export_folder(out, model, "linuxcnc"),
            replace(options, name=name),
            progress=progress,
        )
    finish(result, written=result.written)
