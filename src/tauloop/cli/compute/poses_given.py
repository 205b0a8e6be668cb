"""Options that give one pose of a machine: its platform's, or its actuators' positions."""

from __future__ import annotations

from typing import Annotated

import typer

from tauloop.cli.terminal.completion import actuators

ActuatorsOption = Annotated[
    str | None,
    typer.Option(
        help="Their positions, such as 'motor_1=20deg,slide=5mm'; the rest as at reference.",
        autocompletion=actuators,
    ),
]
PlatformOption = Annotated[
    str | None,
    typer.Option(
        help="Its position, such as 'x=50mm,rz=10deg'; the rest as at reference. rx, ry, rz turn it from there about "
        "that vector in the base frame."
    ),
]
