"""``tauloop log describe``: the description of a log of another program."""

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
    """Describe a log of another program, as a file for identify and other commands.

    Columns and units are recognized by names, by the reach of the machine, and by derivatives. In a
    terminal, the command asks for units that nothing determines. Exit code 1 when columns or units
    are missing.
    """
    model = load_model(machine, side)
    if out is not None:
        options = replace(options, folder=out.parent)
    result = tl.describe_log(model, log, options)
    if result.unknown_units and sys.stdin.isatty() and not (is_json() or is_quiet()):
        asked = {
            quantity: typer.prompt(f"Unit of {quantity}", default=units[0], err=True)
            for quantity, units in result.unknown_units.items()
        }
        result = tl.describe_log(model, log, replace(options, units={**options.units, **asked}))
    finish(result, text_file(out, lambda: result.text))
