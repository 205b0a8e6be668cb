"""``tauloop view``: a machine in the browser, moved by sliders or played back, or drawn into a picture."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tauloop as tl
from tauloop.cli.asked import is_json
from tauloop.cli.compute.poses_given import ActuatorsOption, at_actuators
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import (
    command,
    console,
    finish,
    print_json,
    require_limits,
)
from tauloop.cli.outputs import FIGURE, FILM
from tauloop.cli.terminal.progress import bar

if TYPE_CHECKING:
    from tauloop.viewer import View


@command(png=FIGURE, film=FILM)
def view(
    machine: MachineArgument,
    options: tl.ViewOptions,
    actuators: ActuatorsOption = None,
    side: SideOption = None,
    png: Path | None = None,
    film: Path | None = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 lets other computers in.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; the next free one if it is taken.")
    ] = 8080,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Show the machine again whenever its file is saved, or the problems in it.",
        ),
    ] = False,
    in_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Look at a machine: in the browser until Ctrl-C, with sliders for platform, actuators and time; or as a picture.

    A slider moves the machine as far as its loops close; beyond, it stays and the panel says which
    loop misses by how much. What lies beyond a stop is named. Only the address printed, with its
    token, is served. The browser's part needs `pip install 'tauloop[view]'`.
    """
    options = at_actuators(options, actuators)
    files = [
        path
        for path in (Path(machine), None if side is None else side.side)
        if path is not None and path.is_file()
    ]
    if watch and (not files or png is not None or film is not None):
        what = "draws no picture" if files else f"{machine} is no file that you edit"
        raise tl.InputError.of("watch", what, "give the machine's file, and no --out")

    def looked_at() -> View:
        return tl.view(load_model(machine, side), options)

    result = looked_at()
    if png is not None or film is not None:
        written: tuple[Path, ...] = ()
        if film is not None:
            with bar("film") as progress:
                written = (result.save_film(film, progress),)
        finish(result, figure=png, within_limits=within_limits, written=written)
        return
    require_limits(result, within_limits)
    viewer = result.viewer(host, port)
    if is_json():
        print_json(result.as_dict() | {"url": viewer.url})
    else:
        for line in (*result.advice, f"{result.model.mechanism.name}: {viewer.url} (Ctrl-C ends)"):
            console().print(line, soft_wrap=True)
    if in_browser:
        webbrowser.open(viewer.url)
    if watch:
        viewer.watch(files, looked_at)
    viewer.run()
