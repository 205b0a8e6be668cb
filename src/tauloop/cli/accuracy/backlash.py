"""``tauloop accuracy backlash``: the tool's displacement by backlash of the actuators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    ThreadsOption,
    WithinLimitsOption,
    load_model,
)
from tauloop.cli.output import any_ending, command, figure_ending, finish, map_file
from tauloop.cli.terminal.progress import bar
from tauloop.display.play_figure import play_figure
from tauloop.drives import play_section


@command(figure=figure_ending, out=any_ending)
def backlash(
    machine: MachineArgument,
    options: tl.BacklashOptions,
    side: SideOption = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the section into this file (PNG, PDF, SVG).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the map of the volume as NetCDF.")] = None,
    within_limits: WithinLimitsOption = False,
    threads: ThreadsOption = "1",
) -> None:
    """How play at the actuators shows at the tool, over the work volume and in a section of it.

    Exit code 1 when the map is doubtful: no pose can be used, or forward kinematics disagrees.
    """
    model = load_model(machine, side, within_limits=within_limits, threads=threads)
    with bar("poses") as progress:
        result = tl.backlash_map(model, options, progress=progress)
    amounts = dict.fromkeys(f"{1e6 * value:g}" for value in result.play.values())
    much = "its drive lines" if options.play == "lines" else f"{', '.join(amounts)} um (urad)"
    title = f"{result.machine}: tool displacement by play of {much} [um]"
    draw = lambda: play_figure(play_section(model, options), title=title)  # noqa: E731
    finish(result, map_file(out, result), figure=figure, draw=draw)
