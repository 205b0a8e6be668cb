"""``tauloop plan cycle``: a cyclic motion between stations within all limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command
from tauloop.cli.outputs import C_ARRAY, FIGURE, RESULT, TABLE
from tauloop.cli.plan.planned import SamplesOption, finish_motion
from tauloop.cli.terminal.screen import bar


@command(
    out=TABLE.of("time, positions, velocities and accelerations"),
    figure=FIGURE,
    c_array=C_ARRAY,
    json_file=RESULT,
)
def cycle(
    machine: MachineArgument,
    stations: Annotated[
        Path,
        typer.Argument(
            metavar="LIST", help="A YAML file with stations in order, dwell times and conveyors."
        ),
    ],
    options: tl.CycleOptions,
    side: SideOption,
    samples: SamplesOption = "1000",
    out: Path | None = None,
    c_array: Path | None = None,
) -> None:
    """Plan a cyclic motion between stations, as fast as limits, conveyors and motor heat allow.

    The motion is simulated under the sampled controller. Exit code 1 when forces saturate or the
    simulation ends early.
    """
    with bar("legs") as progress:
        result = tl.plan_cycle(load_model(machine, side), stations, options, progress=progress)
    finish_motion(result, samples, out, c_array)
