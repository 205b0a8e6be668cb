"""``tauloop accuracy compliance``: displacement of the tool under forces, as in ISO 9283."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.compute.poses_given import PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, text_file
from tauloop.cli.outputs import CSV, FIGURE, RESULT


@command(out=CSV.of("the displacements"), figure=FIGURE, json_file=RESULT)
def compliance(
    machine: MachineArgument,
    rated_load: Annotated[
        str, typer.Argument(metavar="FORCE", help="Largest force at the tool, such as '500 N'.")
    ],
    options: tl.StaticComplianceOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    out: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Compute the displacement of the tool under 10 % to 100 % of a rated load (ISO 9283).

    The forces act along the axes of the base, in both directions. Motors are locked. Exit code 1
    when displacements are too large for the second-order equations, or the pose is beyond a stop.
    """
    model = load_model(machine, side, within_limits=within_limits)
    result = tl.static_compliance(model, rated_load, pose, options)
    finish(result, text_file(out, result.to_csv), within_limits=within_limits)
