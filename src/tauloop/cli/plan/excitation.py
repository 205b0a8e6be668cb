"""``tauloop plan excitation``: a motion for identification, under all limits of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, RESULT, TABLE
from tauloop.cli.plan.planned import RateOption
from tauloop.cli.terminal.screen import bars
from tauloop.cli.values import frequency
from tauloop.identification import slow_sampling


def _slow_sampling(arguments: Mapping[str, Any]) -> tl.Problem | None:
    """Return a problem if the table's rate is too low for the highest harmonic, or None."""
    if arguments["out"] is None:
        return None
    task = arguments["options"].task
    return slow_sampling(frequency("--rate", arguments["rate"]), task.harmonics, task.period)


@command(
    out=TABLE.of("one period of the motion"), figure=FIGURE, also=_slow_sampling, json_file=RESULT
)
def excitation(
    machine: MachineArgument,
    options: tl.ExcitationOptions,
    side: SideOption,
    rate: RateOption = "1000",
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Optimize an excitation: finite Fourier series under limits, from several starts.

    The ranges, speeds and forces in the machine file limit all joints and rods, driven or not.
    Ctrl-C ends the search with the best motion so far. Exit code 1 when the optimizer
    converges from no start, or a check fails.
    """
    mechanism = load_model(machine, side, within_limits=within_limits).mechanism
    with bars() as report:
        result = tl.plan_excitation(mechanism, options, progress=report)
    finish(result, (out, lambda path: result.write_log(path, frequency("--rate", rate))))
