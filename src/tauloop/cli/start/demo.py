"""``tauloop demo``: a page with a machine in motion, and next steps."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import SideOption, load_model
from tauloop.cli.output import command, console, print_json
from tauloop.cli.outputs import PAGE
from tauloop.cli.terminal.completion import machines
from tauloop.cli.terminal.screen import bar, is_json, is_quiet
from tauloop.mechanism import shipped_machines


@command(out=PAGE, out_default="Default: demo-MACHINE.html")
def demo(
    machine: Annotated[
        str,
        typer.Argument(
            metavar="MACHINE",
            help="A shipped machine, a YAML, URDF or MJCF (.xml) file.",
            autocompletion=machines,
        ),
    ] = shipped_machines(gallery=False)[0],
    side: SideOption = None,
    out: Path | None = None,
    show: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
) -> None:
    """Show a machine in motion: a page with the machine in 3D, its stroke and its motor forces.

    The page is one file that needs no network. Writing it needs `pip install 'tauloop[report]'`.
    The command prints suggestions for the next steps.
    """
    model = load_model(machine, side)
    with bar("page") as progress:
        result = tl.demo(model, out or Path(f"demo-{model.mechanism.name}.html"), progress=progress)
    if is_json():
        print_json(result.as_dict())
        return
    console().print(f"written: {result.path}", soft_wrap=True)
    for line in result.next_steps(machine):
        console().print(line, soft_wrap=True)
    if show and not is_quiet():
        webbrowser.open(result.path.absolute().as_uri())
