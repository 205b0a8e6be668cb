"""``tauloop ballbar | play``: a machine with its drive lines on a circle, and how play shows at its tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tauloop.assembly.limits import require_within_limits
from tauloop.cli.announced import announced
from tauloop.cli.machine import MachineArgument, WithinLimitsOption, load_machine
from tauloop.cli.output import JsonOption, any_ending, command, figure_ending, finish
from tauloop.drives import BallbarOptions, PlayOptions, play_section
from tauloop.drives import ballbar as tested
from tauloop.drives import play as mapped
from tauloop.files import write_file
from tauloop.model import Model


@command(figure=figure_ending)
def ballbar(
    machine: MachineArgument,
    options: BallbarOptions,
    figure: Annotated[Path | None, typer.Option(help="Draw it into this file (PNG, PDF, SVG).")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """Drive a machine with drive lines round a circle: with two motors, with one, without play, and with rigid drives.

    Radial figures are about the circle that fits best (ISO 230-4). Exit code 1 when a run ends early or is doubtful.
    """
    found = tested(announced(Model(load_machine(machine))), options)
    if within_limits:
        require_within_limits(found.evidence)
    finish(found, as_json, figure=figure)


@command(figure=figure_ending, out=any_ending)
def play(
    machine: MachineArgument,
    options: PlayOptions,
    figure: Annotated[Path | None, typer.Option(help="Draw the section into this file (PNG, PDF, SVG).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the map of the volume as NetCDF.")] = None,
    within_limits: WithinLimitsOption = False,
    as_json: JsonOption = False,
) -> None:
    """How play at the actuators shows at the tool, over the work volume and in a section of it.

    Exit code 1 when the map is doubtful: no pose can be used, or forward kinematics disagrees.
    """
    model = announced(Model(load_machine(machine)), within_limits)
    found = mapped(model, options)
    picture = None
    if figure is not None:
        from tauloop.report.play_figure import play_figure

        amounts = dict.fromkeys(f"{1e6 * value:g}" for value in found.play.values())
        much = "its drive lines" if options.play == "lines" else f"{', '.join(amounts)} um (urad)"
        title = f"{found.machine}: tool displacement by play of {much} [um]"
        picture = play_figure(play_section(model, options), title=title)
    if out is not None:
        write_file(out, lambda path: found.data.to_netcdf(path, engine="scipy"))
    finish(found, as_json, figure=figure, picture=picture, written=(out,))
