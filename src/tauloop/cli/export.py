"""``tauloop export``: functions and controllers as C, a machine as an FMU, for a machine control, or for ROS 2."""

from __future__ import annotations

import enum
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, folder
from tauloop.cli.progress import bar


class ExportFormat(enum.Enum):
    """Formats that machines are exported in."""

    c = "c"
    controller = "controller"
    fmu = "fmu"
    linuxcnc = "linuxcnc"
    ros2 = "ros2"


@command(out=folder)
def export(
    form: Annotated[
        ExportFormat,
        typer.Argument(
            metavar="FORMAT", help=f"What to write: {', '.join(ExportFormat.__members__)}."
        ),
    ],
    machine: MachineArgument,
    out: Annotated[
        Path, typer.Option(help="Write to this folder; other files in it are left alone.")
    ],
    options: tl.ExportOptions,
    controller: tl.ControllerOptions,
    fmu: tl.FmuOptions,
    linuxcnc: tl.LinuxcncOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Write functions of a machine or its controller as C99, an FMU, a component of LinuxCNC, or a package of ROS 2.

    c: source, header, a program that checks them, and a manifest. All parameters are baked in. The
    code needs only math.h, has no heap and keeps no state. controller: a sampled controller that is
    safe by construction, and a program that checks it. fmu: NAME.fmu for simulators and real-time
    targets (FMI 2 or 3), with a library for this platform and its sources. linuxcnc: a component
    with the geometry on HAL pins, and a headless simulation; `halcompile` builds it. ros2: URDF
    with ros2_control, launch file, and a node that publishes the passive joints; its name is that
    of the package.
    """
    name, classes = (
        form.value,
        {"c": options, "controller": controller, "fmu": fmu, "linuxcnc": linuxcnc},
    )
    _refuse_others(
        name, *(others for kind, others in classes.items() if kind not in (name, fmu.kind))
    )
    model = load_model(machine, side, within_limits=within_limits)
    result: Any
    with bar("functions") as progress:
        if name == "fmu":
            fmu = replace(fmu, name=options.name)
            result = tl.export_fmu(model, out, fmu, controller=controller, progress=progress)
        elif name == "controller":
            result = tl.export_controller(
                model, out, controller, name=options.name, progress=progress
            )
        elif name == "linuxcnc":
            result = tl.export_linuxcnc(
                model, out, replace(linuxcnc, name=options.name), progress=progress
            )
        elif name == "ros2":
            result = tl.export_ros2(model, out, package=options.name or "", progress=progress)
        else:
            result = tl.export_c(model, out, options, progress=progress)
    finish(result, written=result.written)


def _refuse_others(form: str, *classes: object) -> None:
    """Refuse options of other formats, all at once; a name is everybody's."""
    tl.InputError.raise_if_any(
        tl.Problem(
            where=item.name, what=f"is no option of the format {form}", remedy="leave it out"
        )
        for options in classes
        for item in fields(options)  # type: ignore[arg-type]
        if item.name != "name" and getattr(options, item.name) != item.default
    )
