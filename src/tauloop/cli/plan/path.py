"""``tauloop plan path``: the fastest motion along a path, tested under a sampled controller."""

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
def path(
    machine: MachineArgument,
    options: tl.PathOptions,
    side: SideOption,
    samples: SamplesOption = "1000",
    out: Path | None = None,
    c_array: Path | None = None,
) -> None:
    """Plan the fastest motion along a path, with its active limits and a comparison of motion laws.

    The motion is simulated under the sampled controller. Exit code 1 when forces saturate or the
    simulation ends early.
    """
    with bar("plans") as progress:
        result = tl.plan_path(load_model(machine, side), options, progress=progress)
    finish_motion(result, samples, out, c_array)
