"""``tauloop identify``: dynamic parameters of a machine from a measured log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_machine, load_model, print_notes
from tauloop.cli.output import (
    command,
    finish,
    folder,
    machine_file,
)
from tauloop.cli.outputs import CONDENSED_LOGS, FIGURE, MACHINE_FILE, RESULT
from tauloop.cli.terminal.screen import bar
from tauloop.identification import identification_model


def _cannot_write(arguments: Mapping[str, Any]) -> tl.Problem | None:
    """Return the problem if the other options do not determine a machine to write, or None."""
    options = arguments["options"].identification
    if arguments["write"] is None:
        return None
    if not options.consistent and options.unknowns != "file":
        what = "an identified machine needs all parameters, and base parameters are not enough"
        remedy = "add --consistent, or --unknowns file, which changes only values of the file"
        return tl.Problem(where="write", what=what, remedy=remedy)
    conflicting = [
        name for name in ("asymmetric", "stribeck", "presliding") if getattr(options.terms, name)
    ]
    if conflicting:
        what = f"cannot be used with {', '.join(f'--{name}' for name in conflicting)}"
        return tl.Problem(where="write", what=what, remedy="omit one of them")
    return None


@command(
    _cannot_write,
    write=MACHINE_FILE.of("the identified machine (needs --consistent or --unknowns file)"),
    triangle=CONDENSED_LOGS,
    folded=folder,
    json_file=RESULT,
    figure=FIGURE,
)
def identify(
    machine: MachineArgument,
    log: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG",
            help="One or several recordings: CSV files, Parquet files or ROS bags with columns time, "
            "position.NAME, force.NAME, or a YAML file that describes files, columns and preparation.",
        ),
    ],
    options: tl.FoldOptions,
    side: SideOption = None,
    write: Path | None = None,
    figure: Path | None = None,
    triangle: Path | None = None,
    folded: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Condense each log into a small file in this folder, for more logs than fit into memory.",
        ),
    ] = None,
) -> None:
    """Identify base parameters from logs, and validate them on data that were not fitted.

    Several logs are fitted together; the last part of each log is held out for validation. Logs
    that state no preparation are prepared like the first log. With --folded, workers condense each
    log into a small file, and the result equals that of all logs at once; --add adds a later log.

    Exit code 1 when the result is doubtful, for example because of faults in the data or impossible
    masses.
    """
    if folded is not None:
        mechanism = load_model(machine, side).mechanism
        with bar("readings") as progress:
            folded_logs = tl.fold_logs(mechanism, log, folded, options, progress=progress)
        finish(folded_logs, (triangle, folded_logs.write_triangle))
        return
    _refuse_folding(options, triangle)
    identification = options.identification
    threads = options.study.count or 1
    model = identification_model(load_machine(machine, side), identification, threads=threads)
    print_notes(model)
    with bar("logs and fits") as progress:
        result = tl.identify(model, log, identification, progress=progress)
    finish(result, machine_file(write, result.mechanism), figure=figure)


def _refuse_folding(options: tl.FoldOptions, triangle: Path | None) -> None:
    """Reject options of folded logs, all at once, without --folded."""
    needs_folding = {
        "triangle": triangle is not None,
        "add": options.add is not None,
        "resume": options.study.resume,
        "workers": options.study.cluster is not None,
    }
    tl.InputError.raise_if_any(
        tl.Problem(where=name, what="has no effect without --folded", remedy="add --folded DIR")
        for name, is_given in needs_folding.items()
        if is_given
    )
