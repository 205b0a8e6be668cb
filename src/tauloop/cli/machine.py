"""Loading a machine that the command line names: shipped, a YAML file, or a URDF with a side file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.errors import InputError, Problem
from tauloop.mechanism import load
from tauloop.mechanism.formats.urdf import load_urdf
from tauloop.mechanism.model import Mechanism

MachineArgument = Annotated[
    str, typer.Argument(metavar="MACHINE", help="A shipped machine (see `tauloop machines`), a YAML or a URDF file.")
]
SideOption = Annotated[
    Path | None, typer.Option("--side", help="Side file of a URDF: gravity, platform, transmissions, friction.")
]


def load_machine(name: str, side: Path | None = None) -> Mechanism:
    """The machine of that name or file."""
    if name.lower().endswith((".urdf", ".xml")):
        return load_urdf(Path(name), side)
    if side is not None:
        raise InputError(
            Problem(
                where="--side", what=f"{name} is not a URDF file", remedy="only a URDF has a side file: leave it out"
            )
        )
    return load(name)
