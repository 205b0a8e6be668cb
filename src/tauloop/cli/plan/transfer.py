"""``tauloop plan transfer``: the best motion between two poses, tested under a controller."""

from __future__ import annotations

from pathlib import Path

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
def transfer(
    machine: MachineArgument,
    options: tl.TransferOptions,
    side: SideOption,
    samples: SamplesOption = "1000",
    out: Path | None = None,
    c_array: Path | None = None,
) -> None:
    """Plan the best motion between two poses, past obstacles and away from singularities.

    The path is optimized too. The motion is simulated under the sampled controller. Exit code 1
    when forces saturate or the simulation ends early.
    """
    with bar("plans") as progress:
        result = tl.plan_transfer(load_model(machine, side), options, progress=progress)
    finish_motion(result, samples, out, c_array)
