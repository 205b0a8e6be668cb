"""``tauloop design certify``: a proof over a box of poses, or a pose that violates a claim."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import any_ending, command, finish
from tauloop.cli.outputs import RESULT
from tauloop.cli.terminal.screen import bar


@command(json_file=RESULT, proof=any_ending)
def certify(
    machine: MachineArgument,
    options: tl.CertifyOptions,
    proof: Annotated[
        Path | None,
        typer.Option("--proof", metavar="FILE", help="Write the proof, if there is one."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Check this proof, with a different arithmetic, instead of searching for one.",
        ),
    ] = None,
    side: SideOption = None,
) -> None:
    """Prove that a machine reaches every pose of a box, away from stops and singularities.

    The command shows the proved distances from singularities, a pose that violates a claim, or the
    part of the box that is undecided at the end of the budget. Exit code 1 when the claims are not
    proved over the whole box, or when a checked proof is invalid.
    """
    model = load_model(machine, side)
    if check is not None:
        with bar("boxes") as progress:
            finish(tl.check_certificate(model, check, progress=progress))
        return
    with bar("volume") as progress:
        result = tl.certify(model, options, progress=progress)
    is_written = proof is not None and result.verdict == "proved"
    finish(result, (proof, result.write_proof) if is_written else (None, ""))
