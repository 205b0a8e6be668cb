"""Options for one pose of a machine: positions of its platform or of its actuators."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, TypeVar

import typer

import tauloop as tl
from tauloop.cli.terminal.completion import actuators
from tauloop.equations.ports import ACTUATORS

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
        "reference pose. rx, ry, rz rotate the platform about that vector in the base frame.",
    ),
]

#: Names in quotes, because the viewer takes longer to import than forces to compute.
_Options = TypeVar("_Options", "tl.DynamicsOptions", "tl.ViewOptions")


def at_actuators(options: _Options, actuators: str) -> _Options:
    """Return options with the given actuator positions.

    Raises:
        InputError: a position of the platform is given as well.
    """
    if options.position is not None:
        raise tl.InputError.of("actuators", "given with --pose", "give one of them")
    return replace(options, position=actuators, entry=ACTUATORS)
