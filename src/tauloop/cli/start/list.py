"""``tauloop list``: the machines and drive lines that come with Tauloop."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import command, console, finish, print_json
from tauloop.cli.terminal.screen import is_json
from tauloop.mechanism import machine_index


class Shipped(enum.Enum):
    """Kinds of files that come with Tauloop."""

    machines = "machines"
    drives = "drives"


@command()
def list_shipped(
    shipped: Annotated[
        Shipped,
        typer.Argument(metavar="KIND", help=f"What to list: {' or '.join(Shipped.__members__)}."),
    ] = Shipped.machines,
) -> None:
    """List the shipped machines, or the shipped drive lines."""
    if shipped is Shipped.machines:
        finish(machine_index())
        return
    names = tl.drives.shipped_drives()
    if is_json():
        print_json({"drives": names})
        return
    for name in names:
        console().print(name)
