"""``tauloop calibrate``: the geometry that a machine really has, from measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.assembly.limits import require_within_limits
from tauloop.calibration import CalibrationOptions
from tauloop.calibration import calibrate as calibrated
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, any_ending, command, figure_ending, finish
from tauloop.cli.progress import bars
from tauloop.formats.yaml_writer import write_yaml
from tauloop.model import Model


@command(out=any_ending, json_file=any_ending, figure=figure_ending)
def calibrate(
    machine: MachineArgument,
    measurements: Annotated[
        list[Path],
        typer.Argument(
            help="A table with columns encoder.ACTUATOR [unit] and measured.COLUMN [unit], or a YAML that describes "
            "files, columns, instruments and noise (docs/calibration.md); or several."
        ),
    ],
    options: CalibrationOptions,
    side: SideOption,
    out: Annotated[Path | None, typer.Option(help="Write the calibrated machine to this YAML file.")] = None,
    json_file: Annotated[Path | None, typer.Option(help="Write the whole result to this file.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Write errors and corrections to this PNG.")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Calibrate a machine's geometry, with error bars, and say what the data cannot tell.

    Exit code 1 when the result is doubtful; it says why.
    """
    mechanism = load_machine(machine, side)
    announced(Model(mechanism))
    with bars(as_json) as report:
        result = calibrated(mechanism, measurements, options, progress=report)
    if within_limits:
        require_within_limits(result.evidence)
    if out is not None:
        write_yaml(result.mechanism, out)
    if json_file is not None:
        result.write_json(json_file)
    finish(result, as_json, figure=figure, written=(out, json_file))
