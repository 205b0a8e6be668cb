"""``tauloop export ros2``: a package for ROS 2."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.deliver.exported import (
    EXPORT_DEFAULT,
    EXPORT_FOLDER,
    NameOption,
    export_folder,
)
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.terminal.screen import bar


@command(out=EXPORT_FOLDER, out_default=EXPORT_DEFAULT)
def export_ros2(
    machine: MachineArgument,
    name: NameOption = None,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    out: Path | None = None,
) -> None:
    """Write a ROS 2 package: URDF with ros2_control, launch file, and a node for passive joints.

    --name is the name of the package.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("functions") as progress:
        result = tl.export_ros2(
            model,
            export_folder(out, model, "ros2"),
            package=name or "",
            progress=progress,
        )
    finish(result, written=result.written)
