"""``tauloop vibration``: natural frequencies and frequency responses of an elastic machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.compute.poses_given import ActuatorsOption, PoseOption
from tauloop.cli.machine import MachineArgument, SideOption, WithinLimitsOption, load_model
from tauloop.cli.output import command, finish, text_file
from tauloop.cli.outputs import CSV, FIGURE, FILM, RESULT


@command(
    out=CSV.of("frequencies, and the energy by part"),
    figure=FIGURE,
    film=FILM.of("the modes in motion"),
    json_file=RESULT,
)
def vibration(
    machine: MachineArgument,
    options: tl.VibrationOptions,
    side: SideOption = None,
    pose: PoseOption = None,
    actuators: ActuatorsOption = None,
    motion: Annotated[
        Path | None,
        typer.Option(
            help="Motion from a table with position.NAME; up to 50 of its rows are the poses.",
            metavar="FILE",
        ),
    ] = None,
    mode: Annotated[
        int,
        typer.Option(
            min=1, help="Mode shown in an animation, and first on a page; counted from 1."
        ),
    ] = 1,
    out: Path | None = None,
    film: Path | None = None,
    within_limits: WithinLimitsOption = False,
) -> None:
    """Compute the natural frequencies of an elastic machine, and the energy of each mode by part.

    With --response-frequencies and a damping, the responses of tool and encoders and the dynamic
    stiffness are computed too. A page (.html) lets the reader choose the animated mode. Exit code 1
    when a diagnostic is outside its limit, or the pose is beyond a stop.
    """
    model = load_model(machine, side, within_limits=within_limits)
    result = tl.vibration(model, pose, options, actuators=actuators, motion=motion)
    modes = (film, lambda path: tl.viewer.save_modes(result, path, mode=mode))
    finish(result, text_file(out, result.to_csv), modes, within_limits=within_limits)
