"""``tauloop view``: a machine in the browser, with sliders or a motion, or as a picture."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import (
    command,
    console,
    finish,
    print_json,
    require_limits,
)
from tauloop.cli.outputs import FIGURE, FILM
from tauloop.cli.terminal.screen import bar, is_json

if TYPE_CHECKING:
    from tauloop.viewer import View


@command(png=FIGURE, film=FILM)
def view(
    machine: MachineArgument,
    options: tl.ViewOptions,
    side: SideOption = None,
    png: Path | None = None,
    film: Path | None = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 allows other computers.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; the next free port if it is in use.")
    ] = 8080,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Update the view, or show the errors, whenever the machine file is saved.",
        ),
    ] = False,
    in_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    within_limits: WithinLimitsOption = False,
) -> None:
    """View a machine in the browser with sliders or a motion, or write a picture or animation.

    The server runs until Ctrl-C. Sliders for platform, actuators and time move the machine as long
    as its loops close; beyond that, the panel shows which loop does not close, and by how much.
    Coordinates beyond a stop are reported. Only the printed address with its token is served. The
    browser view needs `pip install 'tauloop[view]'`.
    """
    files = [
        path
        for path in (Path(machine), None if side is None else side.side)
        if path is not None and path.is_file()
    ]
    if watch and (not files or png is not None or film is not None):
        what = "does not write pictures" if files else f"{machine} is not a file that can be edited"
        raise tl.InputError.of("watch", what, "give the machine's file, and no --out")

    def load_view() -> View:
        return tl.view(load_model(machine, side), options)

    result = load_view()
    if png is not None or film is not None:
        written: tuple[Path, ...] = ()
        if film is not None:
            with bar("animation") as progress:
                written = (result.save_animation(film, progress),)
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
        viewer.watch(files, load_view)
    viewer.run()
