"""``tauloop study``: many samples of a calculation, on the cores of this machine or on a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import any_ending, command, finish, folder
from tauloop.cli.progress import bar


@command(out=folder, json_file=any_ending)
def study(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A YAML file: a machine, what varies, what is computed."
        ),
    ],
    options: tl.StudyOptions,
    out: Annotated[
        Path | None, typer.Option(help="Write the Parquet parts into this folder.")
    ] = None,
) -> None:
    """Compute a study: tolerances, sensitivities, sweeps, many logs; its parts lie in a folder beside its file.

    Sample i depends on the seed and on i alone: no number depends on --threads, on a cluster, or on
    where the study was stopped. After Ctrl-C, or whatever ended it, --resume goes on. Exit code 1
    when samples are missing.
    """
    with bar("samples") as progress:
        result = tl.run_study(file, out or file.with_suffix(".study"), options, progress=progress)
    finish(result)
