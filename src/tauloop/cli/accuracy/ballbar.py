"""``tauloop accuracy ballbar``: a machine with drive lines on a circle."""

from __future__ import annotations

import tauloop as tl
from tauloop.cli.machine import ImportArguments, MachineArgument, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT
from tauloop.cli.terminal.screen import bar


@command(figure=FIGURE, json_file=RESULT)
def ballbar(
    machine: MachineArgument,
    options: tl.BallbarOptions,
    import_arguments: ImportArguments | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Simulate a ballbar test of a machine with drive lines, and compare variants of its drives.

    The variants are two motors, one motor, no backlash, and rigid drives. Radial deviations refer
    to the best-fit circle (ISO 230-4). Exit code 1 when a run ends early or is doubtful.
    """
    model = load_model(machine, import_arguments)
    with bar("runs") as progress:
        result = tl.ballbar(model, options, progress=progress)
    finish(result, within_limits=within_limits)
