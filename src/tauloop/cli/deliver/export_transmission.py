"""``tauloop export transmission``: the map between joints and the motors that drive them."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.deliver.exported import EXPORT_DEFAULT, EXPORT_FOLDER, export_folder
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.terminal.screen import bar


@command(out=EXPORT_FOLDER, out_default=EXPORT_DEFAULT)
def export_transmission(
    machine: MachineArgument,
    options: tl.TransmissionOptions,
    side: SideOption = None,
    within_limits: WithinLimitsOption = False,
    out: Path | None = None,
) -> None:
    """Write the map between joints and motors of a parallel ankle, knee, wrist or head.

    The code converts positions, velocities and efforts in both directions. It also computes the
    Jacobian, the reflected inertia and a status for every sample. It is written as C in double and
    single precision, as a Python module for NumPy, JAX and PyTorch, and as a package for
    ros2_control.
    """
    model = load_model(machine, side, within_limits=within_limits)
    with bar("formats") as progress:
        result = tl.export_transmission(
            model, export_folder(out, model, "transmission"), options, progress=progress
        )
    finish(result, written=result.written)
