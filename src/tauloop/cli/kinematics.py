"""``tauloop fk | ik | jacobian``: where the platform is, where the actuators are, and how they move together."""

from __future__ import annotations

from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.completion import actuators
from tauloop.cli.machine import BesidePosition, MachineArgument, ThreadsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.progress import bars, search

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


@command()
def fk(
    machine: MachineArgument,
    options: tl.KinematicsOptions,
    side: BesidePosition | None = None,
    actuators: ActuatorsOption = None,
    threads: ThreadsOption = "1",
) -> None:
    """Forward kinematics: where the platform and the tool are at given positions of the actuators.

    The machine is followed from its reference pose; --all-modes lists every pose in which its loops
    close. Passive freedoms that are not named come to rest under springs, gravity and stops. Exit
    code 1 when a pose lies beyond a stop, when the straight line from the reference pose does not
    lead to it, or when nothing holds a passive freedom.
    """
    model = load_model(machine, side, within_limits=options.within_limits, threads=threads)
    with bars(not options.all_modes) as report:
        finish(tl.forward_kinematics(model, actuators, options, report=search(report)))


@command()
def ik(
    machine: MachineArgument,
    options: tl.KinematicsOptions,
    side: BesidePosition | None = None,
    platform: PlatformOption = None,
    threads: ThreadsOption = "1",
) -> None:
    """Inverse kinematics: where the actuators are at a given position of the platform.

    On the working mode of the reference pose; --all-modes lists every posture of the legs. Exit
    code 1 when a pose lies beyond a stop, or when the straight line from the reference pose does
    not lead to it.
    """
    model = load_model(machine, side, within_limits=options.within_limits, threads=threads)
    with bars(not options.all_modes) as report:
        finish(tl.inverse_kinematics(model, platform, options, report=search(report)))


@command()
def jacobian(
    machine: MachineArgument,
    options: tl.JacobianOptions,
    side: BesidePosition | None = None,
    platform: PlatformOption = None,
    actuators: ActuatorsOption = None,
) -> None:
    """The Jacobian of the tool, the actuators or the platform at one pose, per unit of platform or actuators.

    Exit code 1 when the pose is singular or beyond a stop.
    """
    model = load_model(machine, side, within_limits=options.within_limits)
    result = tl.jacobian(model, platform=platform, actuators=actuators, options=options)
    finish(result)
