"""``tauloop model equations``: a machine's equations as text, LaTeX and Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import FormulationOption, MachineArgument, SideOption, load_model
from tauloop.cli.output import any_ending, command, finish
from tauloop.cli.terminal.progress import bar


@command(text=any_ending, latex=any_ending, python=any_ending)
def equations(
    machine: MachineArgument,
    options: tl.EquationOptions,
    side: SideOption = None,
    formulation: FormulationOption = "newton-euler",
    text: Annotated[Path | None, typer.Option(help="Write the text to this file.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write a LaTeX document to this file.")] = None,
    python: Annotated[
        Path | None, typer.Option(help="Write a module that needs NumPy alone to this file.")
    ] = None,
) -> None:
    """Write a machine's loop and dynamic equations, and the formulas by which they are solved, block by block.

    Parameters are numbers but for those that --keep names.
    """
    model = load_model(machine, side, formulation=formulation)
    with bar("equations") as progress:
        result = tl.write_equations(model, options, progress=progress)
    finish(result, (text, result.text), (latex, result.latex), (python, result.python))
