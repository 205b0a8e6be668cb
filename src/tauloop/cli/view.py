"""``tauloop view``: a machine in the browser, moved by sliders or played back, or drawn into a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tauloop.assembly.entry import PLATFORM, Entry
from tauloop.assembly.limits import require_within_limits
from tauloop.assembly.named_values import assigned
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, RodsOption, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import (
    JsonOption,
    console,
    figure_ending,
    print_doubts,
    print_json,
    reports_errors,
    table,
    writes,
)
from tauloop.errors import InputError, Problems
from tauloop.kinematics.machine_geometry import MachineGeometry, machine_geometry
from tauloop.model import Model
from tauloop.viewer.playback import Playback, read_playback


@reports_errors
@writes(png=figure_ending)
def view(
    machine: MachineArgument,
    side: SideOption = None,
    rods: RodsOption = False,
    position: Annotated[
        str | None,
        typer.Option(help="Pose to start with, such as 'platform.x=0.1' (SI); the rest as at reference."),
    ] = None,
    entry: Annotated[Entry, typer.Option(help="Whose position that is.")] = PLATFORM,
    motion: Annotated[
        Path | None,
        typer.Option(help="Play a table with time and position.NAME of the platform or the actuators."),
    ] = None,
    simulation: Annotated[
        Path | None, typer.Option(help="The same, of what `tauloop simulate --out` or `control --out` has written.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG) and do not start the viewer.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other computers in.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; the next free one if it is taken.")] = 8080,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Look at a machine: in the browser until Ctrl-C, with sliders for platform, actuators and time; or as a picture.

    A slider moves the machine as far as its loops close; beyond, it stays and the panel says which loop misses by how
    much. What lies beyond a stop is named. Only the address printed, with its token, is served. The browser's part
    needs `pip install tauloop[view]`.
    """
    _check(position, motion, simulation)
    model = announced(Model(load_machine(machine, side, rods)))
    path = motion or simulation
    playback = None if path is None else read_playback(model, path)
    q = _start(model, entry, position) if playback is None else playback.q[0]
    shown = (q, None) if playback is None else (playback.q, playback.time)
    evidence = model.limits.evidence(*shown)
    if within_limits:
        require_within_limits(evidence)
    if png is not None:
        _draw(model, playback, q, png, as_json)
        if not as_json:
            print_doubts(evidence)
        return
    from tauloop.viewer.viewer import Viewer

    viewer = Viewer(model, q=q, playback=playback, host=host, port=port)
    if as_json:
        print_json({"machine": model.mechanism.name, "url": viewer.url})
    else:
        print_doubts(evidence)
        console().print(f"{model.mechanism.name}: {viewer.url} (Ctrl-C ends)", soft_wrap=True)
    viewer.run()


def _check(position: str | None, motion: Path | None, simulation: Path | None) -> None:
    problems = Problems()
    given = {"--position": position, "--motion": motion, "--simulation": simulation}
    several = [name for name, value in given.items() if value is not None]
    if len(several) > 1:
        problems.add(several[-1], f"given beside {', '.join(several[:-1])}", "give one of them")
    InputError.raise_if_any(problems)


def _start(model: Model, entry: Entry, position: str | None) -> np.ndarray:
    """Coordinates (n_q,) of the pose that is asked for."""
    if position is None:
        return model.assembly.q  # also of a machine that lacks motors, and so has no entries
    functions = model.motion(entry)
    given = assigned(functions.ports.position, "--position", position, functions.ports.at(model.assembly.q))
    return np.asarray(functions.follow(given).q)


def _draw(model: Model, playback: Playback | None, q: np.ndarray, png: Path, as_json: bool) -> None:
    from tauloop.report import save_figure
    from tauloop.report.machine_figure import machine_figure

    geometry = machine_geometry(model, q if playback is None else playback.q)
    note = "" if playback is None else f"start of {playback.source}, {playback.duration:.4g} s"
    save_figure(machine_figure(geometry, title=model.mechanism.name, note=note), png)
    if as_json:
        print_json(
            {
                "machine": model.mechanism.name,
                "coordinates": model.topology.coordinate_names,
                "q": q,
                "tool_m": geometry.tool[0],
                "bodies": {body.name: geometry.origins[0, i] for i, body in enumerate(geometry.shape.bodies)},
                "evidence": model.limits.evidence(q),
                "written": str(png),
            }
        )
    else:
        _print(model, geometry, png)


def _print(model: Model, geometry: MachineGeometry, png: Path) -> None:
    origins = geometry.drives[0][0]
    rows = table(model.mechanism.name, "what", "x [m]", "y [m]", "z [m]", numeric=(1, 2, 3))
    rows.add_row(f"tool on {geometry.shape.platform}", *(f"{round(x, 5) + 0.0:.5f}" for x in geometry.tool[0]))
    for axis, origin in zip(geometry.shape.drives, origins, strict=True):
        rows.add_row(f"axis of {axis.name}", *(f"{round(x, 5) + 0.0:.5f}" for x in origin))
    screen = console()
    screen.print(rows)
    screen.print(f"written: {png}")
