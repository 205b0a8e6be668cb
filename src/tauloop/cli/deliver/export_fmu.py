"""``tauloop export fmu``: a machine or its controller as an FMU."""

from __future__ import annotations

from dataclasses import fields, replace
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
def export_fmu(
    machine: MachineArgument,
    options: tl.FmuOptions,
    controller: tl.ControllerOptions,
    name: NameOption = None,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    out: Path | None = None,
) -> None:
    """Write a machine as NAME.fmu for simulators and real-time targets (FMI 2 or 3).

    The FMU contains a library for this platform and its sources.
    """
    if options.kind != "controller":
        _refuse_controller(options.kind, controller)
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_fmu(
            model,
            export_folder(out, model, "fmu"),
            replace(options, name=name),
            controller=controller,
            progress=progress,
        )
    finish(result, written=result.written)


def _refuse_controller(kind: str, controller: tl.ControllerOptions) -> None:
    """Reject options of a controller for an FMU without a controller, all at once."""
    default = tl.ControllerOptions()
    tl.InputError.raise_if_any(
        tl.Problem(
            where=item.name,
            what=f"has no effect on an FMU of the kind {kind}",
            remedy="omit it, or add --kind controller",
        )
        for item in fields(controller)
        if getattr(controller, item.name) != getattr(default, item.name)
    )
