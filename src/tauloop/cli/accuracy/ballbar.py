"""``tauloop accuracy ballbar``: a machine with its drive lines on a circle."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import ImportArguments, MachineArgument, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT
from tauloop.cli.terminal.progress import bar


@command(figure=FIGURE, json_file=RESULT)
def ballbar(
    machine: MachineArgument,
    options: tl.BallbarOptions,
    side: ImportArguments | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Drive a machine with drive lines round a circle: with two motors, with one, without play, and with rigid drives.

    Radial figures are about the circle that fits best (ISO 230-4). Exit code 1 when a run ends
    early or is doubtful.
    """
    model = load_model(machine, side)
    with bar("runs") as progress:
        result = tl.ballbar(model, options, progress=progress)
    finish(result, within_limits=within_limits)
