"""``tauloop workspace``: poses at which a machine can work, and reasons that exclude others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish, map_file
from tauloop.cli.outputs import FIGURE, MAP, RESULT
from tauloop.cli.terminal.screen import bar
from tauloop.elasticity import ELASTIC_QUANTITIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@command(figure=FIGURE, out=MAP, json_file=RESULT)
def workspace(
    machine: MachineArgument,
    options: tl.WorkspaceOptions,
    side: SideOption = None,
    color: Annotated[
        str,
        typer.Option(
            help="Color by a property of the poses: parallel, serial or constraint (distance to singularities "
            "of this kind), clearance (of rods), tension (of cables); for an elastic machine also stiffness, "
            "stiffness.x to stiffness.rz, stiffness.moment, frequency (of the lowest mode), heat (tool displacement "
            "if all parts with a coefficient of expansion warm by 1 K); or an output of the machine file."
        ),
    ] = "parallel",
    figure: Path | None = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Map the workspace: reach, ranges, singularities, interference of rods, tensions of cables.

    The map covers a section or a volume of poses at rest. (rx, ry, rz) is the rotation vector from
    the reference pose, in the base frame. Exit code 1 when no pose of the grid can be used.
    """
    model = load_model(machine, side, within_limits=within_limits, threads=threads)
    with bar("poses") as progress:
        result = tl.workspace(model, options, progress=progress)
    if color in ELASTIC_QUANTITIES:
        with bar("poses") as progress:
            result = tl.elastic_map(result, quantities=(color,), progress=progress)

    def draw() -> Figure:
        # Matplotlib is slow to import, and most calls draw nothing.
        from tauloop.display.renderers.result_figures import workspace_figure

        return workspace_figure(result, color)

    finish(result, map_file(out, result), figure=figure, draw=draw)
