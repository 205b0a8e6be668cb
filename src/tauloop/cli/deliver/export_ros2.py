"""``tauloop export ros2``: a package of ROS 2."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.deliver.names import NameOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, folder
from tauloop.cli.terminal.progress import bar


@command(out=folder)
def export_ros2(
    machine: MachineArgument,
    out: Annotated[
        Path, typer.Option(help="Write to this folder; other files in it are left alone.")
    ],
    name: NameOption = None,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Write a package of ROS 2: URDF with ros2_control, launch file, and a node for the passive joints.

    The name is that of the package.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_ros2(model, out, tl.Ros2Options(package=name or ""), progress=progress)
    finish(result, written=result.written)
