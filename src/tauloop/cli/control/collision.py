"""``tauloop control collision``: delay of the detection of a collision without a force sensor."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WorkersOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT
from tauloop.cli.terminal.screen import bar


@command(figure=FIGURE, json_file=RESULT)
def collision(
    machine: MachineArgument,
    options: tl.CollisionDetectionOptions,
    side: SideOption,
    threads: WorkersOption = "1",
) -> None:
    """Compute how soon a collision of a moving platform is detected without a force sensor.

    Masses and friction of the model have random errors of a given size, different for each of
    several simulated machines. Thresholds allow one false alarm per hour. Exit code 1 if a
    collision is not detected.
    """
    with bar("machines") as progress:
        result = tl.simulate_collision_detection(
            load_model(machine, side, threads=threads), options, progress=progress
        )
    finish(result)
