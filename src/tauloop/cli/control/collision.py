"""``tauloop control collision``: how soon a blow at a moving platform is noticed without a sensor of forces."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WorkersOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT
from tauloop.cli.terminal.progress import bar


@command(figure=FIGURE, json_file=RESULT)
def collision(
    machine: MachineArgument,
    options: tl.CollisionDetectionOptions,
    side: SideOption,
    threads: WorkersOption = "1",
) -> None:
    """Find how soon a blow at a moving platform is noticed without a sensor of forces.

    The model's masses and friction are wrong by what you say, drawn anew for each of many machines.
    Thresholds are those of one false alarm an hour. Exit code 1 when a blow goes unnoticed.
    """
    with bar("machines") as progress:
        result = tl.simulate_collision_detection(
            load_model(machine, side, threads=threads), options, progress=progress
        )
    finish(result)
