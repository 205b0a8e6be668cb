"""``tauloop plan transfer``: the best motion from here to there, under limits, tried out under a sampled controller."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import any_ending, command, figure_ending, log_ending
from tauloop.cli.plan.planned import CArrayOption, SamplesOption, TableOption, finish_motion
from tauloop.cli.terminal.progress import bar


@command(out=log_ending, figure=figure_ending, c_array=any_ending, json_file=any_ending)
def transfer(
    machine: MachineArgument,
    options: tl.TransferOptions,
    side: SideOption,
    samples: SamplesOption = 1000.0,
    out: TableOption = None,
    c_array: CArrayOption = None,
) -> None:
    """The best motion from here to there: its path is free, past obstacles and away from singularities.

    Exit code 1 when forces saturate, or the machine is lost, under the sampled controller in the
    simulator.
    """
    with bar("plans") as progress:
        result = tl.plan_transfer(load_model(machine, side), options, progress=progress)
    finish_motion(result, samples, out, c_array)
