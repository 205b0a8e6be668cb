"""``tauloop study run``: many samples of a calculation, on this computer or on a cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FOLDER, RESULT
from tauloop.cli.terminal.screen import bar

STUDY_FOLDER = replace(FOLDER, content="the Parquet parts", endings=(".study",))
FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A YAML file with machine, variations and calculation."),
]
FolderOption = Annotated[
    Path | None, typer.Option(help="Folder of the study's parts; default: FILE.study.")
]


@command(out=STUDY_FOLDER, out_default="Default: FILE.study", json_file=RESULT)
def run(
    file: FileArgument,
    options: tl.StudyOptions,
    out: Path | None = None,
) -> None:
    """Compute a study: tolerances, sensitivities, sweeps, many logs.

    The results are written in parts into a folder next to the file. Sample i depends only on the
    seed and on i, so results do not depend on workers or interruptions. --resume continues an
    interrupted study. Exit code 1 when samples are missing.
    """
    with bar("samples") as progress:
        result = tl.run_study(file, out or file.with_suffix(".study"), options, progress=progress)
    finish(result)
