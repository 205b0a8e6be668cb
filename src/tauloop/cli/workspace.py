"""``tauloop workspace``: where a machine can work, and why not elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, any_ending, command, figure_ending, finish
from tauloop.cli.progress import bars
from tauloop.files import write_file
from tauloop.kinematics.machine_workspace import WorkspaceOptions
from tauloop.kinematics.machine_workspace import workspace as mapped
from tauloop.model import Model


@command(figure=figure_ending, out=any_ending)
def workspace(
    machine: MachineArgument,
    options: WorkspaceOptions,
    side: SideOption = None,
    colour: Annotated[
        str, typer.Option(help="What colours usable poses: parallel, serial, constraint, clearance or tension.")
    ] = "parallel",
    figure: Annotated[Path | None, typer.Option(help="Draw a section to this file (PNG, SVG, PDF).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the map as NetCDF.")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Where a machine can work: reach, ranges, singularities, interference of rods, and what cables can hold.

    Over a section or a volume of poses at rest. A platform's orientation is given by angles rx, ry, rz: turned from the
    reference pose about that vector in the base frame.
    """
    model = announced(Model(load_machine(machine, side)), within_limits)
    with bars(as_json) as report:
        found = mapped(model, options, progress=lambda done, total: report("poses", done, total))
    picture = None
    if figure is not None:
        from tauloop.report.workspace_figure import workspace_figure

        picture = workspace_figure(found, measure=colour)
    if out is not None:
        write_file(out, lambda path: found.data.to_netcdf(path, engine="scipy"))
    finish(found, as_json, figure=figure, picture=picture, written=(out,))
