"""Options for one pose of a machine: positions of its platform or of its actuators."""

from __future__ import annotations

from typing import Annotated

import typer

from tauloop.cli.terminal.completion import actuators

ActuatorsOption = Annotated[
    str | None,
    typer.Option(
        metavar="VALUES",
        help="Positions of the actuators, such as 'motor_1=20deg,slide=5mm'; others are as in the "
        "reference pose.",
        autocompletion=actuators,
    ),
]
PoseOption = Annotated[
    str | None,
    typer.Option(
        "--pose",
        metavar="VALUES",
        help="Position of the platform, such as 'x=50mm,rz=10deg'; other coordinates are as in the "
        "reference pose. (rx, ry, rz) is a rotation vector in the base frame.",
    ),
]
