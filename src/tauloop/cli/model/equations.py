"""``tauloop model equations``: a machine's equations as text, LaTeX and Python."""

from __future__ import annotations

from pathlib import Path

import tauloop as tl
from tauloop.cli.machine import FormulationOption, MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish
from tauloop.cli.outputs import LATEX, PYTHON, TEXT
from tauloop.cli.terminal.screen import bar


@command(text=TEXT, latex=LATEX, python=PYTHON)
def equations(
    machine: MachineArgument,
    options: tl.EquationOptions,
    side: SideOption = None,
    formulation: FormulationOption = "newton-euler",
    text: Path | None = None,
    latex: Path | None = None,
    python: Path | None = None,
) -> None:
    """Write a machine's loop equations, dynamic equations, and solution formulas, block by block.

    Parameters are numbers, except those that --keep names.
    """
    model = load_model(machine, side, formulation=formulation)
    with bar("equations") as progress:
        result = tl.write_equations(model, options, progress=progress)
    finish(result, (text, result.text), (latex, result.latex), (python, result.python))
