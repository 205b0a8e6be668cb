"""``tauloop export compensation``: inverse kinematics with load and temperature as C99."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.deliver.exported import EXPORT_DEFAULT, EXPORT_FOLDER, export_folder
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish


@command(out=EXPORT_FOLDER, out_default=EXPORT_DEFAULT)
def export_compensation(
    machine: MachineArgument,
    options: tl.CompensationExportOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    out: Path | None = None,
) -> None:
    """Write a C99 function that corrects motor positions for loads and temperatures.

    The function takes pose, wrench and temperatures of parts. All parameters are constants.
    """
    model = load_model(machine, side, within_limits=within_limits)
    folder = export_folder(out, model, "compensation")
    result = tl.export_compensation(model, folder, options)
    finish(result, written=result.written)
