"""``tauloop log describe``: the description of a log that another program wrote."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

import tauloop as tl
from tauloop.cli.machine import MachineArgument, SideOption, load_model
from tauloop.cli.output import command, finish, text_file
from tauloop.cli.outputs import LOG_DESCRIPTION
from tauloop.cli.terminal.screen import is_json, is_quiet


@command(out=LOG_DESCRIPTION)
def describe(
    machine: MachineArgument,
    log: Annotated[
        list[Path],
        typer.Argument(metavar="LOG", help="Files of one recording, merged row by row."),
    ],
    options: tl.LogDescriptionOptions,
    side: SideOption,
    out: Path | None = None,
) -> None:
    """Describe a log that another program wrote, in a file for identify and other commands.

    Columns and units are recognized from names, from the reach of the machine, and from
    derivatives. In a terminal, the command asks for units that it cannot recognize. Exit code 1
    when columns or units are missing.
    """
    model = load_model(machine, side)
    if out is not None:
        options = replace(options, folder=out.parent)
    result = tl.describe_log(model, log, options)
    if result.unknown_units and sys.stdin.isatty() and not (is_json() or is_quiet()):
        typed_units = {quantity: _asked_unit(result, quantity) for quantity in result.unknown_units}
        result = tl.describe_log(
            model, log, replace(options, units={**options.units, **typed_units})
        )
    finish(result, text_file(out, lambda: result.text))


def _asked_unit(described: tl.identification.LogDescription, quantity: str) -> str:
    """Ask the user for the unit of a quantity, and return it; for currents there is no default."""
    unit = described.unknown_units[quantity][0]
    if quantity == "force" and described.currents:
        question = f"Force per ampere of {described.currents[0]}, such as 0.05 {unit}"
        return str(typer.prompt(question, err=True))
    return str(typer.prompt(f"Unit of {quantity}", default=unit, err=True))
