"""Loading a machine that the command line names: shipped, a YAML file, a URDF with a side file, or an MJCF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.mechanism import load
from tauloop.mechanism.formats.options import ImportOptions, RodRecognition
from tauloop.mechanism.model import Mechanism

MachineArgument = Annotated[
    str,
    typer.Argument(
        metavar="MACHINE", help="A shipped machine (see `tauloop machines`), or a YAML, URDF or MJCF (.xml) file."
    ),
]
SideOption = Annotated[
    Path | None,
    typer.Option(
        "--side",
        help="Side file of a URDF: gravity, platform, transmissions, friction, loops; or Gepetto's robot.yaml",
    ),
]

RodsOption = Annotated[
    bool,
    typer.Option(
        "--rods", help="Of a URDF or MJCF: make rods of links with ball joints at both ends, their spin locked."
    ),
]


def load_machine(name: str, side: Path | None = None, rods: bool = False) -> Mechanism:
    """The machine of that name or file."""
    return load(name, side, options=ImportOptions(rods=RodRecognition()) if rods else None)
