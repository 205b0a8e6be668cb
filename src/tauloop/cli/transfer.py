"""``tauloop transfer``: the best motion from here to there, under limits, tried out under a sampled controller."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import (
    FigureOption,
    JsonFileOption,
    JsonOption,
    any_ending,
    command,
    figure_ending,
    finish,
    log_ending,
    log_file,
    text_file,
)
from tauloop.cli.progress import bar


@command(out=log_ending, figure=figure_ending, c_array=any_ending, json_file=any_ending)
def transfer(
    machine: MachineArgument,
    options: tl.TransferOptions,
    side: SideOption,
    samples: Annotated[float, typer.Option(help="Samples per second in the table and the C array, Hz.")] = 1000.0,
    out: Annotated[
        Path | None,
        typer.Option(help="Write time, positions, velocities and accelerations to this CSV, Parquet or MCAP file."),
    ] = None,
    c_array: Annotated[
        Path | None,
        typer.Option(help="Write positions, velocities and forces of the actuators as arrays to this C file."),
    ] = None,
    figure: FigureOption = None,
    json_file: JsonFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """The best motion from here to there: its path is free, past obstacles and away from singularities.

    Exit code 1 when forces saturate, or the machine is lost, under the sampled controller in the simulator.
    """
    with bar("plans", as_json) as progress:
        result = tl.transfer(load_model(machine, side), options, progress=progress)
    log, text = log_file(out, lambda: result.log(samples)), text_file(c_array, lambda: result.c_array(samples))
    finish(result, as_json, log, text, figure=figure, json_file=json_file)
