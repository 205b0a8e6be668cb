"""``tauloop identify``: dynamic parameters of a machine from a measured log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import tauloop as tl
from tauloop.cli.machine import (
    MachineArgument,
    SideOption,
    ThreadsOption,
    announced,
    load_machine,
    thread_count,
)
from tauloop.cli.output import any_ending, command, figure_ending, finish, machine_file
from tauloop.cli.progress import bar
from tauloop.identification import identification_model


def _cannot_write(arguments: Mapping[str, Any]) -> tl.Problem | None:
    """What of the other options is against writing the machine."""
    options = arguments["options"]
    if arguments["write"] is None:
        return None
    if not options.consistent:
        what = "an identified machine needs all its parameters, and base parameters are fewer"
        return tl.Problem(where="--write", what=what, remedy="add --consistent")
    beside = [
        name for name in ("asymmetric", "stribeck", "presliding") if getattr(options.terms, name)
    ]
    if beside:
        what = f"has no meaning beside {', '.join(f'--{name}' for name in beside)}"
        return tl.Problem(where="--write", what=what, remedy="leave one of them out")
    return None


@command(_cannot_write, write=any_ending, json_file=any_ending, figure=figure_ending)
def identify(
    machine: MachineArgument,
    log: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG",
            help="Recordings, one or several: a CSV, a Parquet or a bag of ROS with columns time, position.NAME, "
            "force.NAME, or a YAML that describes files and columns, and says how this one is prepared.",
        ),
    ],
    options: tl.IdentificationOptions,
    side: SideOption = None,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            "--out",
            help="Write the identified machine to this YAML file; needs --consistent.",
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw measured, predicted and residual into this file (PNG, PDF, SVG)."),
    ] = None,
    threads: ThreadsOption = "1",
) -> None:
    """Identify base parameters from logs, and judge them on data that were not fitted.

    Several logs are fitted together; of each the last part is held out. One that states no
    preparation is prepared as the first. Exit code 1 when the result is doubtful, also for what is
    wrong with the data (clipped, late, turned, exchanged, dead, copied, in another unit,
    unexciting) and for masses that cannot be; it says what.
    """
    model = announced(
        identification_model(load_machine(machine, side), options, threads=thread_count(threads))
    )
    with bar("logs and fits") as progress:
        result = tl.identify(model, log, options, progress=progress)
    finish(result, machine_file(write, result.mechanism), figure=figure)
