"""``tauloop accuracy backlash``: the tool's displacement due to actuator backlash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    WithinLimitsOption,
    WorkersOption,
    load_model,
)
from tauloop.cli.output import command, finish, map_file
from tauloop.cli.outputs import FIGURE, MAP
from tauloop.cli.terminal.screen import bar
from tauloop.drives import play_section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@command(figure=FIGURE, out=MAP)
def backlash(
    machine: MachineArgument,
    options: tl.BacklashOptions,
    side: SideOption = None,
    figure: Path | None = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
    threads: WorkersOption = "1",
) -> None:
    """Map the tool's displacement due to backlash, over the workspace and in a planar slice.

    Exit code 1 when the map is doubtful: no pose can be used, or forward kinematics does not
    confirm the displacement.
    """
    model = load_model(machine, side, within_limits=within_limits, threads=threads)
    with bar("poses") as progress:
        result = tl.backlash_map(model, options, progress=progress)
    amounts = dict.fromkeys(f"{1e6 * value:g}" for value in result.backlash.values())
    is_by_lines = options.backlash == "lines"
    source = "its drive lines"
    if not is_by_lines:
        source = f"its actuators: {', '.join(amounts)} um (urad)"
    title = f"{result.machine}: tool displacement due to backlash in {source} [um]"

    def draw() -> Figure:
        # Matplotlib is slow to import, and most calls draw nothing.
        from tauloop.display.renderers.result_figures import play_figure

        return play_figure(play_section(model, options), title=title)

    finish(result, map_file(out, result), figure=figure, draw=draw)
