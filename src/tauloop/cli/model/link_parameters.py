"""``tauloop model link-parameters``: masses, mass centers and inertias of links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_machine
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE
from tauloop.cli.terminal.screen import bar


@command(figure=FIGURE)
def link_parameters(
    machine: MachineArgument,
    estimates: Annotated[
        Path,
        typer.Argument(
            help="The JSON file that `tauloop identify --out` wrote.", metavar="IDENTIFICATION"
        ),
    ],
    options: tl.LinkOptions,
    side: SideOption = None,
) -> None:
    """Determine link parameters from base parameters and known values, and bound the rest.

    Parameters that affect the forces only in combination are listed as families, with intervals
    over all physically possible links. Exit code 1 when no physically possible links have the
    estimated and known values.
    """
    mechanism = load_machine(machine, side)
    with bar("intervals") as progress:
        result = tl.link_parameters(mechanism, estimates, options, progress=progress)
    finish(result)
