"""``tauloop calibrate``: the actual geometry of a machine from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, machine_file, text_file
from tauloop.cli.outputs import FIGURE, HAL, INI, MACHINE_FILE, RESULT
from tauloop.cli.terminal.screen import bars


@command(
    out=MACHINE_FILE.of("the calibrated machine"), hal=HAL, ini=INI, json_file=RESULT, figure=FIGURE
)
def calibrate(
    machine: MachineArgument,
    measurements: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASUREMENTS",
            help="Tables with columns encoder.ACTUATOR [unit] and measured.COLUMN [unit], or YAML "
            "files that describe files, columns, instruments and noise (docs/calibration.md).",
        ),
    ],
    options: tl.CalibrationOptions,
    side: SideOption,
    out: Path | None = None,
    hal: Path | None = None,
    ini: Path | None = None,
    figure: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Calibrate a machine's geometry with error bars, and report undetermined parameters.

    Exit code 1 when the result is doubtful; the reason is printed.
    """
    mechanism = load_model(machine, side).mechanism
    with bars() as report:
        result = tl.calibrate(mechanism, measurements, options, progress=report)
    calibrated = machine_file(out, lambda: result.mechanism)
    lines = text_file(hal, lambda: tl.export.linuxcnc.geometry_hal(result.mechanism))
    joints = text_file(ini, lambda: tl.export.linuxcnc.joints_ini(result.mechanism))
    finish(result, calibrated, lines, joints, figure=figure, within_limits=within_limits)
