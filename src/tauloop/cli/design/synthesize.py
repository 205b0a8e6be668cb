"""``tauloop design synthesize``: dimensions of machines that meet a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import FIGURE, FOLDER, RESULT
from tauloop.cli.terminal.screen import bar

DESIGN_FOLDER = FOLDER.of("machine files, proofs and checkpoints")


@command(out=DESIGN_FOLDER, figure=FIGURE, json_file=RESULT)
def synthesize(
    task: Annotated[
        Path,
        typer.Argument(
            metavar="TASK",
            help="YAML file with a machine, its free parameters, a box, requirements and objectives.",
        ),
    ],
    options: tl.SynthesisOptions,
    out: Path | None = None,
) -> None:
    """Choose dimensions of a machine for a task: box, requirements and objectives.

    The command searches the free parameters, improves the best candidates with exact derivatives,
    and writes machine files. These are checked, certified over the box, sized with motors and
    simulated. If no
    candidate meets the task, the requirement that excludes the candidates and its smallest
    violation are reported, with exit code 1.
    """
    with bar("candidates") as progress:
        finish(tl.synthesize(task, out, options, progress=progress))
